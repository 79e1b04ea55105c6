"""What is published: metadata that agree with each other, and files that work where nothing else is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

import plap

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = {"dev", "docs", "gpu", "networkx", "onnx", "ray", "scale"}


def read_yaml(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_completion_offers_names_that_are_yet_to_be_imported() -> None:
    assert set(dir(plap)) == set(plap.__all__)
    assert {"fit", "nn", "PGNNClassifier"} <= set(dir(plap))


def test_every_place_has_the_same_version() -> None:
    citation = read_yaml(ROOT / "CITATION.cff")
    assert PROJECT["version"] == plap.__version__ == citation["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", plap.__version__)
    assert (
        f"## [{plap.__version__}]" in (ROOT / "CHANGELOG.md").read_text()
        or "## [Unreleased]" in (ROOT / "CHANGELOG.md").read_text()
    )
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["license"]
    assert {"message", "title", "authors"} <= citation.keys()


def test_hosted_tests_run_the_same_commands_on_every_supported_python() -> None:
    workflow = read_yaml(ROOT / ".github" / "workflows" / "ci.yml")
    jobs = workflow["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    assert commands == [".ci/run", "make test-all"]
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("make test")
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    versions = [
        label.rsplit(" ", 1)[1]
        for label in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", label)
    ]
    assert jobs["test"]["strategy"]["matrix"]["python"] == versions == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={versions[0]}"


def test_issue_forms_ask_something() -> None:
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    asked = {form.stem: read_yaml(form).get("body", []) for form in forms if form.stem != "config"}
    assert set(asked) == {"bug", "idea", "number"}
    assert all(any(part.get("validations", {}).get("required") for part in body) for body in asked.values())


def test_extras_that_messages_name_exist() -> None:
    assert set(PROJECT["optional-dependencies"]) == EXTRAS
    texts = [*(ROOT / "src").rglob("*.py"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {name for path in texts for name in re.findall(r"plap\[([a-z]+)\]", path.read_text())}
    calls = {
        name
        for path in (ROOT / "src").rglob("*.py")
        for name in re.findall(r'import_extra\("\w+", "(\w+)"', path.read_text())
    }
    assert calls - {"scale"}
    assert named | calls <= EXTRAS


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files alone, so that nothing which lies about gets into a package."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git repository")
    folder = tmp_path_factory.mktemp("source")
    for name in listed.stdout.decode().split("\0"):
        if name and (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def build(kind: str, folder: Path, out: Path) -> Path:
    out.mkdir(exist_ok=True)
    code = f"import sys; from setuptools import build_meta; print(build_meta.build_{kind}(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(out)], cwd=folder, check=True, capture_output=True, text=True
    )
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def sdist(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", source, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made from the source distribution, as pip does."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.iterdir()
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


@pytest.mark.long
def test_the_wheel_has_every_file_of_the_package_and_nothing_else(source: Path, wheel: Path) -> None:
    expected = {
        str(path.relative_to(source / "src"))
        for path in (source / "src").rglob("*")
        if path.is_file() and ".egg-info" not in str(path)
    }
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = {Path(name).name for name in archive.namelist() if ".dist-info/" in name}
    assert names == expected
    assert {"METADATA", "entry_points.txt", "LICENSE"} <= about


@pytest.mark.long
def test_the_source_distribution_can_be_tested_and_documented(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for name in ("tests/test_package.py", "tests/conftest.py", "docs/conf.py", "CHANGELOG.md", "Makefile"):
        assert name in names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; its dependencies are borrowed, but not an editable plap."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(command, check=True, env=environment(), capture_output=True)
    own = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True, capture_output=True, text=True, env=environment(),
    )  # fmt: skip
    borrowed = sysconfig.get_path("purelib")  # a line of a .pth file; the .pth files in there are not read
    (Path(own.stdout.strip()) / "borrowed.pth").write_text(f"{borrowed}\n")
    return folder / "bin"


def environment() -> dict[str, str]:
    """Without what would bring the sources of this repository in."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}


@pytest.mark.long
def test_an_installed_plap_fits_and_explains(installed: Path, tmp_path: Path) -> None:
    def run(*words: object) -> str:
        command = [str(word) for word in words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    place = run(installed / "python", "-c", "import plap; print(plap.__file__)")
    assert Path(place.strip()).is_relative_to(installed.parent)
    assert run(installed / "plap", "--version") == f"plap {plap.__version__}\n"
    graph = "csbm:phi=0.5,n=80,f=8,d=5.0,seed=1"
    run(installed / "plap", "fit", graph, "-o", "out", "--no-tune", "--max-epochs", 5, "--seeds", 1, "-q")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Why these predictions" in page
    assert "80" in run(installed / "plap", "inspect", graph)
    assert "all edges" in run(installed / "plap", "inspect", "out", "--node", 3)
    tables = run(
        installed / "python", "-c",
        "from plap.experiments.tables import load_table; print(load_table('heterophilic').name)",
    )  # fmt: skip
    assert tables == "heterophilic\n"

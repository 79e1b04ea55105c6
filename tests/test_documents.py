"""Links lead somewhere, commands exist, code runs, and every public name has an entry and an example."""

from __future__ import annotations

import importlib
import re
import runpy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
import typer.main

import plap
from documents import PAGES, ROOT, anchors, blocks, commands
from plap.cli import application

PUBLIC = (
    "plap",
    "plap.data",
    "plap.insight",
    "plap.models",
    "plap.nn",
    "plap.nn.baselines",
    "plap.parts",
    "plap.penalties",
    "plap.spectral",
    "plap.training",
    "plap.training.pieces",
)
RUNNABLE = [
    ROOT / "docs" / "getting-started.md",
    *sorted((ROOT / "docs" / "howto").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def public_names() -> Iterator[tuple[str, str]]:
    """Every public name that is no module, with the package that offers it."""
    for package in PUBLIC:
        module = importlib.import_module(package)
        for name in module.__all__:
            if not name.startswith("__") and not isinstance(getattr(module, name), ModuleType):
                yield package, name


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        if Path(file).parts[-2:-1] == ("gallery",):  # made by make docs from examples/
            source = ROOT / "examples" / f"{Path(file).stem}.py"
            assert source.exists() or Path(file).stem == "index", target
            continue
        found = (page.parent / file).resolve() if file else page
        if found == ROOT / "docs" / "contributing.md":
            found = ROOT / "CONTRIBUTING.md"
        assert found.exists(), target
        assert not anchor or anchor in anchors(found), target


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)], ids=name_of)
def test_commands_exist(page: Path) -> None:
    """Every command on a page, with its flags, is one that plap takes; it is not run."""
    for name, *arguments in commands(page):
        group = typer.main.get_command(application(name))
        with group.make_context("plap", [name, *arguments], resilient_parsing=True) as context:
            command = group.get_command(context, name)  # type: ignore[attr-defined]
            assert command is not None, name
            command.make_context(name, list(arguments), parent=context)


@pytest.mark.parametrize("page", [page for page in RUNNABLE if blocks(page, "python")], ids=name_of)
def test_code_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python of a page, from its first block to its last, with less training than it says."""
    monkeypatch.chdir(tmp_path)
    quick = {"seeds": 1, "max_epochs": 3}
    monkeypatch.setattr(plap, "fit", partial(plap.fit, search=False, **quick), raising=False)
    for name in ("PGNNClassifier", "PGNNRegressor"):
        estimator = type(name, (getattr(plap, name),), {"__init__": _with(getattr(plap, name), quick)})
        monkeypatch.setattr(plap, name, estimator, raising=False)
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks(page, "python"):
        shortened = re.sub(r"range\((?:80|100)\)|max_epochs=\d+", _fewer, code)
        exec(compile(shortened, str(page), "exec", dont_inherit=True), names)


def test_every_public_name_has_an_entry() -> None:
    entries = {
        (package, name)
        for page in (ROOT / "docs" / "api").glob("*.rst")
        for package in re.findall(r"^\.\. (?:\w*module):: (\S+)$", page.read_text(), flags=re.MULTILINE)
        for name in re.findall(r"^   (\w+)$|^\.\. data:: (\w+)$", page.read_text(), flags=re.MULTILINE)
        for name in name
        if name
    }
    assert set(public_names()) == entries


def test_the_picture_of_the_readme_is_the_table(tmp_path: Path) -> None:
    """``python docs/figures/lying_edges.py`` was run after the table last changed."""
    drawing = runpy.run_path(str(ROOT / "docs" / "figures" / "lying_edges.py"))
    points = drawing["measured"]()
    figures = ROOT / "docs" / "figures"
    assert drawing["as_csv"](points) == (figures / "lying-edges.csv").read_text(encoding="utf-8")
    assert 10_000 < (figures / "lying-edges.png").stat().st_size < 200_000
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "84.2 to 77.9 %, GCN from 83.5 to 49.5 %" in text
    ends = {(point.model, point.changed): point.mean for point in points}
    assert (ends["pGNN MCP", 0], ends["pGNN MCP", 25]) == (84.2, 77.9)
    assert (ends["GCN", 0], ends["GCN", 25], ends["MLP", 25]) == (83.5, 49.5, 64.1)


def test_the_gallery_is_complete() -> None:
    order = runpy.run_path(str(ROOT / "docs" / "_ext" / "gallery_order.py"))["ORDER"]
    assert set(order) == {path.name for path in (ROOT / "examples").glob("*.py")}
    for name in order:
        text = (ROOT / "examples" / name).read_text(encoding="utf-8")
        assert "plt.show()" in text and "assert " in text, name  # ends in a picture, and checks what it says


def _with(estimator: type, fixed: dict[str, int]) -> object:
    """An ``__init__`` that trains little, whatever it is told."""

    def __init__(self: object, **given: object) -> None:  # noqa: N807
        estimator.__init__(self, **{"tune": None, **given, **fixed})  # type: ignore[misc]

    return __init__


def _fewer(found: re.Match[str]) -> str:
    return "range(2)" if found[0].startswith("range") else "max_epochs=2"

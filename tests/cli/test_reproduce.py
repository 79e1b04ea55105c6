from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from plap.cli import main
from tiny_experiments import TINY, TWO_HOP, write_tiny_table


def plap(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "plap", "reproduce", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, check=False, env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def test_a_table_of_ones_own(tmp_path: Path) -> None:
    write_tiny_table(tmp_path)
    done = plap("tiny.toml", "--quick", "--json", "--only", "model=two_hop", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["protocol"] == "sound"
    assert any("Quick look" in rule for rule in result["rules"])
    assert [(c["model"], c["runs"], c["not_finite"]) for c in result["cells"]] == [("two_hop", 3, 0)] * 2
    out = tmp_path / "reproduction"
    assert {"runs.sqlite", "tiny.md", "tiny.csv", "tiny.tex", "tiny.html"} <= {p.name for p in out.iterdir()}
    shown = plap("tiny.toml", "--quick", "--report-only", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "two_hop" in shown.stdout
    assert f"Page: {Path('reproduction') / 'tiny.html'}" in shown.stdout
    assert f"{result['cells'][0]['mean']:.1f}" in shown.stdout


def test_the_list_of_tables(tmp_path: Path) -> None:
    listed = plap("--list", "--json", cwd=tmp_path)
    shown = json.loads(listed.stdout)
    rows = {row["name"]: row for row in shown["tables"]}
    assert "entropy" in [figure["name"] for figure in shown["figures"]]
    assert rows["heterophilic"]["runs"] == 100
    assert len(rows) == 14
    assert "heterophilic" in plap("--list", cwd=tmp_path).stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which table? `plap reproduce --list` shows them"),
        (["heterofilic"], "did you mean heterophilic"),
        (["heterophilic", "--only", "dataset=cora"], "has no dataset 'cora'"),
        (["heterophilic", "--grid", "huge"], "grid must be full or small, not 'huge'"),
        (["heterophilic", "--protocol", "fair"], "protocol must be one of paper, sound"),
        (["heterophilic", "--executor", "slurm"], "--executor must be local or ray, not 'slurm'"),
        (["heterophilic", "--address", "auto"], "--address goes with --executor ray"),
        (["time-heterophilic", "--executor", "ray"], "running times are measured by one process"),
        (["none.toml"], "none.toml cannot be read"),
        (["heterophilic", "--report-only"], "--report-only: there is no store reproduction/runs.sqlite"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["plap", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert (ended.value.code, said.count("\n")) == (2, 1)
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_which_nothing_can_be_trained(tmp_path: Path) -> None:
    write_tiny_table(tmp_path, TINY.replace("phi=0.8", "phi=8").replace("phi=-0.8", "phi=-8"))
    done = plap("tiny.toml", "--quick", "-q", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "phi" in done.stderr


def test_an_error_in_a_model_leaves_a_report_and_the_traceback(tmp_path: Path) -> None:
    write_tiny_table(tmp_path, TINY.replace('"mlp", ', ""))
    (tmp_path / "two_hop.py").write_text(TWO_HOP.replace("return self.conv", "return self.convolution"))
    done = plap("tiny.toml", "--quick", "-q", "--workers", "1", cwd=tmp_path)
    assert done.returncode == 2
    log, sentence = done.stderr.splitlines()
    assert "Tracebacks are in reproduction/tiny-errors.log." in log
    assert "ended in AttributeError" in sentence
    assert "two_hop.py, line " in sentence
    assert "Traceback" in (tmp_path / "reproduction" / "tiny-errors.log").read_text()
    assert "AttributeError" in (tmp_path / "reproduction" / "tiny.md").read_text()


def test_a_table_of_which_a_part_cannot_be_trained(tmp_path: Path) -> None:
    write_tiny_table(tmp_path, TINY.replace("phi=0.8", "phi=8"))
    done = plap("tiny.toml", "--quick", "-q", "--only", "model=mlp", cwd=tmp_path)
    assert done.returncode == 1
    assert "phi" in done.stdout
    assert (tmp_path / "reproduction" / "tiny.html").is_file()


@pytest.mark.parametrize("name", ["gradient-example", "filters"])
def test_a_picture(tmp_path: Path, name: str) -> None:
    only = ["--only", "dataset=csbm:phi=0.5,n=60,f=8"] if name == "filters" else []
    done = plap(name, "--json", "-o", "pictures", *only, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = [tmp_path / file for file in json.loads(done.stdout)["files"]]
    assert sorted(file.suffix for file in files) == [".csv", ".png", ".svg"]
    assert all(file.stat().st_size > 100 for file in files)
    refused = plap(name, "--only", "model=gcn", cwd=tmp_path)
    assert refused.returncode == 2
    assert "a picture has its own models" in refused.stderr


def test_the_names_of_pictures() -> None:
    from plap.cli.reproduce_figure import FIGURES  # noqa: PLC0415
    from plap.insight.figures import FIGURES as KNOWN  # noqa: PLC0415

    assert set(FIGURES) == set(KNOWN) | {"filters"}

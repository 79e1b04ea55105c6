from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from command import run
from plap.experiments.estimation import DatasetEstimate, Estimate
from plap.experiments.tables import table_names
from tiny_experiments import TINY, TWO_HOP, write_tiny_table

Said = tuple[int, str, str]
Plap = Callable[..., Said]


@pytest.fixture
def plap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Plap:
    """``plap reproduce`` in an empty folder and in this process: its exit code, and what it said."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Said:
        capsys.readouterr()
        return run(monkeypatch, "reproduce", *arguments), *capsys.readouterr()

    return call


def test_a_table_of_ones_own(tmp_path: Path, plap: Plap) -> None:
    write_tiny_table(tmp_path)
    code, said, problems = plap("tiny.toml", "--quick", "--json", "--only", "model=two_hop")
    assert code == 0, problems
    result = json.loads(said)
    assert result["protocol"] == "sound"
    assert any("Quick look" in rule for rule in result["rules"])
    assert [(c["model"], c["runs"], c["not_finite"]) for c in result["cells"]] == [("two_hop", 3, 0)] * 2
    out = tmp_path / "reproduction"
    assert {"runs.sqlite", "tiny.md", "tiny.csv", "tiny.tex", "tiny.html"} <= {p.name for p in out.iterdir()}
    code, shown, problems = plap("tiny.toml", "--quick", "--report-only")
    assert code == 0, problems
    assert "two_hop" in shown
    assert f"Page: {Path('reproduction') / 'tiny.html'}" in shown
    assert f"{result['cells'][0]['mean']:.1f}" in shown


def test_root_reaches_the_workers_and_leaves_the_environment_alone(tmp_path: Path, plap: Plap) -> None:
    before = dict(os.environ)
    (tmp_path / "empty").mkdir()
    only = "dataset=texas,model=mlp"
    code, _, problems = plap(
        "heterophilic", "--quick", "-q", "--only", only, "--root", "empty", "--workers", 1
    )
    assert code == 2
    assert f"is in none of the data folders ({tmp_path / 'empty'}, " in problems
    assert os.environ == before


def test_the_list_of_tables(tmp_path: Path, plap: Plap) -> None:
    shown = json.loads(plap("--list", "--json")[1])
    rows = {row["name"]: row for row in shown["tables"]}
    assert "entropy" in [figure["name"] for figure in shown["figures"]]
    assert rows["heterophilic"]["runs"] == 100
    assert tuple(sorted(rows)) == table_names()
    assert "heterophilic" in plap("--list")[1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "which table? `plap reproduce --list` shows them"),
        (["heterofilic"], "did you mean heterophilic"),
        (["heterophilic", "--only", "dataset=cora"], "has no dataset 'cora'"),
        (["heterophilic", "--grid", "huge"], "grid must be one of full, small, not 'huge'"),
        (["heterophilic", "--protocol", "fair"], "protocol must be one of paper, sound"),
        (["heterophilic", "--executor", "slurm"], "executor must be one of local, ray, not 'slurm'"),
        (["heterophilic", "--address", "auto"], "address is for the executor ray only"),
        (["time-heterophilic", "--executor", "ray"], "running times are measured by one process"),
        (["none.toml"], "none.toml cannot be read"),
        (["heterophilic", "--report-only"], "report_only: there is no store reproduction/runs.sqlite"),
    ],
)
def test_mistakes(tmp_path: Path, plap: Plap, arguments: list[str], words: str) -> None:
    code, _, said = plap(*arguments)
    assert (code, said.count("\n")) == (2, 1)
    assert words in said
    assert list(tmp_path.iterdir()) == []


def test_a_table_of_which_nothing_can_be_trained(tmp_path: Path, plap: Plap) -> None:
    write_tiny_table(tmp_path, TINY.replace("phi=0.8", "phi=8").replace("phi=-0.8", "phi=-8"))
    code, _, said = plap("tiny.toml", "--quick", "-q", "--workers", "1")
    assert (code, said.count("\n")) == (2, 1)
    assert "phi" in said


def test_an_error_in_a_model_leaves_a_report_and_the_traceback(tmp_path: Path, plap: Plap) -> None:
    write_tiny_table(tmp_path, TINY.replace('"mlp", ', ""))
    (tmp_path / "two_hop.py").write_text(TWO_HOP.replace("return self.conv", "return self.convolution"))
    code, _, said = plap("tiny.toml", "--quick", "-q", "--workers", "1")
    assert code == 2
    log, sentence = said.splitlines()
    assert "Tracebacks are in reproduction/tiny-errors.log." in log
    assert "ended in AttributeError" in sentence
    assert "two_hop.py, line " in sentence
    assert "Traceback" in (tmp_path / "reproduction" / "tiny-errors.log").read_text()
    assert "AttributeError" in (tmp_path / "reproduction" / "tiny.md").read_text()


def test_a_table_of_which_a_part_cannot_be_trained(tmp_path: Path, plap: Plap) -> None:
    write_tiny_table(tmp_path, TINY.replace("phi=0.8", "phi=8"))
    code, said, _ = plap("tiny.toml", "--quick", "-q", "--only", "model=mlp", "--workers", "1")
    assert code == 1
    assert "phi" in said
    assert (tmp_path / "reproduction" / "tiny.html").is_file()


@pytest.mark.parametrize("name", ["gradient-example", "filters"])
def test_a_picture(tmp_path: Path, plap: Plap, name: str) -> None:
    only = ["--only", "dataset=csbm:phi=0.5,n=60,f=8"] if name == "filters" else []
    code, said, problems = plap(name, "--json", "-o", "pictures", *only)
    assert code == 0, problems
    files = [tmp_path / file for file in json.loads(said)["files"]]
    assert sorted(file.suffix for file in files) == [".csv", ".png", ".svg"]
    assert all(file.stat().st_size > 100 for file in files)
    code, _, said = plap(name, "--only", "model=gcn")
    assert code == 2
    assert "a figure has its own models" in said


def test_evidence_is_published_and_shown_again(tmp_path: Path, plap: Plap) -> None:
    write_tiny_table(tmp_path)
    effort = ["--quick", "--max-epochs", 3, "--only", "model=mlp", "--workers", 1, "-q"]
    code, shown, problems = plap("tiny.toml", *effort, "--publish", "results", "--json")
    assert (code, problems) == (0, f"Published: {Path('results') / 'tiny.parquet'}\n")
    (tmp_path / "reproduction" / "runs.sqlite").unlink()
    code, again, problems = plap("tiny.toml", "--from", "results", "--json")
    assert (code, problems) == (0, "")
    assert json.loads(again) == json.loads(shown)
    code, text, _ = plap("tiny.toml", "--from", "results", "-o", "report")
    assert code == 0
    assert "MLP" in text
    assert (tmp_path / "report" / "tiny.html").is_file()
    code, _, said = plap("tiny.toml", "--from", "nowhere")
    assert (code, said.count("\n")) == (2, 1)
    assert "there are no published runs of table tiny" in said


def test_an_estimate_trains_nothing(tmp_path: Path, plap: Plap) -> None:
    write_tiny_table(tmp_path)
    before = sorted(tmp_path.iterdir())
    effort = ["--quick", "--only", "model=mlp", "--workers", 1, "--estimate"]
    code, said, problems = plap("tiny.toml", *effort, "--json")
    assert (code, problems) == (0, "")
    found = json.loads(said)
    assert [entry["runs"] for entry in found["datasets"]] == [4 + 3] * 2
    assert 0 < found["hours_at_least"] <= found["hours_at_most"]
    code, said, problems = plap("tiny.toml", *effort)
    assert code == 0
    assert "at least" in said
    assert "csbm:phi=0.8" in said
    assert "With 1 process" in " ".join(said.split())
    assert problems.splitlines() == [
        "timing csbm:phi=0.8,n=60,f=8 · mlp", "timing csbm:phi=-0.8,n=60,f=8 · mlp",
    ]  # fmt: skip
    assert sorted(tmp_path.iterdir()) == before


def test_what_cannot_be_timed_has_a_dash(monkeypatch: pytest.MonkeyPatch, plap: Plap) -> None:
    found = Estimate(
        "heterophilic",
        (DatasetEstimate("texas", 7), DatasetEstimate("cornell", 0), DatasetEstimate("actor", 7, 30, 90)),
        workers=1,
        problems={("texas", "mlp"): "texas: a file is missing"},
    )
    monkeypatch.setattr("plap.cli.reproduce.estimate", lambda *_, **__: found)
    code, said, _ = plap("heterophilic", "--estimate")
    assert code == 0
    rows = [[cell.strip() for cell in line.split("│")[1:5]] for line in said.splitlines() if "│" in line]
    assert rows[:3] == [
        ["texas", "7", "–", "–"], ["cornell", "0", "0 s", "0 s"], ["actor", "7", "30 s", "90 s"]
    ]  # fmt: skip
    assert "Not counted: texas: a file is missing." in said


def test_all_tables_that_were_published(tmp_path: Path, plap: Plap) -> None:
    results = Path(__file__).parents[2] / "results"
    code, said, problems = plap("all", "--from", results, "--json")
    assert (code, problems) == (0, "")
    assert [table["table"] for table in json.loads(said)] == sorted(p.stem for p in results.glob("*.parquet"))
    code, _, said = plap("all", "--only", "model=mlp")
    assert (code, said.count("\n")) == (2, 1)
    assert "only names cells of one table" in said

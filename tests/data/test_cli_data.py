from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from plap.cli import main
from plap.data.benchmarks.registry import BENCHMARKS
from tiny_benchmarks import WRITERS


@pytest.fixture(autouse=True)
def no_other_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PLAP_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "200")


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["plap", "data", *map(str, arguments)])
    with pytest.raises(SystemExit) as stopped:
        main()
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


def test_list_shows_every_set_and_which_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS["texas"](tmp_path)
    code, out, _ = run(monkeypatch, capsys, "list", "--root", tmp_path)
    assert code == 0
    assert "1,157,799" in out
    lines = {name: line for line in out.splitlines() for name in BENCHMARKS if f" {name} " in line}
    assert list(lines) == list(BENCHMARKS)
    assert [name for name, line in lines.items() if " yes " in line] == ["texas"]


def test_list_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS["texas"](tmp_path)
    code, out, _ = run(monkeypatch, capsys, "list", "--root", tmp_path, "--json")
    result = json.loads(out)
    assert code == 0
    assert result["folders"] == [str(tmp_path), str(tmp_path / "cache" / "plap")]
    rows = {row["name"]: row for row in result["benchmarks"]}
    assert rows["texas"] == {
        "name": "texas",
        "nodes": 183,
        "edges": 279,
        "features": 1703,
        "classes": 5,
        "folder": str(tmp_path),
    }
    assert rows["cora"]["folder"] is None


def test_verify_names_the_file_that_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS["minesweeper"](tmp_path)
    for arguments in (["verify", "minesweeper"], ["verify"], ["verify", "Minesweeper", "--json"]):
        code, _, err = run(monkeypatch, capsys, *arguments, "--root", tmp_path)
        assert code == 2
        assert "minesweeper.npz is not the published file" in err
        assert len(err.splitlines()) == 1


def test_verify_says_what_it_cannot_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    WRITERS["roman-empire"](tmp_path)
    code, out, _ = run(monkeypatch, capsys, "verify", "roman-empire", "--root", tmp_path, "--json")
    (result,) = json.loads(out)
    assert (code, result["status"]) == (0, "unchecked")
    assert list(result["sums"]) == result["unchecked"]


def test_verify_of_real_files(
    shared_datasets: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(monkeypatch, capsys, "verify", "--root", shared_datasets, "--json")
    status = {result["name"]: result["status"] for result in json.loads(out)}
    assert code == 0
    assert {name for name, found in status.items() if found == "ok"} == {
        row.name for row in BENCHMARKS.values() if all(file.sha256 for file in row.files)
    }


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["verify", "cora"], "ind.cora.x and 7 more is in none of the data folders"),
        (["verify", "corra"], "did you mean cora"),
        (["verify"], "nothing to verify"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_two(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run(monkeypatch, capsys, *arguments, "--root", tmp_path)
    assert code == 2
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_importing_the_data_package_is_light() -> None:
    script = (
        "import sys, plap.data, plap.cli; "
        "print([m for m in ('torch_geometric', 'polars', 'sklearn', 'matplotlib') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"

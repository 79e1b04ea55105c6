"""What a job that nobody watches relies on: signals, exit codes, progress lines, logs, odd terminals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from command import run
from customer_graph import write_customer_graph
from plap.cli.progress import _lines
from plap.fitting.artifacts import load_metrics
from plap.training import Progress

SMALL = ["--budget", "300", "--seeds", "2", "--max-epochs", "30"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_customer_graph(tmp_path / "customers", nodes=120, edges=400, missing=0.05)
    return tmp_path / "customers"


def start(folder: Path, out: Path, *more: str, ignored: bool = False) -> subprocess.Popen[str]:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.default_int_handler)

    return subprocess.Popen(
        [sys.executable, "-m", "plap", "fit", str(folder), "-o", str(out), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=ignore,  # noqa: PLW1509
    )  # fmt: skip


@pytest.mark.parametrize("ignored", [False, True], ids=["usual", "under a parent that ignores SIGINT"])
def test_sigterm_keeps_the_best_so_far(folder: Path, tmp_path: Path, ignored: bool) -> None:
    out = tmp_path / "out"
    process = start(folder, out, "--models", "pgnn", ignored=ignored)
    assert process.stderr is not None
    for line in process.stderr:  # until the search is under way
        if "pGNN: " in line:
            break
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 3
    metrics = load_metrics(out)
    assert metrics["interrupted"] is True
    assert [method["name"] for method in metrics["methods"]] == ["pGNN"]
    assert pl.read_csv(out / "predictions.csv").height == 120


def test_sigterm_before_there_is_a_result(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = (
        "import sys, time, pathlib; import plap.cli.fit as f; "
        "f.check_place = lambda *a: (pathlib.Path(sys.argv[1]).write_text(''), time.sleep(60)); "
        "from plap.cli import main; main(sys.argv[2:])"
    )
    ready = tmp_path / "ready"
    process = subprocess.Popen(
        [sys.executable, "-c", command, str(ready), "fit", str(folder), "-o", str(out)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    while not ready.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate()
    assert process.returncode == 4
    assert err == "plap: interrupted before there was a result, so nothing was written\n"
    assert not out.exists()


def test_progress_lines_and_log_without_a_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "fit.log"
    assert run(monkeypatch, "fit", str(folder), "-o", str(tmp_path / "out"), *SMALL, "--log", str(log)) == 0
    lines = capfd.readouterr().err.splitlines()
    assert "plap: pGNN begins" in lines
    shares = [line for line in lines if line.startswith("plap: pGNN: ")]
    assert 2 <= len(shares) <= 12
    assert all("best validation score" in line and line.endswith("left") for line in shares)
    best = [float(line.split("score ")[1].split("%")[0]) for line in shares]
    assert best == sorted(best)
    assert any(line.startswith("plap: MLP") for line in lines)
    logged = log.read_text().splitlines()
    assert "fit of customers" in logged[0]
    assert "held-out nodes" in logged[-1]


def test_a_log_that_cannot_be_written_is_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code = run(monkeypatch, "fit", str(folder), "-o", str(tmp_path / "out"), "--log", str(tmp_path))
    assert code == 2
    assert capfd.readouterr().err.startswith("plap: --log: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.long)])
def test_a_terminal_without_unicode(folder: Path, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plap", "inspect", str(folder)], capture_output=True, check=False,
        env=os.environ | {"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"nodes" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_a_full_device_is_one_sentence(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "plap", "inspect", str(folder)], stdout=full, stderr=subprocess.PIPE,
            text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == "plap: the output cannot be written (No space left on device)\n"


def test_predictions_on_standard_output_are_utf_8_whatever_the_terminal(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = (folder / "nodes.csv").read_text().replace("private", "privé")
    (folder / "nodes.csv").write_text(nodes)
    out = tmp_path / "out"
    assert run(monkeypatch, "fit", str(folder), "-o", str(out), *SMALL, "-q") == 0
    done = subprocess.run(
        [sys.executable, "-m", "plap", "predict", str(out), str(folder)], capture_output=True, check=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert "privé" in done.stdout.decode()


def test_a_share_is_told_once() -> None:
    lines: list[str] = []
    report = _lines(lines.append)("pGNN")
    assert report is not None
    for done in (0.05, 0.1, 0.15, 0.32, 0.32, 1.0, 1.0, 1.0):
        report(Progress(1, 0, 1, 10, 1, 0.5, done, 1.0))
    assert [line.split(":")[1].split(",")[0].strip() for line in lines[1:]] == ["10%", "32%", "100%"]

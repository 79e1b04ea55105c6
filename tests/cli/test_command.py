"""The installed command: how it starts, what it says, what it does with nonsense."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import plap
from command import run
from plap.cli import predict
from plap.data.metrics import METRICS

SENTENCE = "plap: interrupted before there was a result, so nothing was written\n"


def test_threads_sleep_unless_the_user_wants_otherwise() -> None:
    script = (
        "import os, sys, plap_command; assert 'torch' not in sys.modules; sys.argv = ['plap', '--help']\n"
        "try: plap_command.main()\n"
        "except SystemExit: pass\n"
        "print(os.environ['OMP_WAIT_POLICY'])"
    )
    clean = {name: value for name, value in os.environ.items() if name != "OMP_WAIT_POLICY"}
    for given, expected in (({}, "passive"), ({"OMP_WAIT_POLICY": "active"}, "active")):
        done = subprocess.run(
            [sys.executable, "-c", script], env=clean | given, capture_output=True, text=True, check=True
        )
        assert done.stdout.split()[-1] == expected


@pytest.mark.parametrize("signal", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("module", ["torch", "plap.cli.progress"])
def test_an_interrupt_while_modules_are_loaded(tmp_path: Path, module: str, signal: str) -> None:
    script = (
        "import builtins, signal, sys, plap_command\n"
        "load = builtins.__import__\n"
        "def watched(name, *others):\n"
        f"    if name == {module!r}: signal.raise_signal(signal.{signal})\n"
        "    return load(name, *others)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "builtins.__import__ = watched\n"
        f"sys.argv = ['plap', 'fit', 'cora', '-o', {str(tmp_path / 'out')!r}]\n"
        "plap_command.main()"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.stderr == SENTENCE
    assert done.returncode == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("moment", "command"),
    [
        ("plap.cli.fit.choose_device", ["fit", "csbm:phi=0.7,n=60,f=5"]),
        ("plap.cli.demo.check_place", ["demo"]),
        ("typer.core.TyperGroup.make_context", ["fit", "csbm:phi=0.7,n=60,f=5"]),
        ("typer.core.TyperCommand.make_context", ["fit", "csbm:phi=0.7,n=60,f=5"]),
    ],
)
def test_an_interrupt_while_options_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    moment: str, command: list[str],
) -> None:  # fmt: skip
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(moment, interrupted)
    assert run(monkeypatch, *command, "-o", tmp_path / "out") == 4
    assert capsys.readouterr().err == SENTENCE


def test_help_names_every_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, "--help") == 0
    shown = capsys.readouterr().out
    for command in ("demo", "fit", "predict", "inspect", "report", "data", "bench"):
        assert command in shown


def test_version_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plap", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"plap {plap.__version__}"


@pytest.mark.parametrize(
    "arguments",
    [["nonsense"], ["fit"], ["fit", "nowhere/at/all", "-o", "out"], ["fit", "cora", "--what"]],
    ids=" ".join,
)
def test_nonsense_ends_with_2_and_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said
    assert "Traceback" not in said


def test_one_of_anything_is_singular(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = SimpleNamespace(wrong=("a differs", "b differs"), folder=None, status="different")
    monkeypatch.setattr("plap.cli.data.verify_benchmark", lambda *_: wrong)
    assert run(monkeypatch, "data", "verify", "cora") == 2
    assert capsys.readouterr().err == "plap: a differs (1 more file differs)\n"
    found: dict[str, Any] = {
        "graph": "tiny",
        "metric": "accuracy",
        "methods": [],
        "split": {"sizes": (3, 2, 1)},
    }
    monkeypatch.setattr("plap.cli.report.load_metrics", lambda _: found)
    assert run(monkeypatch, "report", "out") == 0
    assert "tiny: 1 held-out node " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ({"known": 1, "right": 1}, "Predicted 1 node. Of 1 known label 1 agrees (100.0%)."),
        ({"known": 1, "r2": 0.5}, "Predicted 1 node. On 1 node with a known label R² is 0.500."),
    ],
)
def test_predictions_for_one_node(
    monkeypatch: pytest.MonkeyPatch, numbers: dict[str, float], sentence: str
) -> None:
    monkeypatch.setattr(predict, "agreement", lambda *_, only_new: numbers)
    graph = SimpleNamespace(num_nodes=1, digest="one")
    file: Any = SimpleNamespace(graph_digest="other")
    data: Any = SimpleNamespace(graph=graph)
    table: Any = SimpleNamespace(task=SimpleNamespace(metric=METRICS["r2"]), new=None, notes=(), drift={})
    assert predict._summary(file, data, table)["sentence"] == sentence

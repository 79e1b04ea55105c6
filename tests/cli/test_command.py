"""The installed command: how it starts, what it says, what it does with nonsense."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import plap
from command import run


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

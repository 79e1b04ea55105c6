"""The installed command: how it starts, what it says, what it does with nonsense."""

from __future__ import annotations

import os
import subprocess
import sys

import plap


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


def test_help_names_every_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plap", "--help"], capture_output=True, text=True, check=True
    )
    for command in ("demo", "fit", "predict", "inspect", "report", "data", "bench"):
        assert command in done.stdout


def test_version_is_said() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "plap", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == f"plap {plap.__version__}"


def test_nonsense_ends_with_2_and_no_traceback() -> None:
    for arguments in (
        ["nonsense"],
        ["fit"],
        ["fit", "nowhere/at/all", "-o", "out"],
        ["fit", "cora", "--what"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "plap", *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, arguments
        assert "Traceback" not in done.stderr

"""Runs ``interpreted``: the Triton kernels in Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="the extra 'gpu' is not installed")


@pytest.mark.parametrize(
    "marked", ["not long", pytest.param("long", marks=pytest.mark.long)], ids=["short", "long"]
)
def test_the_kernels_are_the_oracles_in_the_interpreter(marked: str) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-m", marked, "--durations=8"]
    here = Path(__file__).with_name("interpreted.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTEST_ADDOPTS": ""}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(
        [*command, str(here)], env=environment, capture_output=True, text=True, check=False,
        cwd=here.parents[3],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]

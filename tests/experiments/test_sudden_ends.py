"""kill -9 at any moment, then the same command again: the store ends as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plap.experiments.model_files import UserModelFile, load_model_file
from plap.experiments.store import Store
from tiny_experiments import equal_records, write_tiny_table

COMMAND = ["--quick", "--quiet"]


def start(folder: Path, out: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "plap", "reproduce", folder / "tiny.toml", "-o", folder / out, *COMMAND],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def finish(folder: Path, out: str) -> None:
    process = start(folder, out)
    _, said = process.communicate(timeout=1200)
    assert process.returncode == 0, said.decode()


def kill_and_resume(folder: Path, kills: int) -> None:
    """A store that was finished between two kills has to be right, and the next kills hit a new one."""
    write_tiny_table(folder)
    load_model_file(UserModelFile.read(folder / "two_hop.py"))
    began = time.perf_counter()
    finish(folder, "whole")
    longest = time.perf_counter() - began
    rng = random.Random(7)
    hit = stores = 0
    while hit < kills:
        process = start(folder, f"killed-{stores}")
        time.sleep(rng.uniform(0.2 * longest, longest))
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            hit += 1
        _, said = process.communicate(timeout=600)
        if process.returncode != -signal.SIGKILL:
            assert process.returncode == 0, said.decode()
            compare(folder / "whole", folder / f"killed-{stores}")
            stores += 1
    finish(folder, f"killed-{stores}")
    compare(folder / "whole", folder / f"killed-{stores}")


def compare(whole: Path, killed: Path) -> None:
    with Store(whole / "runs.sqlite") as one, Store(killed / "runs.sqlite") as other:
        assert equal_records(one.all_records(), other.all_records())
    names = {path.name for path in whole.iterdir()}
    left = {path.name for path in killed.iterdir() if path.suffix != ".part"}  # of a writer that was killed
    assert names == {name for name in left if "-wal" not in name}
    assert (whole / "tiny.md").read_bytes() == (killed / "tiny.md").read_bytes()


def test_a_sudden_end(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 1)


@pytest.mark.long
def test_thirty_sudden_ends(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 30)


@pytest.mark.long
def test_two_commands_on_one_store(tmp_path: Path) -> None:
    write_tiny_table(tmp_path)
    load_model_file(UserModelFile.read(tmp_path / "two_hop.py"))
    both = [start(tmp_path, "shared"), start(tmp_path, "shared")]
    for process in both:
        _, said = process.communicate(timeout=1200)
        assert process.returncode == 0, said.decode()
    finish(tmp_path, "alone")
    with Store(tmp_path / "shared" / "runs.sqlite") as one, Store(tmp_path / "alone" / "runs.sqlite") as two:
        assert equal_records(one.all_records(), two.all_records())

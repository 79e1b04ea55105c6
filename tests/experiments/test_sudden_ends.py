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

from plap.experiments.model_files import ModelFile, spec_of_file
from plap.experiments.store import Store, equal_records
from tiny_experiments import write_tiny_table

COMMAND = ["--quick", "--quiet"]


def start(folder: Path, out: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "plap", "reproduce", folder / "tiny.toml", "-o", folder / out, *COMMAND],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def finish(folder: Path, out: str) -> None:
    process = start(folder, out)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()


def kill_and_resume(folder: Path, kills: int) -> None:
    write_tiny_table(folder)
    spec_of_file(ModelFile.read(folder / "two_hop.py"))
    began = time.perf_counter()
    finish(folder, "whole")
    longest = time.perf_counter() - began
    rng = random.Random(7)
    for _ in range(kills):
        process = start(folder, "killed")
        time.sleep(rng.uniform(0.2 * longest, longest))
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=60)
    finish(folder, "killed")
    with Store(folder / "whole" / "runs.sqlite") as whole, Store(folder / "killed" / "runs.sqlite") as killed:
        assert equal_records(whole.all_records(), killed.all_records())
    names = {path.name for path in (folder / "whole").iterdir()}
    assert names == {path.name for path in (folder / "killed").iterdir() if "-wal" not in path.name}
    assert (folder / "whole" / "tiny.md").read_bytes() == (folder / "killed" / "tiny.md").read_bytes()


def test_three_sudden_ends(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 3)


@pytest.mark.long
def test_thirty_sudden_ends(tmp_path: Path) -> None:
    kill_and_resume(tmp_path, 30)


@pytest.mark.long
def test_two_commands_on_one_store(tmp_path: Path) -> None:
    write_tiny_table(tmp_path)
    spec_of_file(ModelFile.read(tmp_path / "two_hop.py"))
    both = [start(tmp_path, "shared"), start(tmp_path, "shared")]
    for process in both:
        _, said = process.communicate(timeout=300)
        assert process.returncode == 0, said.decode()
    finish(tmp_path, "alone")
    with Store(tmp_path / "shared" / "runs.sqlite") as one, Store(tmp_path / "alone" / "runs.sqlite") as two:
        assert equal_records(one.all_records(), two.all_records())

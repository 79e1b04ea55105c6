"""Several processes: what a launcher tells them, how they meet, and that they train as one does."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import HashStore

import training_worker as worker
from plap.errors import InputError
from plap.training.devices import choose_device, fresh_store, local_rank, restart_count, world_size
from plap.training.pieces import train_in_pieces
from torchrun import torchrun

WORKER = Path(worker.__file__)


@pytest.fixture(scope="module")
def alone() -> dict[str, Any]:
    result = train_in_pieces(worker.pieces(), worker.CONFIG)
    return {"history": worker.history(result), "logits": result.logits}


def check(folder: Path, processes: int, alone: dict[str, Any]) -> None:
    """Every process has the losses and the predictions of one that was alone."""
    for rank in range(processes):
        result = json.loads((folder / f"rank{rank}.json").read_text())
        assert result["size"] == processes
        for name, values in alone["history"].items():
            assert result["history"][name] == pytest.approx(values, abs=1e-4), name
        torch.testing.assert_close(torch.tensor(result["logits"]), alone["logits"], rtol=1e-3, atol=1e-3)


def test_two_processes_train_as_one_does(alone: dict[str, Any], tmp_path: Path) -> None:
    torchrun(str(WORKER), str(tmp_path), "halos", "none", processes=2)
    check(tmp_path, 2, alone)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank0.json", "rank1.json", "run.checkpoint"]


@pytest.mark.long
def test_three_of_which_one_is_killed_start_anew_and_end_as_one_does(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    torchrun(str(WORKER), str(tmp_path), "whole", "1", processes=3, restarts=1)
    check(tmp_path, 3, alone)
    assert json.loads((tmp_path / "rank0.json").read_text())["restarts"] == "1"


def test_two_machines_of_which_one_loses_its_process_end_as_one_does(
    alone: dict[str, Any], tmp_path: Path
) -> None:
    torchrun(str(WORKER), str(tmp_path), "whole", "1", agents=2, restarts=1)
    check(tmp_path, 2, alone)
    restarts = [json.loads((tmp_path / f"rank{rank}.json").read_text())["restarts"] for rank in range(2)]
    assert "1" in restarts  # each agent counts its own; the other may have seen no process of its own fail


SOON = timedelta(minutes=10)


def test_traces_of_an_earlier_meeting_mislead_nobody() -> None:
    store = HashStore()
    store.set("plap/number/1", "of a process that has ended")
    store.set("plap/meeting", json.dumps({"name": "earlier", "numbers": {"1": "of yet another"}}))
    found = {}

    def come(rank: int) -> None:
        fresh = fresh_store(store, rank, 3, SOON)
        fresh.set(f"here/{rank}", "yes")
        found[rank] = fresh

    threads = [threading.Thread(target=come, args=(rank,)) for rank in (2, 0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1, 2]
    assert all(found[rank].check([f"here/{k}" for k in range(3)]) for rank in range(3))


@pytest.mark.parametrize("rank", [0, 1])
def test_whoever_is_left_alone_gives_up(rank: int) -> None:
    with pytest.raises(InputError, match="one of them did not arrive in time"):
        fresh_store(HashStore(), rank, 2, timedelta(seconds=0.05))


@pytest.mark.parametrize(
    ("read", "name", "least"),
    [
        (world_size, "WORLD_SIZE", 1),
        (local_rank, "LOCAL_RANK", 0),
        (restart_count, "TORCHELASTIC_RESTART_COUNT", 0),
    ],
)
def test_a_number_that_is_none_is_refused(
    read: Callable[[], int], name: str, least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(name, raising=False)
    assert read() == least
    monkeypatch.setenv(name, "3")
    assert read() == 3
    for text in ("two", str(least - 1), ""):
        monkeypatch.setenv(name, text)
        with pytest.raises(InputError, match=f"{name} must be an integer of {least} or more, not {text!r}"):
            read()


def test_each_process_of_a_machine_has_a_device_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert choose_device("cuda") == torch.device("cuda:1")
    assert choose_device("cuda:0") == torch.device("cuda:0")
    monkeypatch.setenv("LOCAL_RANK", "first")
    with pytest.raises(InputError, match="LOCAL_RANK must be an integer of 0 or more, not 'first'"):
        choose_device("cuda")

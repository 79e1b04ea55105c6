"""Processes that meet where others have met before."""

from __future__ import annotations

import json
import threading
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore

from plap.errors import InputError
from plap.training.pieces.distributed import fresh_store

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
    with pytest.raises(InputError, match="one of them did not come in time"):
        fresh_store(HashStore(), rank, 2, timedelta(seconds=0.05))

"""A fresh start for processes that meet in a store where an earlier meeting has left its traces."""

from __future__ import annotations

import json
import secrets
import time
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store

from plap.errors import InputError

_PAUSE = 0.02


def fresh_store(store: Store, rank: int, size: int, patience: timedelta) -> PrefixStore:
    """A part of ``store`` that these processes, all alive now, share and nobody has written to.

    torchrun's agent keeps its store when it starts processes anew, with the addresses of those that have
    ended in it; a process that finds these before the new ones would try to connect to nobody. The number of
    the start would not tell them apart: where several machines take part, each counts its own.

    So every process shows a number that nobody else has, the first one gives out the numbers it sees with a
    name for the meeting, and whoever finds its own number among them agrees.
    """
    mine = secrets.token_hex(8)
    until = time.monotonic() + patience.total_seconds()
    name = _gather(store, mine, size, until) if rank == 0 else _follow(store, mine, rank, until)
    return PrefixStore(f"plap/{name}", store)


def _gather(store: Store, name: str, size: int, until: float) -> str:
    others = range(1, size)
    while not store.check([f"plap/{name}/{other}" for other in others]):
        shown = {other: _read(store, f"plap/number/{other}") for other in others}
        store.set("plap/meeting", json.dumps({"name": name, "numbers": shown}))
        _wait(until)
    return name


def _follow(store: Store, mine: str, rank: int, until: float) -> str:
    store.set(f"plap/number/{rank}", mine)
    while True:
        meeting = json.loads(_read(store, "plap/meeting") or "{}")
        if meeting.get("numbers", {}).get(str(rank)) == mine:
            name: str = meeting["name"]
            store.set(f"plap/{name}/{rank}", "here")
            return name
        _wait(until)


def _read(store: Store, key: str) -> str | None:
    return store.get(key).decode() if store.check([key]) else None


def _wait(until: float) -> None:
    if time.monotonic() > until:
        raise InputError("the processes cannot meet: one of them did not come in time")
    time.sleep(_PAUSE)

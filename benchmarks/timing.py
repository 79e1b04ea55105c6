"""Ratios in one process: candidates take turns, and medians are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


def interleaved(candidates: dict[str, Callable[[], object]], rounds: int, calls: int = 1) -> dict[str, float]:
    """Median seconds per call of each candidate: one untimed call, then ``rounds`` turns of ``calls``."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for call in candidates.values():
        call()
    for _ in range(rounds):
        for name, call in candidates.items():
            begin = time.perf_counter()
            for _ in range(calls):
                call()
            times[name].append((time.perf_counter() - begin) / calls)
    return {name: statistics.median(values) for name, values in times.items()}


@contextmanager
def threads(count: int) -> Iterator[None]:
    """PyTorch, and with it plap, on ``count`` threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)

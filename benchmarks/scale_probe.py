"""In a process of its own: forward + backward on one graph, how long an entry takes and how much memory.

Arguments are ``large NODES ENTRIES CHANNELS``, or a backend and ``NODES ENTRIES CHANNELS K`` to learn what
budgets do.
"""

from __future__ import annotations

import ctypes
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

import plap
from graphs import power_law
from timing import interleaved

SMALL = (13_752, 490_000)
P = 1.5
MU = 0.1
GIB = 2**30


def resident(field: str) -> int:
    """Bytes of this process: ``VmRSS`` now, ``VmHWM`` at most since :func:`forget_peak`."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def forget_peak() -> int:
    """Give back what is free, start a new peak, and return what is resident now."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return resident("VmRSS")


def train(x: Tensor, graph: plap.Graph, K: int, **options: Any) -> None:
    x.grad = None
    plap.propagate(x, graph, P, MU, K, **options).sum().backward()


def nanoseconds(graph: plap.Graph, channels: int, K: int, rounds: int) -> float:
    """Median of an entry's time in a step, forward and backward together, after one untimed round."""
    x = torch.randn(graph.num_nodes, channels, requires_grad=True)
    times = []
    for _ in range(1 + rounds):
        begin = time.perf_counter()
        train(x, graph, K)
        times.append(time.perf_counter() - begin)
    return 1e9 * statistics.median(times[1:]) / graph.num_entries / K


def large(nodes: int, entries: int, channels: int, K: int = 4) -> dict[str, Any]:
    """The whole process, graph and all; then an entry's time beside that on a small graph."""
    graph = power_law(nodes, entries)
    building = resident("VmHWM")
    before = forget_peak()
    ns_large = nanoseconds(graph, channels, K, rounds=2)
    training = resident("VmHWM")
    ns_small = nanoseconds(power_law(*SMALL), channels, K, rounds=7)
    return {
        "nodes": graph.num_nodes,
        "entries": graph.num_entries,
        "channels": channels,
        "K": K,
        "threads": torch.get_num_threads(),
        "peak_gib": max(building, training) / GIB,
        "peak_building_gib": building / GIB,
        "graph_and_libraries_gib": before / GIB,
        "peak_training_gib": training / GIB,
        "nanoseconds_large": ns_large,
        "nanoseconds_small": ns_small,
        "large_over_small": ns_large / ns_small,
    }


def budget(
    backend: Literal["fused", "torch"], nodes: int, entries: int, channels: int, K: int
) -> dict[str, Any]:
    """With the least budget and with none: what is allocated, beside what was told, and the time it takes."""
    graph, tiny = power_law(nodes, entries), power_law(100, 400)
    need = plap.memory_needed(graph.num_nodes, graph.num_entries, channels, K, backend=backend)
    x = torch.randn(graph.num_nodes, channels, requires_grad=True)
    ways: dict[str, dict[str, Any]] = {
        "least": {"backend": backend, "memory_budget": need.least},
        "free": {"backend": backend},
    }
    used = {}
    for name, options in ways.items():
        train(torch.randn(100, channels, requires_grad=True), tiny, K, backend=backend)
        x.grad = None
        before = forget_peak()
        train(x, graph, K, **options)
        used[name] = resident("VmHWM") - before - need.ends // 2  # the result and the gradient of x
    calls: dict[str, Callable[[], object]] = {
        name: partial(train, x, graph, K, **options) for name, options in ways.items()
    }
    seconds = interleaved(calls, rounds=3)
    return {
        "backend": backend,
        "nodes": graph.num_nodes,
        "entries": graph.num_entries,
        "K": K,
        "least_told_mb": need.least / 1e6,
        "least_used_mb": used["least"] / 1e6,
        "free_told_mb": need.usual / 1e6,
        "free_used_mb": used["free"] / 1e6,
        "edges_times_channels_mb": graph.num_entries * channels * x.element_size() / 1e6,
        "time_least_over_free": seconds["least"] / seconds["free"],
    }


def main() -> None:
    kind, *counts = sys.argv[1:]
    sizes = map(int, counts)
    if kind == "large":
        print(json.dumps(large(*sizes)))
    else:
        print(json.dumps(budget("fused" if kind == "fused" else "torch", *sizes)))


main()

"""In a process of its own: print the bytes that one forward + backward adds to the resident memory."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import torch

import plap
import textbook
from graphs import power_law


def resident(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise LookupError(field)


def main() -> None:
    way, channels = sys.argv[1], int(sys.argv[2])
    graph, small = power_law(13_752, 490_000), power_law(100, 400)
    leaf = torch.randn(graph.num_nodes, channels, requires_grad=True)

    def step(x: torch.Tensor, on: plap.Graph, edge_index: torch.Tensor) -> None:
        if way == "fused":
            plap.propagate(x, on, 1.5, 0.1, 4).sum().backward()
        else:
            textbook.propagate(x, edge_index, on.weight, 1.5, 0.1, 4).sum().backward()

    step(torch.randn(100, channels, requires_grad=True), small, small.edge_index)
    edge_index = graph.edge_index
    ctypes.CDLL(None).malloc_trim(0)  # memory that is free but still resident would hide what is used
    Path("/proc/self/clear_refs").write_text("5")
    before = resident("VmRSS")
    step(leaf, graph, edge_index)
    print(resident("VmHWM") - before)


main()

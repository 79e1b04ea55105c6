"""One of the processes of `plap bench ddp-scaling`: the first prints the median seconds of an epoch."""

from __future__ import annotations

import itertools
import statistics
import time

import torch

from graphs import power_law
from plap.data import split
from plap.minibatch import Pieces, join_ranks, train_in_pieces
from plap.training import Progress, RunConfig

NODES, ENTRIES, FEATURES = 40_000, 2_000_000, 128
PARTS, PER_BATCH, PER_STEP = 32, 4, 2
EPOCHS = 6


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = power_law(NODES, ENTRIES)
    x = torch.randn(NODES, FEATURES, generator=generator)
    y = torch.randint(10, (NODES,), generator=generator)
    part = torch.arange(NODES) % PARTS  # how good the parts are makes no difference to the time per entry
    pieces = Pieces(graph, x, y, split(y), part, parts_per_batch=PER_BATCH, pieces_per_step=PER_STEP)
    ends: list[float] = []

    def note(state: Progress) -> None:
        ends.append(time.perf_counter())

    with join_ranks("cpu") as ranks:
        config = RunConfig(p=1.5, hidden=64, max_epochs=EPOCHS)
        train_in_pieces(pieces, config, ranks=ranks, progress=note)
        if ranks.first:
            print(statistics.median(b - a for a, b in itertools.pairwise(ends)))


main()

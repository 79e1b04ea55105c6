"""One of the processes of `plap bench ddp-scaling`: the first prints median seconds as JSON.

Of an epoch, and of the evaluation in it, which the first process does alone on the whole graph.
"""

from __future__ import annotations

import itertools
import json
import statistics
import time

import torch

from graphs import communities
from plap.data import split
from plap.training import Progress, RunConfig
from plap.training.pieces import Pieces, join_ranks, train_in_pieces
from plap.training.pieces.model_on_pieces import Evaluation

NODES, ENTRIES, FEATURES = 40_000, 2_000_000, 128
PARTS, PER_BATCH, PER_STEP = 32, 4, 2
EPOCHS = 6


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    graph = communities(PARTS, NODES, ENTRIES)
    x = torch.randn(NODES, FEATURES, generator=generator)
    y = torch.randint(10, (NODES,), generator=generator)
    part = torch.arange(NODES) // (NODES // PARTS)
    pieces = Pieces(graph, x, y, split(y), part, parts_per_batch=PER_BATCH, pieces_per_step=PER_STEP)
    ends: list[float] = []
    evaluations: list[float] = []
    validate = Evaluation.validate

    def timed(self: Evaluation, also: torch.Tensor) -> tuple[float, float, list[float]]:
        begin = time.perf_counter()
        result = validate(self, also)
        evaluations.append(time.perf_counter() - begin)
        return result

    Evaluation.validate = timed  # type: ignore[method-assign]

    def note(state: Progress) -> None:
        ends.append(time.perf_counter())

    with join_ranks("cpu") as ranks:
        config = RunConfig(p=1.5, hidden=64, max_epochs=EPOCHS)
        train_in_pieces(pieces, config, ranks=ranks, progress=note)
        if ranks.first:
            epoch = statistics.median(b - a for a, b in itertools.pairwise(ends))
            print(json.dumps({"epoch": epoch, "evaluation": statistics.median(evaluations)}))


main()

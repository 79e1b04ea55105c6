"""How a search should end where members divide the nodes: replays from runs of many pGNNs.

    python benchmarks/together.py [--datasets citeseer ...] [--splits 2] [--root DATASETS] [--json-out FILE]

48 powers of the search grid are trained to the end with four seeds, each of which divides training and
validation nodes in its own way. From these runs, searches among random 36 of them are replayed 150 times: the
best twelve after 100 epochs, of these the best few after 300 (first seed), and their order by the mean of
some seeds. Eight members predict: the best configurations in turn. Test accuracy in per cent, mean of the
replays, by finalists, seeds of each, and configurations that predict together. Rows that the file holds
already are not run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from plap.data import load
from plap.data.splits import bagged
from plap.fitting import FitSettings
from plap.fitting.settings import MODEL
from plap.training import RunConfig, RunResult, SearchSpace, train_ensemble
from plap.training.halving import ranked
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("citeseer", "cora")
ENDINGS = ((3, 3, 1), (3, 3, 2), (4, 2, 2), (4, 2, 4), (6, 2, 2), (6, 2, 4))
"""Finalists, seeds of each, and how many of them predict together."""
CONFIGS, DRAWN, SEEDS, MEMBERS, REPLAYS = 48, 36, 4, 8, 150
EPOCHS, SECOND = (100, 300), 12


def shortened(run: RunResult, epochs: int) -> RunResult:
    """What a ranking would have seen of a run after so many epochs."""
    scores = run.history.val_score[:epochs]
    history = replace(run.history, val_loss=run.history.val_loss[:epochs])
    return replace(run, history=history, val_score=float(scores.max()))


def members(order: Sequence[RunConfig], together: int) -> list[RunConfig]:
    """The best configurations in turn, over as many divisions as there are."""
    best = order[:together]
    turns = range(min(MEMBERS, together * SEEDS))
    return [best[k % together].with_values(seed=(k % together + k // together) % SEEDS) for k in turns]


def measure(dataset: str, split: int, *, root: str | None = None) -> Row:
    """All runs on one split, and the mean accuracy of the replays for each ending."""
    data = load(dataset, root)
    parts = usual_split(data, split)
    space = SearchSpace(FitSettings(seed=0).config(MODEL))
    configs = [c for c in space.draw(CONFIGS, 100 + split) if not space.in_addition(c)]
    bags = bagged(parts, data.y, 0)
    ensemble = train_ensemble(data.graph, data.x, data.y, bags, configs, list(range(SEEDS)), task=data.task)
    runs = {run.config: run for run in ensemble.runs}
    said_by = {c: data.task.probabilities(run.logits)[parts.test] for c, run in runs.items()}
    nodes, known = int(parts.val.sum()), data.y[parts.test]
    generator = np.random.default_rng(1)
    found: dict[tuple[int, int, int], list[float]] = {ending: [] for ending in ENDINGS}
    for _ in range(REPLAYS):
        alive = [configs[k] for k in generator.choice(len(configs), DRAWN, replace=False)]
        alive = ranked(alive, [shortened(runs[c], EPOCHS[0]) for c in alive], 1, nodes)[:SECOND]
        alive = ranked(alive, [shortened(runs[c], EPOCHS[1]) for c in alive], 1, nodes)
        for ending in ENDINGS:
            finalists, seeds, together = ending
            last = alive[:finalists]
            of_all = [runs[c.with_values(seed=seed)] for c in last for seed in range(seeds)]
            chosen = members(ranked(last, of_all, seeds, nodes), together)
            said = torch.stack([said_by[c] for c in chosen]).mean(0).argmax(1)
            found[ending].append(100 * float((said == known).double().mean()))
    return {"x".join(map(str, ending)): round(float(np.mean(values)), 2) for ending, values in found.items()}


def summary(rows: list[Row]) -> list[str]:
    """One line per ending: the mean over all splits, then each of them."""
    lines = []
    for finalists, seeds, together in ENDINGS:
        values = [row[f"{finalists}x{seeds}x{together}"] for row in rows]
        each = ", ".join(
            f"{v:.1f} ({row['dataset']} {row['split']})" for v, row in zip(values, rows, strict=True)
        )
        lines.append(
            f"{finalists} finalists, {seeds} seeds, {together} together: {np.mean(values):.2f}; {each}"
        )
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 2, "together.json")
    jobs = [{"dataset": name, "split": k} for k in range(options.splits) for name in options.datasets]
    print("\n".join(summary(complete(options.json_out, jobs, partial(measure, root=options.root)))))


if __name__ == "__main__":
    main()

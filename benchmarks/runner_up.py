"""What the runner-up of a search adds to the winner: test accuracy with three members of each.

    python benchmarks/runner_up.py [--datasets texas ...] [--splits 5] [--root DATASETS] [--json-out FILE]

The search is that of a default ``plap fit``, with the seed 0. The two are combined whatever their scores; a
fit does so only where validation cannot tell them apart. Rows that the file holds already are not run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from functools import partial
from unittest.mock import patch

from plap.data import load
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.training import RunResult, combine
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("chameleon-filtered", "texas", "cornell", "wisconsin", "chameleon", "cora", "citeseer", "pubmed")


def measure(dataset: str, split: int, *, root: str | None = None) -> Row:
    """The search on one split, and the accuracies in per cent."""
    data = load(dataset, root)
    parts = usual_split(data, split)
    with patch("plap.training.halving.as_good", lambda *_: True):
        found = fit_model(data.graph, data.x, data.y, parts, FitSettings(seed=0, seeds=6), task=data.task)
    winner = [run for run in found.members if found.is_of_winner(run)]

    def accuracy(runs: Sequence[RunResult]) -> float:
        said = combine(runs, data.task).predictions
        return round(100 * float((said == data.y)[parts.test].double().mean()), 2)

    return {
        "winner": accuracy(winner),
        "both": accuracy(found.members),
        "models": [config.model for config in (found.config, *found.runners_up)],
    }


def summary(rows: list[Row]) -> list[str]:
    """One line per dataset."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == name]
        before, after = (statistics.fmean(row[key] for row in mine) for key in ("winner", "both"))
        gains = [row["both"] - row["winner"] for row in mine]
        error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
        lines.append(
            f"{name}: {len(mine)} splits, winner {before:.1f}, both {after:.1f}, "
            f"gain {statistics.fmean(gains):+.1f} ± {error:.1f}"
        )
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 5, "runner_up.json")
    jobs = [{"dataset": name, "split": k} for k in range(options.splits) for name in options.datasets]
    rows = complete(options.json_out, jobs, partial(measure, root=options.root))
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()

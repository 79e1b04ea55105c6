"""How strong a weight decay pGNNs want: validation accuracy by weight decay, over settings of the rest.

    python benchmarks/weight_decay.py [--datasets texas ...] [--splits 2] [--root DATASETS] [--json-out FILE]

18 powers (three p, three μ, two learning rates; K = 4, dropout 0.5) are trained once per weight decay, for at
most 300 epochs. A row has their mean validation accuracy in per cent and that of the best five. No test label
is read. Rows that the file holds already are not run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import statistics
from functools import partial
from typing import Any

from plap.data import load
from plap.training import RunConfig, SearchSpace, train_runs
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = (
    "texas", "wisconsin", "cornell", "cora", "citeseer", "chameleon-filtered", "chameleon", "pubmed", "photo",
    "actor",
)  # fmt: skip
DECAYS = (0.0, 5e-4, 5e-3, 2e-2)
BEST = 5
SETTINGS: dict[str, Any] = {
    "penalty": ("power",), "p": (1.0, 1.5, 2.0), "mu": (0.01, 0.1, 1.0), "K": (4,), "lr": (0.01, 0.05),
    "dropout": (0.5,),
}  # fmt: skip


def measure(dataset: str, split: int, weight_decay: float, *, root: str | None = None) -> Row:
    """All settings with one weight decay on one split: validation accuracies in per cent."""
    data = load(dataset, root)
    base = RunConfig(seed=split, max_epochs=300, patience=100)
    configs = SearchSpace(base, **SETTINGS, weight_decay=(weight_decay,)).configs()
    runs = train_runs(data.graph, data.x, data.y, configs, usual_split(data, split), task=data.task)
    scores = sorted(100 * run.val_score for run in runs)
    return {"mean": round(statistics.fmean(scores), 2), "best": round(statistics.fmean(scores[-BEST:]), 2)}


def summary(rows: list[Row]) -> list[str]:
    """One line per dataset: for every weight decay the mean over splits, and that of the best settings."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        told = []
        for decay in DECAYS:
            mine = [row for row in rows if (row["dataset"], row["weight_decay"]) == (name, decay)]
            if mine:
                mean, best = (statistics.fmean(row[key] for row in mine) for key in ("mean", "best"))
                told.append(f"{decay:g}: {mean:.1f} ({best:.1f})")
        splits = len({row["split"] for row in rows if row["dataset"] == name})
        lines.append(f"{name}, {splits} splits: {', '.join(told)}")
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 2, "weight_decay.json")
    jobs = [
        {"dataset": name, "split": k, "weight_decay": decay}
        for name in options.datasets
        for k in range(options.splits)
        for decay in DECAYS
    ]
    print("\n".join(summary(complete(options.json_out, jobs, partial(measure, root=options.root)))))


if __name__ == "__main__":
    main()

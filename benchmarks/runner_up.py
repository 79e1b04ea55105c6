"""What the runner-up of a search adds to the winner: test accuracy with three members of each.

    python benchmarks/runner_up.py [--datasets texas ...] [--splits 5] [--root DATASETS] [--json-out FILE]

The search is that of a default ``plap fit``, with the seed 0. The two are combined whatever their scores; a
fit does so only where validation cannot tell them apart. Rows that the file holds already are not run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torch import Tensor

from plap.data import GraphData, load, split
from plap.fitting import FitSettings
from plap.fitting.search import _spaces
from plap.fitting.settings import MODEL
from plap.reporting.figures.figure import HOMOPHILIC
from plap.training import combine, tune

SETS = ("chameleon-filtered", "texas", "cornell", "wisconsin", "chameleon", "cora", "citeseer", "pubmed")


def measure(data: GraphData, index: int) -> dict[str, Any]:
    """The search on one split, and the accuracies in per cent."""
    if data.splits is not None and data.name.endswith("-filtered"):
        parts = split(data, "public", index=index)
    else:
        parts = split(data, preset="sparse" if data.name in HOMOPHILIC else "dense", seed=index)
    settings = FitSettings(seed=0)
    spaces = _spaces(settings.config(MODEL), settings, data.graph, data.y, parts)
    with patch("plap.training.tuning._as_good", lambda *_: True):
        found = tune(data.graph, data.x, data.y, parts, space=spaces, seed=0, task=data.task)
    winner = [run for run in found.finalists if run.config.with_values(seed=0) == found.best]

    def accuracy(probabilities: Tensor) -> float:
        right = probabilities.argmax(1)[parts.test] == data.y[parts.test]
        return round(100 * float(right.double().mean()), 2)

    return {
        "dataset": data.name,
        "split": index,
        "winner": accuracy(combine(winner, data.task).probabilities),
        "both": accuracy(combine(found.finalists, data.task).probabilities),
        "models": [found.best.model, None if found.runner_up is None else found.runner_up.model],
    }


def summary(rows: list[dict[str, Any]]) -> list[str]:
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--json-out", type=Path, default=Path("benchmarks/runner_up.json"))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(options.json_out.read_text()) if options.json_out.exists() else []
    done = {(row["dataset"], row["split"]) for row in rows}
    for index in range(options.splits):
        for name in options.datasets:
            if (name, index) not in done:
                rows.append(measure(load(name, options.root), index))
                options.json_out.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()

"""The search of ``plap fit`` beside tuned classic networks: test accuracy on the same splits.

    python benchmarks/rivals.py [--datasets texas ...] [--splits 3] [--bagging] [--root DATASETS]
                                [--json-out FILE]

Every method is searched by validation with the same budget of epochs and predicts with an ensemble of four:
plap's own models as a default fit chooses them, and each rival by its own grid with 64 hidden units (GAT:
eight heads of eight). With --bagging, all members of all methods divide training and validation nodes anew,
as those of a default fit do. Test labels are read once, at the end. Rows that the file holds already are not
run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import os
import statistics
import time
from dataclasses import replace
from functools import partial

from plap.data import load
from plap.data.splits import bagged
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.fitting.settings import MODEL
from plap.training import combine
from plap.training.halving import usual_budget
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("texas", "cornell", "wisconsin", "chameleon-filtered", "chameleon", "cora", "citeseer", "actor")
PLAP = "plap"
RIVALS = ("mlp", "gcn", "sage", "gat", "sgc", "appnp", "gprgnn")
HIDDEN = dict.fromkeys(RIVALS, 64) | {"gat": 8}
"""Hidden units of a rival; GAT's, of each of its eight heads."""
MEMBERS = 4


def measure(dataset: str, split: int, method: str, *, bagging: bool = False, root: str | None = None) -> Row:
    """One method on one split: accuracies in per cent, what was chosen, and processor time."""
    data = load(dataset, root)
    parts = usual_split(data, split)
    budget = usual_budget(data.graph, data.x, models=2)
    settings = FitSettings(seeds=MEMBERS, time_limit=None, budget=budget)
    if method != PLAP:
        settings = replace(settings, hidden=HIDDEN[method])
    begin = os.times()
    started = time.perf_counter()
    model = MODEL if method == PLAP else method
    divided = bagged(parts, data.y) if bagging else parts
    found = fit_model(data.graph, data.x, data.y, divided, settings, model, task=data.task)
    end = os.times()
    right = combine(found.members, data.task).predictions == data.y
    return {
        "test": round(100 * float(right[parts.test].double().mean()), 2),
        "validation": round(100 * statistics.fmean(run.val_score for run in found.members), 2),
        "chosen": found.config.model,
        "seconds": round(time.perf_counter() - started, 1),
        "cpu_seconds": round(sum(end[:4]) - sum(begin[:4]), 1),
    }


def summary(rows: list[Row]) -> list[str]:
    """One line per dataset: the means of all methods, over splits on which all of them were run."""
    lines = []
    for name, bags in dict.fromkeys((row["dataset"], row.get("bagging", False)) for row in rows):
        mine = {
            (row["split"], row["method"]): row["test"]
            for row in rows
            if (row["dataset"], row.get("bagging", False)) == (name, bags)
        }
        splits = [
            k for k in sorted({split for split, _ in mine}) if {(k, m) for m in (PLAP, *RIVALS)} <= {*mine}
        ]
        if not splits:
            continue
        means = {m: statistics.fmean(mine[k, m] for k in splits) for m in (PLAP, *RIVALS)}
        best = max(RIVALS, key=lambda rival: means[rival])
        told = ", ".join(f"{method} {mean:.1f}" for method, mean in means.items())
        lines.append(
            f"{name}{', bagging' if bags else ''}, {len(splits)} splits: {told}; "
            f"ahead of {best} by {means[PLAP] - means[best]:+.1f}"
        )
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 3, "rivals.json", flags=("bagging",))
    jobs = [
        {"dataset": name, "split": k, "method": method} | ({"bagging": True} if options.bagging else {})
        for k in range(options.splits)
        for name in options.datasets
        for method in (PLAP, *RIVALS)
    ]
    rows = complete(options.json_out, jobs, partial(measure, root=options.root))
    print("\n".join(summary([row for row in rows if row.get("bagging", False) == options.bagging])))


if __name__ == "__main__":
    main()

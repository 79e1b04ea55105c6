"""What bagging brings: default fits in which every member divides training and validation nodes anew, or not.

    python benchmarks/bagging.py [--datasets texas ...] [--splits 4] [--root DATASETS] [--json-out FILE]

Test accuracy and log loss of the ensemble of eight, as ``plap fit`` reports them, on stratified splits:
sparse ones (2.5/2.5/95) of homophilic graphs, dense ones (60/20/20) of the others. Rows that the file holds
already are not run again.

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import os
import statistics
from functools import partial

import plap
from plap.data import load
from saved_rows import Row, complete, usual_options
from splits import usual_split

SETS = ("texas", "wisconsin", "citeseer", "chameleon", "cora", "cornell", "pubmed", "photo")


def measure(dataset: str, split: int, bagging: bool, *, root: str | None = None) -> Row:
    """One fit: accuracy in per cent, log loss, what was chosen, and processor time."""
    data = load(dataset, root)
    begin = os.times()
    result = plap.fit(data, usual_split(data, split), bagging=bagging, rivals=(), time_limit=None)
    end = os.times()
    return {
        "test": round(100 * result.model.scores["accuracy"], 2),
        "log_loss": round(result.model.scores["log_loss"], 4),
        "chosen": result.fitted.config.model,
        "cpu_seconds": round(sum(end[:4]) - sum(begin[:4]), 1),
    }


def summary(rows: list[Row]) -> list[str]:
    """One line per dataset: both means, and the mean gain with its standard error."""
    lines = []
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine = {(row["split"], row["bagging"]): row for row in rows if row["dataset"] == name}
        splits = [k for k, bagging in sorted(mine) if bagging and (k, False) in mine]
        if not splits:
            continue
        gains = [mine[k, True]["test"] - mine[k, False]["test"] for k in splits]
        error = statistics.stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else float("nan")
        means = {
            field: [statistics.fmean(mine[k, bagging][field] for k in splits) for bagging in (False, True)]
            for field in ("test", "log_loss", "cpu_seconds")
        }
        told = ", ".join(f"{field} {before:.3g} -> {after:.3g}" for field, (before, after) in means.items())
        gain = f"{statistics.fmean(gains):+.1f} ± {error:.1f}"
        lines.append(f"{name}, {len(splits)} splits: {told}; gain {gain}")
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    options = usual_options(__doc__, SETS, 4, "bagging.json")
    jobs = [
        {"dataset": name, "split": k, "bagging": bagging}
        for k in range(options.splits)
        for name in options.datasets
        for bagging in (False, True)
    ]
    rows = complete(options.json_out, jobs, partial(measure, root=options.root))
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    main()

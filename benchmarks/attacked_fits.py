"""Default fits of Cora under Metattack, and GCN and MLP found by the same search: one fit per seed.

    python benchmarks/attacked_fits.py [--models pgnn gcn mlp] [--rates 0 0.25 ...] [--seeds 10]
                                       [--root DATASETS] [--json-out FILE]

A row has the test accuracy and what validation chose; "pgnn" is a default fit, which tries other models too
where linked nodes differ. The seed is that of the search and of training; the split is the published one.
Rows that the file holds already are not run again. DATASETS is a folder in the layout of ``plap.data.load``;
$PLAP_DATA by default.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
from functools import partial
from pathlib import Path

from plap.data import load, split
from plap.fitting import FitSettings
from plap.fitting.search import fit_model
from plap.models import find_model
from saved_rows import Row, complete

MODELS = ("pgnn", "gcn", "mlp")
RATES = ("0", "0.05", "0.1", "0.15", "0.2", "0.25")


def measure(model: str, rate: str, seed: int, *, root: str | None = None) -> Row:
    """One fit: accuracy in per cent of the ensemble, and the labels of winner and runners-up."""
    data = load(f"cora-metattack:rate={rate}", root)
    parts = split(data, "public")
    settings = FitSettings(seed=seed, time_limit=None)
    found = fit_model(data.graph, data.x, data.y, parts, settings, model, task=data.task)
    right = found.ensemble.predictions == data.y
    chosen = [found.config, *found.runners_up]
    return {
        "test": round(100 * float(right[parts.test].double().mean()), 2),
        "chosen": [find_model(config.model).label_of(config.parameters) for config in chosen],
    }


def summary(rows: list[Row]) -> list[str]:
    """One line per model and rate."""
    lines = []
    cells = dict.fromkeys((row["model"], row["rate"]) for row in rows)
    for model, rate in sorted(cells, key=lambda cell: (MODELS.index(cell[0]), float(cell[1]))):
        here = [row for row in rows if (row["model"], row["rate"]) == (model, rate)]
        found = [row["test"] for row in here]
        spread = statistics.stdev(found) if len(found) > 1 else float("nan")
        winners = [row["chosen"][0] for row in here]
        counts = ", ".join(f"{name} {winners.count(name)}" for name in dict.fromkeys(winners))
        lines.append(
            f"{model} {rate}: {statistics.fmean(found):.1f} ± {spread:.1f}, {len(found)} seeds ({counts})"
        )
    return lines


def main() -> None:
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rates", nargs="+", default=list(RATES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--json-out", type=Path, default=Path("benchmarks/attacked_fits.json"))
    options = parser.parse_args()
    jobs = [
        {"model": model, "rate": rate, "seed": seed}
        for model, rate, seed in itertools.product(options.models, options.rates, range(options.seeds))
    ]
    print("\n".join(summary(complete(options.json_out, jobs, partial(measure, root=options.root)))))


if __name__ == "__main__":
    main()

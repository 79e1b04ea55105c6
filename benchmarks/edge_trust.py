"""How well edge trust and three simple rivals tell original edges from random ones, as ROC-AUC.

    python benchmarks/edge_trust.py --root DATASETS [--datasets cora photo computers] [--rates 0.25 0.5]
        [--seeds 1] [--members 4] [--epochs 200] [--gat-epochs 200] [--preset sparse] [--json-out FILE]

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from plap.data import load
from plap.insight import compare_trust
from plap.insight.trust_comparison import SCORES
from plap.training import RunConfig

RIVALS = ("cosine", "jaccard", "attention")


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row for each dataset, rate and seed."""
    config = RunConfig(
        p=options.p, mu=options.mu, K=options.K, max_epochs=options.epochs, patience=min(100, options.epochs)
    )
    epochs = options.gat_epochs
    gat = RunConfig(
        model="gat", hidden=8, lr=0.005, dropout=0.6, max_epochs=epochs, patience=min(100, epochs)
    )
    rows = []
    for name in options.datasets:
        data = load(name, options.root)
        for rate in options.rates:
            for seed in range(options.seeds):
                begin = time.process_time()
                found = compare_trust(
                    data, rate, preset=options.preset, members=options.members, config=config, gat=gat,
                    seed=seed,
                )  # fmt: skip
                row = asdict(found) | {"cpu_seconds": time.process_time() - begin}
                rows.append(row)
                print(json.dumps(row), file=sys.stderr)
    return rows


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """One line a dataset and rate: ours, the rivals, and whether ours is above each of them."""
    lines = []
    for name, rate in dict.fromkeys((row["dataset"], row["rate"]) for row in rows):
        mine = [row for row in rows if (row["dataset"], row["rate"]) == (name, rate)]
        mean = {score: fmean(row["auc"][score] for row in mine) for score in SCORES}
        beaten = all(mean["trust"] > mean[rival] for rival in RIVALS)
        scores = ", ".join(f"{label} {mean[score]:.3f}" for score, label in SCORES.items())
        lines.append(f"{name}, {rate:g} random: {scores}; {'beats each rival' if beaten else 'beaten'}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--datasets", nargs="+", default=["cora", "photo", "computers"])
    parser.add_argument("--rates", nargs="+", type=float, default=[0.25, 0.5])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--members", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--gat-epochs", type=int, default=200)
    parser.add_argument("--preset", default="sparse", choices=("sparse", "dense"))
    parser.add_argument("--p", type=float, default=1.5)
    parser.add_argument("--mu", type=float, default=0.1)
    parser.add_argument("--K", type=int, default=4)
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    rows = run(options)
    print("\n".join(verdicts(rows)))
    if options.json_out:
        settings = {name: value for name, value in vars(options).items() if name not in ("root", "json_out")}
        result = {"settings": settings, "threads": torch.get_num_threads(), "rows": rows}
        options.json_out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Many runs as one program against the same runs one after another, and what tuning reaches in which time.

    python benchmarks/training.py --root DATASETS [--only speed|tuning] [--runs 100] [--json-out FILE]

DATASETS is a folder in the layout of ``plap.data.load``; $PLAP_DATA by default.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from plap.data import GraphData, Split, load, split
from plap.training import (
    RunConfig,
    SearchSpace,
    accuracy,
    accuracy_interval,
    train_ensemble,
    train_runs,
    tune,
)

BLOCKS = {
    "model": "deep-pgnn", "hidden": 64, "K": 1, "layers": 5, "mlp_layers": 1, "norm": "layer",
    "prenorm": True, "concat": True, "residual": True, "output": "linear",
}  # fmt: skip
SPEED: tuple[tuple[str, float, int, dict[str, Any]], ...] = (
    ("texas", 5.0, 200, {}),
    ("cora", 2.0, 200, {}),
    ("texas", 3.0, 50, BLOCKS),
    ("chameleon", 1.0, 10, BLOCKS),
)
"""Data set, wanted ratio, epochs, and what differs from the paper's model."""

TUNING = ("cora", "texas", "wisconsin", "actor")
MINUTES, CORA_ACCURACY, POINTS_BELOW_MLP = 3, 0.78, 0.01


def split_of(data: GraphData, seed: int) -> Split:
    if data.name == "cora":
        return split(data, "paper", preset="sparse", seed=2021)
    return split(data, "chien", preset="dense", seed=seed)


def runs_of(count: int, epochs: int, p: float, values: dict[str, Any]) -> list[RunConfig]:
    return [RunConfig(**values, p=p, seed=seed, max_epochs=epochs, patience=epochs) for seed in range(count)]


def seconds(data: GraphData, part: Split, batches: list[list[RunConfig]]) -> float:
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter  # others may be busy
    begin = clock()
    for configs in batches:
        train_runs(data.graph, data.x, data.y, configs, part)
    return clock() - begin


def speed(root: str | None, runs: int, rounds: int, p: float) -> list[dict[str, Any]]:
    """All runs at once, and every tenth of them one after another, in turn; the median ratio."""
    rows = []
    for name, wanted, epochs, values in SPEED:
        data = load(name, root)
        part = split_of(data, 0)
        configs = runs_of(runs, epochs, p, values)
        alone = configs[:: max(1, runs // 10)]
        seconds(data, part, [runs_of(2, 2, p, values), runs_of(1, 2, p, values)])
        pairs = []
        for _ in range(rounds):
            together = seconds(data, part, [configs]) / runs
            pairs.append((together, seconds(data, part, [[config] for config in alone]) / len(alone)))
        ratios = sorted(one / many for many, one in pairs)
        rows.append(
            {
                "data": name, "model": configs[0].model, "runs": runs, "epochs": epochs, "p": p,
                "threads": torch.get_num_threads(),
                "together_ms_per_run_epoch": 1e3 * min(many for many, _ in pairs) / epochs,
                "alone_ms_per_run_epoch": 1e3 * min(one for _, one in pairs) / epochs,
                "ratio": ratios[len(ratios) // 2], "ratios": ratios, "wanted": wanted,
            }
        )  # fmt: skip
        print(json.dumps(rows[-1]), file=sys.stderr)
    return rows


def searched(data: GraphData, part: Split, model: Any, seed: int) -> dict[str, Any]:
    """Tune, train the ensemble, and only then look at the test labels."""
    begin = time.perf_counter()
    found = tune(data.graph, data.x, data.y, part, space=SearchSpace(RunConfig(model=model)), seed=seed)
    ensemble = train_ensemble(data.graph, data.x, data.y, part, found.best)
    took = time.perf_counter() - begin
    share = accuracy(data.y[part.test], ensemble.predictions[part.test])
    total = int(part.test.sum())
    interval = accuracy_interval(round(share * total), total)
    return {"accuracy": share, "interval": interval, "seconds": took, "best": found.best.to_dict()}


def tuning(root: str | None, seeds: int) -> list[dict[str, Any]]:
    rows = []
    for name in TUNING:
        data = load(name, root)
        for seed in range(1 if name == "cora" else seeds):
            part = split_of(data, seed)
            row: dict[str, Any] = {"data": name, "seed": seed, "threads": torch.get_num_threads()}
            for model in ("pgnn", "mlp"):
                row[model] = searched(data, part, model, seed)
            rows.append(row)
            print(json.dumps(row), file=sys.stderr)
    return rows


def verdicts(result: dict[str, Any]) -> list[str]:
    """One line a figure: what was measured, what is wanted."""
    lines = [
        f"{row['data']}: {row['runs']} runs of {row['model']} at once {row['ratio']:.1f}x as fast "
        f"(wanted {row['wanted']:g}x)"
        for row in result.get("speed", [])
    ]
    by_name: dict[str, list[dict[str, Any]]] = {}
    for row in result.get("tuning", []):
        by_name.setdefault(row["data"], []).append(row)
    for name, rows in by_name.items():
        pgnn, mlp = (sum(row[model]["accuracy"] for row in rows) / len(rows) for model in ("pgnn", "mlp"))
        longest = max(row["pgnn"]["seconds"] for row in rows)
        wanted = f"{CORA_ACCURACY:.1%}" if name == "cora" else f"{mlp - POINTS_BELOW_MLP:.1%}"
        lines.append(
            f"{name}: pgnn {pgnn:.1%}, mlp {mlp:.1%} over {len(rows)} splits (wanted {wanted}); "
            f"at most {longest:.0f} s (wanted {60 * MINUTES} s)"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--only", choices=("speed", "tuning"))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--p", type=float, default=2.0)
    parser.add_argument("--seeds", type=int, default=3, help="splits of texas, wisconsin and actor")
    parser.add_argument("--json-out", type=Path)
    options = parser.parse_args()
    result: dict[str, Any] = {}
    if options.only != "tuning":
        result["speed"] = speed(options.root, options.runs, options.rounds, options.p)
    if options.only != "speed":
        result["tuning"] = tuning(options.root, options.seeds)
    print("\n".join(verdicts(result)))
    if options.json_out:
        options.json_out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()

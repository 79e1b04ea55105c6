"""Poisoning and attacks on single nodes, on the models of `plap reproduce adaptive-attack`; resumes a file.

    python benchmarks/attacks.py [--seeds 3] [--nodes 30] [--kinds poisoning] [--models GCN,...]
        [--json-out FILE] [--root FOLDER]

Poisoning is by transfer: the attack knows a model trained on the clean graph, and the model that is judged is
trained anew on the attacked one. Single nodes are attacked by edges of their own, after training.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from plap.data import GraphData, Split, load, split
from plap.insight.attack import AttackCurve, attack_curve, retraining
from plap.insight.members import members_of
from plap.reporting.figures.adaptive_attack import MODELS
from plap.training import RunConfig, train_runs

DATA = "cora-metattack:rate=0"
STEPS = 40
KINDS = ("poisoning", "single nodes")


def measure(data: GraphData, parts: Split, label: str, kind: str, seed: int, nodes: int) -> AttackCurve:
    """One attack with growing budgets on one model."""
    config = RunConfig(**MODELS[label], seed=seed, max_epochs=200, patience=100)
    runs = train_runs(data.graph, data.x, data.y, [config], parts, num_classes=data.num_classes)
    members = members_of(runs, data.x.shape[1], data.num_classes)
    judged = parts.test & data.known
    if kind == "poisoning":
        retrain = retraining(config, data.x, data.y, parts, 1)
        return attack_curve(
            members, data.x, data.graph, data.y, judged, (0.05, 0.1, 0.2), retrain=retrain, steps=STEPS,
            seed=seed,
        )  # fmt: skip
    order = judged.nonzero().squeeze(1)
    drawn = order[torch.randperm(order.numel(), generator=torch.Generator().manual_seed(seed))]
    single = torch.zeros_like(judged)
    single[drawn[:nodes]] = True
    return attack_curve(
        members, data.x, data.graph, data.y, single, (0.5, 1.0), local=True, steps=STEPS, seed=seed
    )


def main() -> None:
    """Measure what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--nodes", type=int, default=30, help="test nodes that are attacked one by one")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of them, by commas")
    parser.add_argument("--models", help="some of them, by commas; by default all")
    parser.add_argument("--json-out", type=Path, default=Path("benchmarks/attacks.json"))
    parser.add_argument("--root", help="folder of the benchmark data sets")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = json.loads(options.json_out.read_text()) if options.json_out.exists() else []
    done = {(row["model"], row["seed"], row["attack"]) for row in rows}
    data = load(DATA, options.root)
    models = options.models.split(",") if options.models else list(MODELS)
    for seed in range(options.seeds):
        parts = split(data, "public", seed=seed)
        for kind in options.kinds.split(","):
            for label in models:
                if (label, seed, kind) in done:
                    continue
                curve = measure(data, parts, label, kind, seed, options.nodes)
                points = {str(p.budget): [p.accuracy, p.random] for p in curve.points}
                rows.append(
                    {"model": label, "seed": seed, "attack": kind, "nodes": curve.nodes, "clean": curve.clean,
                     "accuracy and random by budget": points}
                )  # fmt: skip
                options.json_out.write_text(json.dumps(rows, indent=1) + "\n")
                print(rows[-1], flush=True)


if __name__ == "__main__":
    main()

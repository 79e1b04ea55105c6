"""A report as a fit of a citation graph might give it, made up but of the right shape."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from plap.reporting.fit_content import (
    ClassRow,
    ConfusionMatrix,
    DatasetFacts,
    EdgeRow,
    FitReport,
    NodeRow,
    Score,
    TrainingRun,
    TrialRow,
    finding,
)
from plap.reporting.node_sections import FeaturePart, MapNode, NeighbourPart, NodeSections, NodeStory

CLASSES = (
    "Theory",
    "Neural networks",
    "Rule learning",
    "Genetic algorithms",
    "Case based",
    "Reinforcement",
    "Probabilistic methods",
)
SCORES = (
    Score("PGNN", 0.804, 0.786, 0.821, "features and edges"),
    Score("GCN", 0.789, 0.770, 0.807, "features and edges", differs=False),
    Score("MLP", 0.577, 0.555, 0.599, "features alone", differs=True),
    Score("Label propagation", 0.664, 0.643, 0.685, "edges alone", differs=True),
)


def training_run(seed: int) -> TrainingRun:
    noise = np.random.default_rng(seed)
    epochs = 240 + 20 * seed
    at = np.arange(epochs)
    train = 1.9 * np.exp(-at / 40) + 0.12 + 0.03 * noise.random(epochs)
    val = 1.4 * np.exp(-at / 45) + 0.62 + 0.0004 * at + 0.01 * noise.random(epochs)
    score = 0.8 - 0.55 * np.exp(-at / 25) + 0.008 * noise.standard_normal(epochs)
    return TrainingRun(f"seed {seed}", train.tolist(), val.tolist(), score.tolist(), int(score.argmax()) + 1)


def trials(count: int = 48) -> tuple[TrialRow, ...]:
    noise = np.random.default_rng(1)
    made = []
    for k in range(count):
        p = (1.0, 1.5, 2.0, 2.5)[k % 4]
        score = 0.79 - 0.05 * abs(p - 1.5) - 0.04 * noise.random()
        config = {
            "p": p,
            "mu": float(10 ** noise.uniform(-2, 1)),
            "K": int(noise.choice([2, 4, 6, 8])),
            "lr": 0.01,
            "dropout": 0.5,
            "weight_decay": 5e-4,
        }
        made.append((config, float(score), 30 * 3 ** int(k % 12 == 1)))
    best = max(range(count), key=lambda k: made[k][1])
    return tuple(TrialRow(*values, chosen=k == best) for k, values in enumerate(made))


def report() -> FitReport:
    noise = np.random.default_rng(0)
    size = len(CLASSES)
    counts = noise.integers(0, 14, (size, size)) + np.diag(noise.integers(60, 400, size))
    return FitReport(
        dataset=DatasetFacts(
            "cora", 2708, 5278, 1433, 7, 140, 500, 2068, ("151 one-way edges were taken as going both ways.",)
        ),
        finding=finding(SCORES, 2068),
        scores=SCORES,
        confusion=ConfusionMatrix(CLASSES, counts.tolist()),
        per_class=tuple(
            ClassRow(
                name, 20, int(counts[k].sum()), 0.9 - 0.05 * k, 0.7 + 0.03 * k, math.sin(1 + k / 9) * 0.85
            )
            for k, name in enumerate(CLASSES)
        ),
        runs=tuple(training_run(seed) for seed in range(5)),
        trials=trials(),
        uncertain_nodes=tuple(
            NodeRow(
                f"paper-{n}",
                CLASSES[n % 7],
                0.34 + n / 400,
                CLASSES[(n + 2) % 7],
                0.33,
                CLASSES[n % 7] if n % 3 else None,
            )
            for n in range(20)
        ),
        doubted_edges=tuple(
            EdgeRow(
                f"paper-{7 * n}",
                f"paper-{1000 - 13 * n}",
                CLASSES[n % 7],
                CLASSES[(n + 3) % 7],
                0.004 * (n + 1),
            )
            for n in range(20)
        ),
        chosen={
            "p": 1.5,
            "mu": 0.1,
            "K": 4,
            "hidden": 16,
            "lr": 0.01,
            "dropout": 0.5,
            "weight decay": 5e-4,
            "seeds": 5,
        },
        provenance={
            "source": "Planetoid, github.com/kimiyoung/planetoid",
            "graph": "sha256 4b8f1c0d2e",
            "features": "sha256 9a02b7c411",
            "written": "2026-11-15 21:40",
            "duration": "1 min 52 s",
        },
        versions={"plap": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6"},
    )


def nodes() -> NodeSections:
    """Two explanations, and a map of 40 nodes of which 5 are wrong."""
    neighbours = [
        NeighbourPart(
            f"paper-with-a-long-name-{k}", CLASSES[k % 3], k % 3, 0.7 - 0.05 * k, None if k == 2 else 2.0**k
        )
        for k in range(5)
    ]
    features = [FeaturePart("word 17", "1", 0.5), FeaturePart("year", "1998", 0.9)]
    common: dict[str, Any] = {
        "features": features,
        "num_features": 1433,
        "num_neighbours": 9,
        "links": ((0, 1),),
    }
    certain = NodeStory(
        "paper-1", "least certain", CLASSES[0], 0, CLASSES[1], 0.6, 0.2, 0.55, neighbours=neighbours, **common
    )
    alone = replace(
        certain, node="paper-2", why="", known=None, neighbours=(), num_neighbours=0, links=(), hops=2
    )
    noise = np.random.default_rng(2)
    places = [
        MapNode(f"paper-{k}", x, y, k % 7, (k + (k < 5)) % 7)
        for k in range(40)
        for x, y in [3 * k % 7 + noise.normal(0, 0.3, 2)]
    ]
    return NodeSections((certain, alone), True, CLASSES, places, held_out=2068)

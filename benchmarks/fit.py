"""`plap bench fit`: what accuracy `plap fit` reaches in how many seconds, on a fixed set of graphs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import plap
from plap.data import GraphData, csbm, load, split
from plap.data.dataset import Provenance

LIMITS: tuple[str | None, ...] = ("5s", "15s", "60s", None)
"""Time limits; None: a whole search."""
SETS = ("texas", "cora", "citeseer", "chameleon-filtered")
"""Benchmarks that are measured as well where their files are."""
_CLASSES = 5


def run(root: str | None = None, picture: Path | None = None) -> dict[str, Any]:
    """Seconds and held-out accuracy, a row per graph and time limit; with ``picture``, also drawn."""
    _fit(csbm(phi=0.5, n=100, f=10, seed=9), "1s")  # kernels are loaded or compiled once
    rows = [_fit(data, limit) for data in _graphs(root) for limit in LIMITS]
    if picture is not None:
        _draw(rows, picture)
    return {"torch": torch.__version__, "threads": torch.get_num_threads(), "fit": rows}


def ring(nodes: int, edges: int, seed: int) -> GraphData:
    """Five classes in a ring: four of five edges lead to the next class, and features tell little."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, _CLASSES, nodes)
    members = [np.flatnonzero(y == k) for k in range(_CLASSES)]
    source, target = rng.integers(0, nodes, (2, edges))
    leads_on = rng.random(edges) < 0.8
    for k in range(_CLASSES):
        some = np.flatnonzero(leads_on & (y[source] == k))
        target[some] = rng.choice(members[(k + 1) % _CLASSES], some.size)
    x = rng.normal(size=(nodes, 16)) + 0.35 * rng.normal(size=(_CLASSES, 16))[y]
    return GraphData(
        name=f"ring of {nodes:,} nodes",
        graph=plap.Graph.from_edge_index(torch.from_numpy(np.stack([source, target])), num_nodes=nodes),
        x=torch.from_numpy(x).float(),
        y=torch.from_numpy(y),
        class_names=tuple(str(k) for k in range(_CLASSES)),
        provenance=Provenance("generated", {}, ()),
    )


def _graphs(root: str | None) -> Iterator[GraphData]:
    yield csbm(phi=-0.5, n=1000, f=60, d=6.0, seed=1)
    yield csbm(phi=0.5, n=1000, f=60, d=6.0, seed=2)
    yield ring(2_000, 8_000, seed=3)
    yield ring(20_000, 100_000, seed=4)
    for name in SETS:
        try:
            yield load(name, root)
        except plap.InputError:
            continue


def _fit(data: GraphData, limit: str | None) -> dict[str, Any]:
    """One fit with all rivals; the page is not written."""
    begin = time.perf_counter()
    result = plap.fit(data, split(data, seed=0), time_limit=limit)
    seconds = time.perf_counter() - begin
    scores = {method.name: method.scores["accuracy"] for method in result.methods}
    rivals = {name: score for name, score in scores.items() if name != result.methods[0].name}
    best = max(rivals, key=rivals.__getitem__)
    return {
        "graph": data.name,
        "limit": limit or "none",
        "seconds": seconds,
        "accuracy": result.methods[0].scores["accuracy"],
        "best_rival": best,
        "its_accuracy": rivals[best],
        "trials": len(result.methods[0].fitted.trials) if result.methods[0].fitted else 0,
    }


def _draw(rows: list[dict[str, Any]], picture: Path) -> None:
    from matplotlib.figure import Figure  # noqa: PLC0415  (slow to import)

    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(row["graph"] for row in rows):
        points = sorted((row["seconds"], 100 * row["accuracy"]) for row in rows if row["graph"] == name)
        axes.plot(*zip(*points, strict=True), marker="o", label=name)
    axes.set(xscale="log", xlabel="seconds, all rivals included", ylabel="accuracy on held-out nodes, %")
    axes.legend(fontsize="small")
    figure.savefig(picture, dpi=120)

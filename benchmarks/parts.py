"""`plap bench parts`: training in METIS parts against training on the whole graph."""

from __future__ import annotations

import statistics
from dataclasses import replace
from typing import Any

import torch
from torch.nn.functional import cross_entropy

import plap
from activations import activation_bytes
from plap.data import GraphData, Split, load, split
from plap.training import RunConfig, RunResult, build_module, train_runs
from plap.training.pieces import Pieces, train_in_pieces
from plap.training.pieces.cutting import Piece

SETS = ("computers", "cs")
PARTS, PER_BATCH = 32, 12
SEEDS = 3
CONFIG = RunConfig(p=2.0, mu=0.1, K=4, hidden=16)
RATE_IN_PARTS = 0.003
"""The gradient of a piece is noisier than the whole graph's, for which the rate is 0.01."""


def run(root: str | None = None) -> dict[str, Any]:
    """Accuracy and activation memory, a row a data set and share of labels."""
    rows = []
    for name in SETS:
        try:
            data = load(name, root)
        except plap.InputError as error:
            rows.append({"data": name, "skipped": str(error)})
            continue
        rows += [_row(data, preset) for preset in ("sparse", "dense")]
    settings = {"parts": PARTS, "parts_per_batch": PER_BATCH, "seeds": SEEDS, "rate_in_parts": RATE_IN_PARTS}
    return {"torch": torch.__version__, "config": CONFIG.to_dict(), "settings": settings, "parts": rows}


def _row(data: GraphData, preset: str) -> dict[str, Any]:
    masks = split(data, preset=preset, seed=0)
    configs = [replace(CONFIG, seed=seed) for seed in range(SEEDS)]
    whole = train_runs(data.graph, data.x, data.y, configs, masks)
    pieces = Pieces.of_parts(data.graph, data.x, data.y, masks, PARTS, parts_per_batch=PER_BATCH)
    parts = [train_in_pieces(pieces, replace(config, lr=RATE_IN_PARTS)) for config in configs]
    right = [[_accuracy(data, masks, result) for result in results] for results in (whole, parts)]
    full, largest = _memory(data, masks, pieces)
    return {
        "data": data.name,
        "labels": preset,
        "whole_accuracy": statistics.mean(right[0]),
        "parts_accuracy": statistics.mean(right[1]),
        "difference_points": 100 * (statistics.mean(right[1]) - statistics.mean(right[0])),
        "whole_deviation": statistics.stdev(right[0]),
        "parts_deviation": statistics.stdev(right[1]),
        "whole_activation_bytes": full,
        "parts_activation_bytes": largest,
        "activation_ratio": largest / full,
    }


def _accuracy(data: GraphData, masks: Split, result: RunResult) -> float:
    return float((result.logits.argmax(1) == data.y)[masks.test].double().mean())


def _memory(data: GraphData, masks: Split, pieces: Pieces) -> tuple[int, int]:
    """What a step keeps for its backward pass: of the whole graph, and of the largest piece of 3 epochs."""
    module = build_module(CONFIG, data.x.shape[1], data.num_classes).train()
    whole = _kept(module, pieces.whole(masks.train.nonzero().squeeze(1)))
    steps = (share for epoch in range(3) for step in pieces.steps(epoch) for share in step)
    return whole, max(_kept(module, pieces.training_piece(share)) for share in steps)


def _kept(module: torch.nn.Module, piece: Piece) -> int:
    graph = piece.graph
    there = [piece.x, graph.indptr, graph.indices, graph.weight, graph.degree, *module.parameters()]
    return activation_bytes(
        lambda: cross_entropy(module(piece.x, graph).index_select(0, piece.rows), piece.labels), there
    )

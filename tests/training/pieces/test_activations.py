"""What a training step keeps in memory, of the whole graph and of a piece."""

from __future__ import annotations

import torch
from torch import Tensor

from activations import activation_bytes
from plap.data import csbm, split
from plap.nn import PGNN
from plap.training.pieces import Piece, Pieces

HIDDEN, K = 16, 4


def kept(module: PGNN, piece: Piece) -> int:
    def forward() -> Tensor:
        logits = module(piece.x, piece.graph)
        assert isinstance(logits, Tensor)
        return logits[piece.rows].sum()

    graph = piece.graph
    there = [piece.x, graph.indptr, graph.indices, graph.weight, graph.degree, *module.parameters()]
    return activation_bytes(forward, there)


def test_a_piece_keeps_its_share_of_what_the_whole_graph_does() -> None:
    data = csbm(phi=0.7, n=600, f=20, d=8.0, seed=2)
    masks = split(data, seed=1)
    pieces = Pieces.of_parts(data.graph, data.x, data.y, masks, 16, parts_per_batch=4, cache=False)
    module = PGNN(20, HIDDEN, 2, p=1.5, K=K)
    whole = kept(module, pieces.whole(masks.train.nonzero().squeeze(1)))
    assert whole > K * 600 * HIDDEN * 4  # a step's result each, at least
    largest = max(kept(module, pieces.training_piece(share)) for step in pieces.steps(0) for share in step)
    assert 0.2 < largest / whole < 0.4


def test_a_tensor_kept_twice_counts_once_and_inputs_do_not() -> None:
    x = torch.ones(100, requires_grad=True)

    def forward() -> Tensor:
        twice = x * 2
        return (twice * twice).sum() + (twice.view(10, 10) * x.view(10, 10)).sum()

    assert activation_bytes(forward, [x]) == 400
    assert activation_bytes(forward) == 800

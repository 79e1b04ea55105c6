"""How modules are called on pieces, and that halos give what the whole graph gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import elu
from torch_geometric.nn import GATConv, GCNConv, GraphConv, SAGEConv

import problems
import tiny_training
from plap.errors import InputError
from plap.graph import Graph
from plap.models import ModelKind, Parameters, find_model, register_model, registry
from plap.training import RunConfig, build_module
from plap.training.modules import Halo, halo_of
from plap.training.pieces import Pieces, train_in_pieces
from plap.training.pieces.model_on_pieces import logits_of

GRAPH = problems.grid(14, 14)
X = problems.features(196, 5).float()
Y = (X[:, 0] > 0).long()
SPLIT = tiny_training.Masks(torch.arange(196) % 3 == 0, torch.arange(196) % 3 == 1)
BANDS = torch.arange(196) // 49


class TwoLayers(torch.nn.Module):
    hops = 2

    def __init__(self, layer: Any, inputs: int, outputs: int) -> None:
        super().__init__()
        self.first, self.second = layer(inputs, 8), layer(8, outputs)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        out: Tensor = self.second(elu(self.first(x, edge_index)), edge_index)
        return out


class TwoWeightedLayers(TwoLayers):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        assert edge_weight is not None
        out: Tensor = self.second(elu(self.first(x, edge_index, edge_weight)), edge_index, edge_weight)
        return out


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    for name, module, layer in [
        ("own-gat", TwoLayers, GATConv),
        ("own-gcn", TwoLayers, GCNConv),
        ("own-sage", TwoLayers, SAGEConv),
        ("weighted-gcn", TwoWeightedLayers, GCNConv),
        ("weighted-sum", TwoWeightedLayers, GraphConv),
    ]:
        register_model(
            ModelKind(
                name,
                Parameters,
                lambda c, i, o, m=module, k=layer: m(k, i, o),  # type: ignore[misc]
                takes="edge_index",
            )
        )


def weighted_grid() -> Graph:
    """Weights of 1 in the first band, others elsewhere."""
    i, j = GRAPH.edge_index
    weight = torch.where((i < 49) & (j < 49), 1.0, 1.0 + (i + j) % 3)
    return Graph.from_edge_index(GRAPH.edge_index, weight, 196)


def pieces(graph: Graph = GRAPH) -> Pieces:
    return Pieces(graph, X, Y, SPLIT, BANDS)


@torch.no_grad()
def on_halos(config: RunConfig, module: torch.nn.Module, cut: Pieces, halo: Halo) -> Tensor:
    result = torch.full((196, 2), torch.nan)
    for nodes in cut.groups():
        piece = cut.exact_piece(nodes, halo)
        assert piece.graph.num_nodes < 196
        result[piece.nodes] = logits_of(find_model(config.model), module, piece, 2)
    return result


@torch.no_grad()
def on_the_whole(config: RunConfig, module: torch.nn.Module, cut: Pieces) -> Tensor:
    return logits_of(find_model(config.model), module, cut.whole(torch.arange(196)), 2)


@pytest.mark.parametrize(
    ("model", "graph"),
    [
        *((name, GRAPH) for name in ("own-gat", "own-gcn", "own-sage", "pgnn", "gcn", "sage")),
        *((name, weighted_grid()) for name in ("weighted-gcn", "pgnn", "gcn", "sage")),
    ],
)
def test_halos_give_what_the_whole_graph_gives(model: str, graph: Graph) -> None:
    config, cut = tiny_training.config(model, p=1.5, K=2, hidden=8), pieces(graph)
    module = build_module(config, 5, 2).eval()
    halo = halo_of(config, module)
    assert halo is not None
    whole = on_the_whole(config, module, cut)
    torch.testing.assert_close(on_halos(config, module, cut, halo), whole, rtol=1e-5, atol=1e-6)
    nearer = Halo(halo.hops - 1 - (model in ("own-gat", "own-sage")), halo.rim_loops)
    assert not torch.allclose(on_halos(config, module, cut, nearer), whole, rtol=1e-3, atol=1e-3)


def test_a_module_that_knows_no_weights_is_trained_and_evaluated_on_halos() -> None:
    config = RunConfig(model="own-gat", max_epochs=3)
    a, b = (train_in_pieces(pieces(), config, evaluation=on) for on in ("halos", "whole"))
    torch.testing.assert_close(a.history.val_loss, b.history.val_loss, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(a.logits, b.logits, rtol=1e-4, atol=1e-5)


def test_weights_are_passed_on_every_piece_of_a_weighted_graph_or_on_none() -> None:
    first = next(share for step in pieces(weighted_grid()).steps(0) for share in step if 0 in share.nodes)
    piece = pieces(weighted_grid()).training_piece(first)
    assert bool((piece.graph.weight == 1).all())
    assert piece.weighted
    assert not pieces().training_piece(first).weighted


@pytest.mark.parametrize(("model", "graph"), [("own-sage", GRAPH), ("weighted-sum", weighted_grid())])
def test_a_piece_is_not_read_back_to_know_whether_it_is_weighted(model: str, graph: Graph) -> None:
    config, cut = RunConfig(model=model), pieces(graph)
    module = build_module(config, 5, 2).to("meta")
    piece = cut.training_piece(next(cut.steps(0))[0]).to("meta")
    logits = logits_of(find_model(model), module, piece, 2)  # the meta device has no numbers to read
    assert logits.shape == (piece.rows.shape[0], 2)


@pytest.mark.parametrize(
    ("build", "graph", "message"),
    [
        (lambda c, i, o: TwoLayers(SAGEConv, -1, o), GRAPH, "a parameter without a shape"),
        (lambda c, i, o: torch.nn.Identity(), GRAPH, "no parameter to train"),
        (lambda c, i, o: TwoLayers(GCNConv, i, o), weighted_grid(), "takes no edge_weight"),
        (lambda c, i, o: TwoLayers(GCNConv, i, o + 1), GRAPH, r"logits of shape \[\d+, 2\], not \[\d+, 3\]"),
    ],
    ids=["lazy", "nothing to train", "no weights", "too many classes"],
)
def test_a_module_that_cannot_be_trained_is_refused(build: Any, graph: Graph, message: str) -> None:
    register_model(ModelKind("bad", Parameters, build, takes="edge_index"))
    with pytest.raises(InputError, match=f"model 'bad'.*{message}"):
        train_in_pieces(pieces(graph), RunConfig(model="bad", max_epochs=1))

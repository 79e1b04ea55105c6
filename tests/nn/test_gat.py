"""GAT against PyG's layers with the same weights and the same draws."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import scipy.sparse
import torch
from torch import Tensor
from torch.nn.functional import dropout as torch_dropout
from torch.nn.functional import elu
from torch_geometric.nn import GATConv

import problems
from plap import Graph
from plap.nn import gat
from plap.nn.baselines import GAT
from plap.nn.linear import dropped_product, sparse_product


class Textbook(torch.nn.Module):
    def __init__(self, model: GAT, channels: int) -> None:
        super().__init__()
        heads, hidden = model.conv1.heads, model.conv1.out_channels
        self.rate = model.dropout
        self.conv1 = GATConv(channels, hidden, heads, dropout=self.rate)
        self.conv2 = GATConv(heads * hidden, model.conv2.out_channels, dropout=self.rate)
        self.conv1.load_state_dict({**model.conv1.state_dict(), "lin.weight": model.lin.weight})
        self.conv2.load_state_dict(model.conv2.state_dict())
        self.double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = elu(self.conv1(torch_dropout(x, self.rate, self.training), edge_index))
        result: Tensor = self.conv2(torch_dropout(hidden, self.rate, self.training), edge_index)
        return result


@pytest.mark.parametrize("name", ["random", "isolated_node", "no_edges", "self_loop", "duplicate_rows"])
@pytest.mark.parametrize("training", [False, True])
def test_is_two_layers_of_pyg(name: str, training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.PROBLEMS[name]()
    monkeypatch.setattr(gat, "dropout", torch_dropout)  # the same numbers of the generator mean the same then
    model = GAT(3, 4, 2, heads=3).double().train(training)
    book = Textbook(model, 3).train(training)
    results, slopes = [], []
    for module, edges in ((model, problem.graph), (book, problem.graph.edge_index)):
        torch.manual_seed(5)
        result = module(problem.x, edges)
        result.square().sum().backward()
        results.append(result)
        named = dict(module.named_parameters())
        slopes.append(
            [
                named.get("lin.weight", named.get("conv1.lin.weight")),
                named["conv1.att_src"],
                named["conv2.bias"],
            ]
        )
    torch.testing.assert_close(*results)
    for mine, theirs in zip(*slopes, strict=True):
        assert mine is not None
        assert theirs is not None
        torch.testing.assert_close(mine.grad, theirs.grad)


def test_starts_as_pygs_does() -> None:
    mine = torch.cat([GAT(40, 8, 2).lin.weight.detach().flatten() for _ in range(5)])
    theirs = torch.cat([GATConv(40, 8, 8).lin.weight.detach().flatten() for _ in range(5)])
    assert float(mine.abs().max()) == pytest.approx(float(theirs.abs().max()), rel=0.01)
    assert float(mine.std()) == pytest.approx(float(theirs.std()), rel=0.05)


def sparse_features() -> Tensor:
    x = problems.features(12, 30)
    return torch.where(x > 0.8, x, 0.0)


@pytest.mark.parametrize("form", ["csr", "coo", "scipy"])
def test_sparse_features_give_the_same_values_and_gradients(form: str) -> None:
    x, graph = sparse_features(), problems.random_graph(12, 0.4, seed=1)
    forms: dict[str, Any] = {
        "csr": x.to_sparse_csr,
        "coo": x.to_sparse_coo,
        "scipy": lambda: scipy.sparse.csr_array(x.numpy()),
    }
    model = GAT(30, 4, 2, heads=3, dropout=0.0).double()
    slopes = []
    for given in (x, forms[form]()):
        model.zero_grad()
        result = model(given, graph)
        result.square().sum().backward()
        slopes.append([result.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for dense, sparse in zip(*slopes, strict=True):
        torch.testing.assert_close(sparse, dense)


def test_dropped_product_is_that_of_dropped_features() -> None:
    x = sparse_features()
    weight = problems.features(30, 4, seed=2).requires_grad_()
    torch.manual_seed(0)
    dropped = dropped_product(x.to_sparse_csr(), torch.eye(30, dtype=torch.float64), 0.4)
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], x[kept] / 0.6)
    assert 0.45 < float(kept.sum() / (x != 0).sum()) < 0.75
    torch.manual_seed(0)
    result = dropped_product(x.to_sparse_csr(), weight, 0.4)
    torch.testing.assert_close(result, dropped @ weight)
    cotangent = problems.features(12, 4, seed=3)
    result.backward(cotangent)
    torch.testing.assert_close(weight.grad, dropped.T @ cotangent)
    again = dropped_product(x.to_sparse_csr(), torch.eye(30, dtype=torch.float64), 0.4)
    assert not torch.equal(again, dropped)


def test_dropped_product_leaves_the_features_as_they_were() -> None:
    x, weight = sparse_features().to_sparse_csr(), problems.features(30, 4, seed=2)
    before = sparse_product(x, weight)
    dropped_product(x, weight, 0.5)
    assert torch.equal(sparse_product(x, weight), before)


def test_sparse_features_are_dropped_in_training_only() -> None:
    x, graph = sparse_features().to_sparse_csr(), problems.random_graph(12, 0.4, seed=1)
    model = GAT(30, 4, 2).double()
    assert not torch.equal(model(x, graph), model(x, graph))
    model.eval()
    assert torch.equal(model(x, graph), model(x, graph))


def test_takes_an_edge_index_ignores_weights_and_survives_copies() -> None:
    pairs, x = torch.tensor([[0, 1, 2], [1, 2, 3]]), problems.features(5, 3)
    model = GAT(3, 4, 2).double().eval()
    expected = model(x, Graph.from_edge_index(pairs, num_nodes=5))
    assert torch.equal(model(x, pairs, torch.tensor([1.0, 2.0, 3.0])), expected)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x, pairs), expected)

"""JKNet against PyG's layers with the same weights and the same draws."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch import Tensor
from torch.nn.functional import dropout as torch_dropout
from torch.nn.functional import relu
from torch_geometric.nn import APPNP, GCNConv, JumpingKnowledge

import problems
from plap.nn import jknet
from plap.nn.baselines import JKNet


class Textbook(torch.nn.Module):
    def __init__(self, model: JKNet) -> None:
        super().__init__()
        channels, hidden = model.lin1.in_features, model.lin1.out_features
        self.rate = model.dropout
        self.conv1, self.conv2 = GCNConv(channels, hidden), GCNConv(hidden, hidden)
        for conv, linear in ((self.conv1, model.lin1), (self.conv2, model.lin2)):
            conv.load_state_dict({"lin.weight": linear.weight, "bias": linear.bias})
        self.jump = JumpingKnowledge("lstm", channels=hidden, num_layers=4)
        self.jump.load_state_dict(model.head.jump.state_dict())
        self.appnp = APPNP(model.head.K, model.head.alpha)
        self.lin = copy.deepcopy(model.head.lin)
        self.double()

    def forward(self, x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
        first = torch_dropout(relu(self.conv1(x, edges, weight)), self.rate, self.training)
        second = torch_dropout(relu(self.conv2(first, edges, weight)), self.rate, self.training)
        result: Tensor = self.lin(self.appnp(self.jump([first, second]), edges, weight))
        return result


@pytest.mark.parametrize("name", sorted(problems.PROBLEMS))
@pytest.mark.parametrize(("alpha", "training"), [(0.3, False), (0.3, True), (1.0, False)])
def test_is_pygs_layers(name: str, alpha: float, training: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.PROBLEMS[name]()
    graph, channels = problem.graph, problem.x.shape[1]
    monkeypatch.setattr(
        jknet, "dropout", torch_dropout
    )  # the same numbers of the generator mean the same then
    model = JKNet(channels, 6, 2, K=3, alpha=alpha).double().train(training)
    book = Textbook(model).train(training)
    torch.manual_seed(5)
    mine = model(problem.x, graph)
    torch.manual_seed(5)
    theirs = book(problem.x, graph.edge_index, graph.weight)
    torch.testing.assert_close(mine, theirs)
    mine.square().sum().backward()
    theirs.square().sum().backward()
    torch.testing.assert_close(model.lin1.weight.grad, book.conv1.lin.weight.grad)
    torch.testing.assert_close(model.head.jump.att.weight.grad, book.jump.att.weight.grad)


def test_the_papers_aggregation() -> None:
    """16 channels and "4 layers": a bidirectional LSTM of 32 units each way."""
    lstm = JKNet(5, 16, 2).head.jump.lstm
    assert (lstm.input_size, lstm.hidden_size, lstm.bidirectional) == (16, 32, True)


def test_sparse_features_edge_index_and_copies() -> None:
    pairs, x = torch.tensor([[0, 1, 2], [1, 2, 3]]), problems.features(5, 3).float()
    model = JKNet(3, 4, 2).eval()
    expected = model(x, pairs)
    torch.testing.assert_close(model(x.to_sparse_csr(), pairs), expected)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(other(x, pairs), expected)

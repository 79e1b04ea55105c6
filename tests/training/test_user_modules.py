"""Any PyTorch module trains like plap's own models, by the rules of a plain loop."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Linear, Parameter
from torch.nn.functional import cross_entropy, dropout, relu
from torch_geometric.nn import GCN, GCNConv

import tiny_training as tiny
from plap import Graph, InputError
from plap.models import ModelKind, Parameters, find_model, model_names, register_model, registry
from plap.training import RunConfig, RunResult, build_module, train_runs

DATA = tiny.data()
SPLIT = tiny.masks(DATA.y)


@pytest.fixture(autouse=True)
def own_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))


def train(*configs: RunConfig, graph: Graph = DATA.graph, **options: Any) -> list[RunResult]:
    return train_runs(graph, DATA.x, DATA.y, configs, SPLIT, **options)


def assert_equal(one: RunResult, other: RunResult) -> None:
    assert torch.equal(one.history.train_loss, other.history.train_loss)
    assert torch.equal(one.history.val_loss, other.history.val_loss)
    assert torch.equal(one.logits, other.logits)


class Odd(torch.nn.Module):
    """What modules may hold: batch statistics, tied, frozen, unused and 0-dimensional parameters."""

    frozen: Tensor

    def __init__(self, channels: int, hidden: int, classes: int, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.lin = Linear(channels, hidden)
        self.norm = BatchNorm1d(hidden)
        self.mix = Linear(hidden, hidden, bias=False)
        self.mix_again = Linear(hidden, hidden, bias=False)
        self.mix_again.weight = self.mix.weight
        self.frozen = Parameter(torch.randn(hidden), requires_grad=False)
        self.unused = Parameter(torch.randn(3))
        self.scale = Parameter(torch.tensor(1.5))
        self.conv = GCNConv(hidden, classes)
        self.register_buffer("shift", torch.randn(hidden), persistent=False)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        hidden = dropout(relu(self.norm(self.lin(x))), self.rate, self.training)
        hidden = self.mix_again(self.mix(hidden)) * self.frozen + self.get_buffer("shift")
        result: Tensor = self.scale * self.conv(hidden, edge_index, edge_weight)
        return result


def register_odd() -> None:
    kind = ModelKind(
        "odd",
        tiny.HiddenAndDropout,
        lambda c, i, o: Odd(i, c.hidden, o, c.dropout),
        takes="edge_index",
    )
    register_model(kind)


def plain_loop(config: RunConfig, graph: Graph) -> tuple[list[float], list[float], torch.nn.Module]:
    x, weight = DATA.x.double(), graph.weight.double()
    module = build_module(config, x.shape[1], 2).double()
    used = [value for name, value in module.named_parameters() if value.requires_grad and name != "unused"]
    optimizer = torch.optim.Adam(used, lr=config.lr, weight_decay=config.weight_decay)
    train_losses, val_losses = [], []
    for _ in range(config.max_epochs):
        module.train()
        optimizer.zero_grad()
        loss = cross_entropy(module(x, graph.edge_index, weight)[SPLIT.train], DATA.y[SPLIT.train])
        loss.backward()
        optimizer.step()
        train_losses.append(float(loss.detach()))
        module.eval()
        with torch.no_grad():
            logits = module(x, graph.edge_index, weight)
        val_losses.append(float(cross_entropy(logits[SPLIT.val], DATA.y[SPLIT.val])))
    return train_losses, val_losses, module


@pytest.mark.parametrize("weighted", [False, True])
def test_history_is_that_of_a_plain_loop(weighted: bool) -> None:
    register_odd()
    pairs = DATA.graph.edge_index
    graph = Graph.from_edge_index(pairs, 1.0 + pairs.sum(0) % 3 if weighted else None, 60)
    config = RunConfig(model="odd", dropout=0.0, max_epochs=12, lr=0.03, stop_by="loss", seed=5)
    train_losses, val_losses, module = plain_loop(config, graph)
    result = train(config, graph=graph, dtype=torch.float64)[0]
    assert result.history.train_loss.tolist() == pytest.approx(train_losses, abs=1e-9)
    assert result.history.val_loss.tolist() == pytest.approx(val_losses, abs=1e-9)
    assert result.best_epoch == 12  # so that the states can be compared
    assert result.state.keys() == module.state_dict().keys()
    for name, value in module.state_dict().items():
        if name != "unused":
            torch.testing.assert_close(result.state[name], value, msg=name)


def test_the_state_is_that_of_the_best_epoch_and_gives_the_logits() -> None:
    register_odd()
    config = RunConfig(model="odd", max_epochs=40, lr=0.1, seed=2)
    result = train(config)[0]
    assert result.best_epoch < result.epochs
    module = build_module(config, DATA.x.shape[1], 2).eval()
    module.load_state_dict(result.state)
    assert torch.equal(module(DATA.x, DATA.graph.edge_index).detach(), result.logits)
    assert int(result.state["norm.num_batches_tracked"]) == result.best_epoch


def test_the_same_alone_beside_others_and_again() -> None:
    register_odd()
    config = RunConfig(model="odd", max_epochs=15, dropout=0.5, seed=3)
    others = [RunConfig(max_epochs=4), RunConfig(model="odd", max_epochs=9, dropout=0.5, seed=4)]
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    beside = train(*others, config)[2]
    assert torch.equal(before, torch.random.get_rng_state())
    torch.manual_seed(2)
    assert_equal(beside, train(config)[0])
    assert_equal(beside, train(config)[0])


@pytest.mark.parametrize("model", [name for name in model_names() if not find_model(name).stacked])
@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_plaps_own_modules_too(model: str, rate: float) -> None:
    config = tiny.config(model, K=2, max_epochs=6, dropout=rate, seed=3)
    other = tiny.config(model, K=3, max_epochs=3, dropout=rate, seed=4)
    assert_equal(train(other, config)[1], train(config)[0])


def test_dropout_differs_from_epoch_to_epoch_and_by_seed() -> None:
    seen: list[Tensor] = []

    class Watched(Linear):
        def forward(self, x: Tensor, graph: Graph | None = None) -> Tensor:
            if self.training:
                seen.append(dropout(torch.ones(50), 0.5))
            return super().forward(x)

    register_model(ModelKind("watched", Parameters, lambda c, i, o: Watched(i, o)))
    train(RunConfig(model="watched", max_epochs=3), RunConfig(model="watched", max_epochs=3, seed=1))
    assert len({tuple(mask.tolist()) for mask in seen}) == 6


@pytest.fixture
def poisoned() -> str:
    class Poisoned(torch.nn.Module):
        """NaN in its fourth training step, in the logits and in the batch statistics."""

        def __init__(self, channels: int, classes: int) -> None:
            super().__init__()
            self.norm, self.lin = BatchNorm1d(channels), Linear(channels, classes)
            self.calls = 0

        def forward(self, x: Tensor, graph: Graph) -> Tensor:
            self.calls += self.training
            factor = float("nan") if self.training and self.calls == 4 else 1.0
            result: Tensor = self.lin(self.norm(factor * x))
            return result

    register_model(ModelKind("poisoned", Parameters, lambda c, i, o: Poisoned(i, o)))
    return "poisoned"


def test_a_step_that_gives_nan_is_left_out(poisoned: str) -> None:
    result = train(RunConfig(model=poisoned, max_epochs=30, lr=0.05))[0]
    assert result.history.train_loss.isnan().nonzero().tolist() == [[3]]
    assert bool(result.history.val_loss.isfinite().all())
    assert result.history.val_loss[3] == result.history.val_loss[2]  # nothing was changed
    assert result.history.train_loss[-1] < 0.7 * result.history.train_loss[0]
    assert all(bool(value.isfinite().all()) for value in result.state.values())
    assert bool(result.logits.isfinite().all())


@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_features_are_passed_as_the_kind_asks(sparse: bool) -> None:
    layouts = set()

    class Watched(Linear):
        def forward(self, x: Tensor, graph: Graph | None = None) -> Tensor:
            layouts.add(x.layout)
            return super().forward(x.to_dense() if sparse else x)

    register_model(ModelKind("watched", Parameters, lambda c, i, o: Watched(i, o), sparse_features=sparse))
    config = RunConfig(model="watched", max_epochs=5)
    result = train_runs(DATA.graph, DATA.x.to_sparse_csr(), DATA.y, [config], SPLIT)[0]
    assert layouts == {torch.sparse_csr if sparse else torch.strided}
    torch.testing.assert_close(result.logits, train(config)[0].logits)


def test_pygs_models_train_and_learn() -> None:
    register_model(
        ModelKind(
            "pyg",
            tiny.HiddenAndDropout,
            lambda c, i, o: GCN(i, c.hidden, 2, o, c.dropout, norm="batch"),
            takes="edge_index",
        )
    )
    result = train(RunConfig(model="pyg", max_epochs=60, lr=0.05))[0]
    assert result.history.train_loss[-1] < 0.5 * result.history.train_loss[0]


class WithoutWeights(Linear):
    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        return super().forward(x)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda c, i, o: Linear, "must return a torch.nn.Module, not type"),
        (lambda c, i, o: GCN(-1, 8, 2, o), "a parameter without a shape"),
        (lambda c, i, o: torch.nn.Identity(), "no parameter to train"),
        (lambda c, i, o: WithoutWeights(i, o), "takes no edge_weight"),
        (lambda c, i, o: GCN(i, 8, 2, o + 1), r"logits of shape \[60, 2\], not \[60, 3\]"),
    ],
)
def test_a_module_that_cannot_be_trained_is_refused(build: Any, message: str) -> None:
    register_model(ModelKind("bad", Parameters, build, takes="edge_index"))
    pairs = DATA.graph.edge_index
    weighted = Graph.from_edge_index(pairs, torch.full((pairs.shape[1],), 2.0), 60)
    with pytest.raises(InputError, match=f"model 'bad'.*{message}"):
        train(RunConfig(model="bad"), graph=weighted)

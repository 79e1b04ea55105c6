"""A new model is one definition: it trains, is searched and is a row of a table, with its own parameters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

import tiny_training as tiny
from plap import Graph
from plap.experiments.assembly import assemble
from plap.experiments.cell_runs import stored_runs
from plap.experiments.plan import Effort, Selection, make_cells
from plap.experiments.runner import run_cells
from plap.experiments.store import Store
from plap.experiments.tables import load_table
from plap.models import ModelKind, Parameters, integer, number, register_model, registry
from plap.training import RunConfig, SearchSpace, train_runs, tune
from tiny_experiments import ThisProcess, write_tiny_table


@dataclass(frozen=True)
class ToyParameters(Parameters):
    rounds: int = integer(1, at_least=0)
    mixing: float = number(0.5, at_least=0, at_most=1)


class Toy(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, rounds: int, mixing: float) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(inputs, outputs)
        self.rounds, self.mixing = rounds, mixing

    def forward(self, x: Tensor, graph: Graph) -> Tensor:
        out: Tensor = self.lin(x)
        senders, receivers = graph.edge_index
        degree = torch.bincount(receivers, minlength=graph.num_nodes).clamp(min=1).unsqueeze(1)
        for _ in range(self.rounds):
            mean = torch.zeros_like(out).index_add(0, receivers, out[senders]) / degree
            out = (1 - self.mixing) * out + self.mixing * mean
        return out


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))
    register_model(
        ModelKind(
            "toy",
            ToyParameters,
            lambda c, i, o: Toy(i, o, c.rounds, c.mixing),
            label=lambda c: f"toy of {c.rounds}",
            grid={"mixing": (0.1, 0.9), "lr": (0.05,)},
            even_over="mixing",
        )
    )


def test_it_trains_with_its_own_parameters() -> None:
    data = tiny.data()
    configs = [RunConfig("toy", rounds=k, max_epochs=4) for k in (0, 2)]
    first, second = train_runs(data.graph, data.x, data.y, configs, tiny.masks(data.y))
    assert second.config.parameters == ToyParameters(rounds=2)
    assert not torch.equal(first.logits, second.logits)


def test_it_is_searched_over_its_own_grid() -> None:
    data = tiny.data()
    base = RunConfig("toy", max_epochs=5)
    space = SearchSpace(base, rounds=(1, 2, 3))
    assert len(space.configs()) == 6
    assert sorted(c.parameters.mixing for c in space.draw(4, seed=0)) == [0.1, 0.1, 0.9, 0.9]
    found = tune(data.graph, data.x, data.y, tiny.masks(data.y), space=space, budget=50)
    assert found.best.parameters.rounds in (1, 2, 3)


def test_it_is_a_row_of_a_table(tmp_path: Path) -> None:
    text = """
    datasets = ["csbm:phi=0.8,n=60,f=8"]
    models = ["mlp", "toy", "toy-3"]
    [rows]
    toy-3 = { model = "toy", rounds = 3, mixing = 0.25 }
    """
    table = load_table(str(write_tiny_table(tmp_path, text)))
    effort = Effort(runs=2, search_epochs=3, max_epochs=4, patience=3)
    cells = make_cells(table, "sound", effort, Selection.parse(["model=toy", "model=toy-3"]))
    with Store(tmp_path / "runs.sqlite") as store:
        assert run_cells(cells, store, ThisProcess()) == {}
        result = assemble(table, "sound", stored_runs(cells, store))
    assert [result.label(model) for model in result.models] == ["toy of 1", "toy of 3"]
    toy, fixed = result.cells
    assert len(toy.values) == len(fixed.values) == 2
    assert toy.config is not None
    assert set(toy.config) == {"mixing", "lr"}
    assert fixed.config == {"lr": 0.05}

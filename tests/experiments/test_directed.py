"""The models of benchmarks/directed: on symmetric edges they are plap's own, with the published operator."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
import torch

import plap
from plap.nn.adjacency import adjacency_tensor

FOLDER = Path(__file__).parents[2] / "benchmarks" / "directed"
EDGES = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3, 4, 1], [1, 0, 2, 1, 3, 2, 3, 0, 1, 4]])


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5])
def test_a_step_on_symmetric_edges_is_the_published_variant(p: float) -> None:
    step = runpy.run_path(str(FOLDER / "directed_pgnn.py"))["step"]
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    graph = plap.Graph.from_edge_index(EDGES)
    state = x
    for _ in range(3):
        state = step(state, x, *EDGES, p, 0.3)
    expected = plap.propagate(x, graph, p=p, mu=0.3, K=3, variant="published")
    torch.testing.assert_close(state, expected, rtol=1e-4, atol=1e-5)


def test_a_node_hears_from_those_that_point_to_it_alone() -> None:
    step = runpy.run_path(str(FOLDER / "directed_pgnn.py"))["step"]
    x = torch.eye(3)
    source, target = torch.tensor([0, 1]), torch.tensor([1, 2])
    moved = step(x, x, source, target, 2.0, 1.0)
    assert moved[0].tolist() == [2.0, 0.0, 0.0]  # no edge ends here: beta = 4 mu / p * 1 / (2 mu / p)
    assert moved[1, 0] == 0  # the degree of a sender without incoming edges is 0
    assert moved[2, 1] > 0
    assert moved[1, 2] == 0


def test_equal_ends_have_a_gradient() -> None:
    step = runpy.run_path(str(FOLDER / "directed_pgnn.py"))["step"]
    x = torch.ones(5, 2, requires_grad=True)
    step(x, x, *EDGES, 1.0, 0.1).sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()


def test_gcn_on_symmetric_edges_is_plap_s(monkeypatch: pytest.MonkeyPatch) -> None:
    names = runpy.run_path(str(FOLDER / "directed_gcn.py"))

    class Data:
        directed_edge_index = EDGES

    function = names["normalised_edges"].__wrapped__
    function.__globals__.update(load=lambda name: Data(), _DATASETS={5: "five"})
    source, target, weight = function(5)
    dense = torch.zeros(5, 5).index_put((target, source), weight)
    graph = plap.Graph.from_edge_index(EDGES)
    torch.testing.assert_close(dense, adjacency_tensor(graph).to_dense().float())

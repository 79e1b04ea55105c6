"""Proposition 1 node by node, against the dense step, and where its printed form goes wrong."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import plap
import problems
from plap.kernels.dense import edge_matrix, weight_matrix
from plap.spectral import eigenvalue_bounds, largest_eigenpair, node_regimes
from problems import PROBLEMS, Problem


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, 2.5])
@pytest.mark.parametrize("make", PROBLEMS.values(), ids=PROBLEMS)
def test_cutoffs_are_the_row_sums_of_the_dense_step(make: Callable[[], Problem], p: float) -> None:
    graph, x = make().graph, make().x
    if graph.num_edges == graph.num_self_loops:
        return
    found = node_regimes(x, graph, p)
    W = weight_matrix(graph, torch.float64)
    D = W.sum(1)
    root = torch.where(D > 0, D, 1).rsqrt() * (D > 0)
    M = edge_matrix(root[:, None] * x, W, torch.tensor(p, dtype=torch.float64))
    np.testing.assert_allclose(
        found.cutoff, (M.sum(1) * root.square()).numpy(), atol=1e-7 if p > 2 else 1e-12
    )
    norms = plap.gradient(x, graph).square().sum(1)
    total = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add(0, graph.receivers(), norms)
    np.testing.assert_allclose(found.gradient_norm, total.sqrt().numpy(), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(problems.graphs_with_features(), st.sampled_from([1.0, 1.2, 1.5, 1.9, 2.1, 2.5, 3.0]))
def test_a_settled_norm_settles_the_regime(problem: Problem, p: float) -> None:
    graph = problem.graph
    if graph.num_edges == graph.num_self_loops:
        return
    found = node_regimes(problem.x, graph, p)
    sure = found.settled & (found.gradient_norm < found.threshold * (1 - 1e-9))
    assert (found.regime[sure] == ("low-pass" if p < 2 else "low-high-pass")).all()
    low, mixed = found.regime == "low-pass", found.regime == "low-high-pass"
    assert (found.cutoff[low] >= found.top).all()
    assert (found.cutoff[mixed] < found.top).all()
    assert ((found.regime == "held") == (found.cutoff == 0)).all()


def test_p_2_is_low_high_pass_everywhere() -> None:
    problem = problems.isolated_node()
    found = node_regimes(problem.x, problem.graph, 2)
    assert found.regime.tolist() == ["low-high-pass", "low-high-pass", "held", "low-high-pass"]
    np.testing.assert_allclose(found.cutoff, [1, 1, 0, 1])
    assert np.isnan(found.threshold)
    assert not found.settled.any()


@pytest.mark.parametrize(
    ("p", "small", "large"), [(1.5, "low-pass", "low-high-pass"), (2.5, "low-high-pass", "low-pass")]
)
def test_the_scale_of_features_chooses_the_regime(p: float, small: str, large: str) -> None:
    graph = problems.random_graph(20, 0.4, seed=1)
    x = problems.features(20)
    assert set(node_regimes(1e-4 * x, graph, p).regime) == {small}
    assert set(node_regimes(1e4 * x, graph, p).regime) == {large}
    one, ten = node_regimes(x, graph, p), node_regimes(10 * x, graph, p)
    np.testing.assert_allclose(ten.cutoff, one.cutoff * 10 ** (p - 2))


@pytest.mark.parametrize("p", [1.5, 2.5])
def test_the_printed_converse_is_false(p: float) -> None:
    """A norm above the threshold does not settle the other side: one steep edge among flat ones, or many."""
    graph = problems.star(40)
    x = torch.ones(41, 1, dtype=torch.float64)
    x[0] = graph.degree[0].sqrt()
    flat, steep = (0.02, 6.0) if p < 2 else (1e-6, 60.0)
    x[1:] += flat * torch.arange(1, 41)[:, None] / 40
    x[1] += steep
    found = node_regimes(x, graph, p)
    assert found.gradient_norm[0] > found.paper_threshold
    assert found.gradient_norm[0] > found.threshold
    assert found.regime[0] == ("low-pass" if p < 2 else "low-high-pass")


def test_thresholds_of_the_paper() -> None:
    graph, x = problems.star(9), problems.features(10)
    assert node_regimes(x, graph, 3).paper_threshold == pytest.approx(4)
    assert node_regimes(x, graph, 1.5).paper_threshold == pytest.approx(2 * (2 * 3) ** -2)
    # N_min = 1 makes it 1, where a function that is 1 at the centre has the frequency 3
    found = node_regimes(x, graph, 1)
    assert found.paper_threshold == pytest.approx(1)
    assert found.threshold == pytest.approx(1 / 3)


def test_p_next_to_2() -> None:
    graph, x = problems.star(9), problems.features(10)
    below, above = node_regimes(x, graph, 2 - 1e-12), node_regimes(x, graph, 2 + 1e-12)
    assert (below.threshold, above.threshold) == (0, float("inf"))
    assert set(below.regime) == set(above.regime) == {"low-high-pass"}


def test_nothing_is_settled_where_an_edge_does_not_act() -> None:
    graph, p = problems.star(2), 1.5
    threshold = node_regimes(torch.ones(3), graph, p).threshold
    x = torch.tensor([2**0.5, 1.0, 1 + 0.9 * threshold], dtype=torch.float64)
    found = node_regimes(x, graph, p)
    assert found.gradient_norm[0] < threshold
    assert found.regime.tolist() == ["low-high-pass", "held", "low-pass"]
    assert found.settled.tolist() == [False, False, True]


def test_another_end_of_the_spectrum() -> None:
    graph, x = problems.grid(4, 5), problems.features(20)
    bound = eigenvalue_bounds(graph, 1.5).local
    sharp = largest_eigenpair(graph, 1.5).value
    assert sharp < bound
    by_bound, by_value = node_regimes(x, graph, 1.5), node_regimes(x, graph, 1.5, top=sharp)
    assert by_bound.top == pytest.approx(bound)
    assert by_value.top == pytest.approx(sharp)
    assert ((by_bound.regime == "low-pass") <= (by_value.regime == "low-pass")).all()
    with pytest.raises(plap.InputError, match="top must be a positive"):
        node_regimes(x, graph, 1.5, top=0)
    with pytest.raises(plap.InputError, match="no edge"):
        node_regimes(torch.ones(3), plap.Graph.from_edges([], num_nodes=3), 1.5)


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = problems.fixture()
    whole = node_regimes(problem.x, problem.graph, 1.5)
    monkeypatch.setattr("plap.spectral.regimes._BLOCK", 3)
    np.testing.assert_allclose(node_regimes(problem.x, problem.graph, 1.5).cutoff, whole.cutoff)

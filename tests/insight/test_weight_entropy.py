"""Entropy against known answers and a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import entropy as scipy_entropy

import plap
import problems
from plap.insight import uniform_entropy, weight_entropy


def test_equal_weights_give_the_logarithm_of_the_neighbours() -> None:
    star = problems.star(5)
    found = weight_entropy(torch.full((10,), 0.3), star)
    np.testing.assert_allclose(found, [math.log(5), 0, 0, 0, 0, 0], atol=1e-15)
    torch.testing.assert_close(found, uniform_entropy(star))


def test_one_dominating_neighbour_gives_zero() -> None:
    star = problems.star(5)
    weight = torch.zeros(10, dtype=torch.float64)
    weight[3] = 7.0
    assert weight_entropy(weight, star)[0] == 0
    weight[:5] = torch.tensor([1e-12, 0, 0, 1, 0])
    assert weight_entropy(weight, star)[0] < 1e-10


def test_a_node_without_edges_or_weights_has_none() -> None:
    problem = problems.isolated_node()
    found = weight_entropy(torch.zeros(problem.graph.num_entries), problem.graph)
    assert bool(found.isnan().all())
    assert uniform_entropy(problem.graph).isnan().tolist() == [False, False, True, False]
    assert weight_entropy(torch.empty(0), problems.no_edges().graph).isnan().all()


@settings(max_examples=40, deadline=None)
@given(problems.graphs_with_features(), st.sampled_from([1.0, 1.5, 2.0, 3.0]))
def test_it_is_scipys_entropy_of_every_row(problem: problems.Problem, p: float) -> None:
    graph = problem.graph
    weight = plap.aggregation_weights(problem.x, graph, p, 0.1)
    found = weight_entropy(weight, graph)
    assert bool((found.nan_to_num() <= uniform_entropy(graph).nan_to_num() + 1e-12).all())
    as_written = weight_entropy(weight, graph, normalize=False)
    for node in range(graph.num_nodes):
        row = weight[graph.receivers() == node].numpy()
        if row.sum() > 0:
            np.testing.assert_allclose(found[node], scipy_entropy(row), atol=1e-12)
            kept = row[row > 0]
            np.testing.assert_allclose(as_written[node], -(kept * np.log(kept)).sum(), atol=1e-12)
        else:
            assert found[node].isnan()


def test_heads_are_columns() -> None:
    path = problems.path(3)
    weight = torch.tensor([[1.0, 1.0], [0.5, 1.0], [0.5, 0.0], [1.0, 1.0]])
    found = weight_entropy(weight, path)
    np.testing.assert_allclose(found, [[0.0, 0.0], [math.log(2), 0.0], [0.0, 0.0]], atol=1e-15)


def test_a_large_mu_lowers_what_the_paper_calls_entropy_and_not_the_entropy() -> None:
    graph = problems.complete(5)
    x = problems.features(5)
    weak, strong = (plap.aggregation_weights(x, graph, 2.0, mu) for mu in (0.1, 100.0))
    torch.testing.assert_close(weight_entropy(weak, graph), weight_entropy(strong, graph))
    assert bool((weight_entropy(strong, graph, normalize=False) < 0.1).all())


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [(torch.ones(3), r"must have shape \[8\]"), (-torch.ones(8), "must not be negative")],
)
def test_refusals(weight: torch.Tensor, sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        weight_entropy(weight, problems.path(5))

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from torch import Tensor
from torch.nn.functional import one_hot

import plap
import problems
from plap.data import Split
from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.dense import weight_matrix
from plap.nn import correct_and_smooth

POISON = 10**6
EDGES = torch.tensor([[0, 1], [1, 2]])


def thirds(n: int) -> Split:
    turn = torch.arange(n) % 3
    return Split("public", turn == 0, turn == 1, turn == 2)


def random_probabilities(n: int, classes: int, seed: int = 0) -> Tensor:
    return torch.softmax(problems.features(n, classes, seed), 1)


def oracle(
    Z: Tensor,
    graph: Graph,
    y: Tensor,
    known: Tensor,
    alpha1: float,
    alpha2: float,
    steps: int,
    gamma: float | None,
) -> Tensor:
    """Huang et al.'s two recursions with dense matrices; gamma None is their automatic scale."""
    W = weight_matrix(graph, torch.float64)
    root = torch.where(W.sum(1) > 0, W.sum(1), 1).rsqrt()
    S = root[:, None] * W * root[None, :]
    truth = one_hot(y.clamp(min=0), Z.shape[1]).double()
    start = torch.where(known[:, None], truth - Z, 0)
    E = start
    for _ in range(steps):
        E = alpha1 * S @ E + (1 - alpha1) * start
        E = E.clamp(-1, 1) if gamma is None else torch.where(known[:, None], start, E)
    factor: Any = gamma
    if gamma is None:
        factor = start.abs().sum() / known.sum() / E.abs().sum(1, keepdim=True)
        factor = torch.where(factor > 1000, 1.0, factor)
    start = torch.where(known[:, None], truth, Z + factor * E)
    result = start
    for _ in range(steps):
        result = (alpha2 * S @ result + (1 - alpha2) * start).clamp(0, 1)
    return result / result.sum(1, keepdim=True)


@pytest.mark.parametrize("gamma", [None, 0.7])
@pytest.mark.parametrize("name", ["random", "isolated_node", "self_loop"])
def test_is_the_published_recursion_on_the_weighted_graph(name: str, gamma: float | None) -> None:
    graph = problems.PROBLEMS[name]().graph
    n = graph.num_nodes
    Z, y, split = random_probabilities(n, 3), torch.arange(n) % 3, thirds(n)
    expected = oracle(Z, graph, y, split.train, 0.9, 0.8, 7, gamma)
    scale: dict[str, Any] = {} if gamma is None else {"autoscale": False, "scale": gamma}
    result = correct_and_smooth(
        Z, graph, y, split, correction_layers=7, correction_alpha=0.9, smoothing_layers=7, **scale
    )
    torch.testing.assert_close(result, expected)


@given(problems.graphs_with_features(), st.integers(0, 100), st.booleans())
def test_rows_are_probabilities(problem: problems.Problem, seed: int, autoscale: bool) -> None:
    graph = problem.graph
    n = graph.num_nodes
    Z = random_probabilities(n, 4, seed)
    y = torch.arange(n) % 5 - 1
    y[0] = 2
    result = correct_and_smooth(Z, graph, y, thirds(n), autoscale=autoscale, correction_layers=10)
    assert bool((result >= 0).all())
    torch.testing.assert_close(result.sum(1), torch.ones(n, dtype=torch.float64))


def test_validation_labels_are_read_only_when_asked() -> None:
    graph = problems.random_graph(30, 0.2, seed=2)
    Z, y, split = random_probabilities(30, 3), torch.arange(30) % 3, thirds(30)
    default = correct_and_smooth(Z, graph, y, split)
    poisoned = torch.where(split.train, y, POISON)
    assert torch.equal(correct_and_smooth(Z, graph, poisoned, split), default)
    changed = torch.where(split.val, (y + 1) % 3, y)
    assert torch.equal(correct_and_smooth(Z, graph, changed, split), default)
    asked = correct_and_smooth(Z, graph, y, split, use_validation=True)
    assert not torch.allclose(asked, default)
    poisoned = torch.where(split.test, POISON, y)
    assert torch.equal(correct_and_smooth(Z, graph, poisoned, split, use_validation=True), asked)
    with pytest.raises(InputError, match=f"the class {POISON}"):
        correct_and_smooth(Z, graph, torch.where(split.val, POISON, y), split, use_validation=True)


def test_an_unknown_training_label_counts_as_no_label() -> None:
    graph = problems.random_graph(30, 0.2, seed=2)
    Z, y, split = random_probabilities(30, 3), torch.arange(30) % 3, thirds(30)
    without = Split("public", split.train.clone(), split.val, split.test)
    without.train[[0, 9]] = False
    y[[0, 9]] = -1
    assert torch.equal(correct_and_smooth(Z, graph, y, split), correct_and_smooth(Z, graph, y, without))


@pytest.mark.parametrize("autoscale", [True, False])
def test_a_classifier_without_errors_stays_as_it_is(autoscale: bool) -> None:
    y = torch.tensor([0, 0, 1, 1])
    Z = one_hot(y, 2).float()
    graph = Graph.from_edges([(0, 1), (2, 3)])
    result = correct_and_smooth(Z, graph, y, thirds(4), autoscale=autoscale)
    assert torch.equal(result.argmax(1), y)
    assert bool(torch.isfinite(result).all())


@pytest.mark.parametrize("alpha", [0.8, 1.0])
def test_without_edges_the_unlabelled_keep_their_probabilities(alpha: float) -> None:
    Z, split = random_probabilities(6, 3), thirds(6)
    graph = Graph.from_edges([], num_nodes=6)
    result = correct_and_smooth(Z, graph, torch.zeros(6, dtype=torch.int64), split, smoothing_alpha=alpha)
    torch.testing.assert_close(result[~split.train], Z[~split.train])


def test_no_steps_at_all_fill_in_the_known_labels() -> None:
    graph = problems.random_graph(12, 0.4, seed=1)
    Z, y, split = random_probabilities(12, 3), torch.arange(12) % 3, thirds(12)
    result = correct_and_smooth(Z, graph, y, split, correction_layers=0, smoothing_layers=0, autoscale=False)
    torch.testing.assert_close(result[split.train], one_hot(y, 3).double()[split.train])
    torch.testing.assert_close(result[~split.train], Z[~split.train])


def test_improves_a_weak_classifier_on_a_homophilic_graph() -> None:
    data = plap.data.csbm(phi=0.75, n=1000, f=50, d=10.0, seed=0)
    split = plap.data.split(data, preset="sparse", seed=0)
    weak = LogisticRegression().fit(data.x[split.train].numpy(), data.y[split.train].numpy())
    before = torch.from_numpy(weak.predict_proba(data.x.numpy())).float()
    given = before.clone()
    after = correct_and_smooth(before, data.graph, data.y, split)
    assert torch.equal(before, given)

    def score(probabilities: Tensor) -> float:
        return (probabilities.argmax(1) == data.y)[split.test].float().mean().item()

    assert score(after) > score(before) + 0.1, (score(before), score(after))


def test_refuses() -> None:
    graph, split = problems.path(4), thirds(4)
    Z, y = random_probabilities(4, 2), torch.tensor([0, 1, 0, 1])
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((problems.features(4, 2), graph, y, split), {}, "apply softmax to logits first"),
        ((torch.full((4, 2), torch.nan), graph, y, split), {}, "apply softmax to logits first"),
        ((Z[:3], graph, y, split), {}, r"must have shape \[4, C\], not \[3, 2\]"),
        ((Z, EDGES, y, split), {}, "graph must be a plap.Graph, not Tensor"),
        ((Z, graph, Z, split), {}, "y must be a tensor of integers"),
        ((Z, graph, y.numpy(), split), {}, "y must be a tensor of integers"),
        ((Z.numpy(), graph, y, split), {}, "probabilities must be a tensor of floats"),
        ((Z, graph, y, thirds(5)), {}, r"split.train must be boolean of shape \[4\]"),
        (
            (Z, graph, y, (split.train, split.val)),
            {},
            "split must have masks train and val as .* not be a tuple",
        ),
        ((Z, graph, y - 10, split), {}, "no node that may be used has a known label"),
        ((Z, graph, y + 5, split), {}, "the class 6, but probabilities has 2 columns"),
        (
            (Z, graph, y, split),
            {"smoothing_alpha": 1.5},
            r"smoothing_alpha must be a number from 0 to 1, not 1.5",
        ),
        (
            (Z, graph, y, split),
            {"correction_layers": -1},
            "correction_layers must be an integer of 0 or more",
        ),
        ((Z, graph, y, split), {"use_validation": "no"}, "use_validation must be True or False, not 'no'"),
        ((Z, graph, y, split), {"autoscale": "no"}, "autoscale must be True or False, not 'no'"),
    ]
    for arguments, options, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            correct_and_smooth(*arguments, **options)

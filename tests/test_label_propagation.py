from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import plap
import problems
from plap.errors import InputError
from plap.graph import Graph
from plap.label_propagation import PLaplacianLabelPropagation, spread


def two_cliques() -> Graph:
    """Nodes 0-3 and 4-7 with one light edge between; node 8 alone; 9-10 a pair that no label reaches."""
    barbell = problems.barbell(4)
    pairs = [tuple(pair) for pair in barbell.edge_index.T.tolist()]
    weights = barbell.weight.tolist()
    return Graph.from_edges([*pairs, (9, 10)], [*weights, 1.0], num_nodes=11)


def labels() -> list[str | None]:
    known: list[str | None] = [None] * 11
    known[0], known[5], known[6] = "left", "right", "right"
    return known


@pytest.mark.parametrize("p", problems.P_VALUES)
def test_labels_fill_their_own_side(p: float) -> None:
    model = PLaplacianLabelPropagation(p=p).fit(two_cliques(), labels())
    assert model.predict().tolist()[:8] == ["left"] * 4 + ["right"] * 4
    probabilities = model.predict_proba()
    assert probabilities.shape == (11, 2)
    assert (probabilities >= 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    assert model.info_.converged


def test_unreached_nodes_get_the_prior() -> None:
    model = PLaplacianLabelPropagation().fit(two_cliques(), labels())
    for node in (8, 9, 10):
        np.testing.assert_allclose(model.predict_proba()[node], [1 / 3, 2 / 3])


@pytest.mark.parametrize(
    ("left", "right", "unknown"),
    [("a", "b", None), (3, 10, -1), (False, True, None), (0.0, 1.0, float("nan"))],
)
def test_labels_of_any_type(left: Any, right: Any, unknown: Any) -> None:
    y = [{"left": left, "right": right, None: unknown}[label] for label in labels()]
    model = PLaplacianLabelPropagation().fit(two_cliques(), y)
    assert model.classes_.tolist() == [left, right]
    assert model.predict([1, 7]).tolist() == [left, right]


def test_score_counts_known_labels_only() -> None:
    model = PLaplacianLabelPropagation(mu=0.1).fit(two_cliques(), labels())
    truth: list[str | None] = ["left"] * 4 + ["right"] * 3 + ["left"] + [None] * 3
    assert model.score(truth) == pytest.approx(7 / 8)
    assert model.score(["right", "left"], nodes=[4, 5]) == pytest.approx(1 / 2)
    with pytest.raises(InputError, match="none of the 2 classes"):
        model.score(["middle"], nodes=[0])
    with pytest.raises(InputError, match="no known label"):
        model.score([None], nodes=[0])
    with pytest.raises(InputError, match="1 labels but there are 11 predictions"):
        model.score(["left"])


def test_one_class_only() -> None:
    model = PLaplacianLabelPropagation().fit(problems.path(4), [None, "a", None, None])
    assert model.predict().tolist() == ["a"] * 4


def test_fitting_again_forgets() -> None:
    model = PLaplacianLabelPropagation().fit(two_cliques(), labels())
    again = clone(model)
    with pytest.raises(NotFittedError):
        again.predict()
    model.fit(problems.path(3), [0, -1, 1])
    assert model.classes_.tolist() == [0, 1]
    assert model.predict_proba().shape == (3, 2)


def test_refuses() -> None:
    with pytest.raises(InputError, match="y has 2 labels but graph has 4 nodes"):
        PLaplacianLabelPropagation().fit(problems.path(4), ["a", "b"])
    with pytest.raises(InputError, match="graph must be"):
        PLaplacianLabelPropagation().fit("cora", ["a"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mu must be"):
        PLaplacianLabelPropagation(mu=-1).fit(problems.path(2), ["a", "b"])


def test_nodes_are_chosen_by_number_or_mask() -> None:
    model = PLaplacianLabelPropagation().fit(problems.path(4), ["a", None, None, "b"])
    everywhere = model.predict_proba()
    np.testing.assert_array_equal(model.predict_proba([3, 0]), everywhere[[3, 0]])
    np.testing.assert_array_equal(model.predict_proba([True, False, False, True]), everywhere[[0, 3]])
    for nodes, sentence in (
        ([500], "nodes must lie between 0 and 3, not 500"),
        ([-1], "nodes must lie between 0 and 3, not -1"),
        ([0.5], "nodes must be whole numbers"),
        ([True], "nodes must be whole numbers"),
    ):
        with pytest.raises(InputError, match=sentence):
            model.predict(nodes)


def test_few_steps_are_near_the_minimiser() -> None:
    data = plap.data.csbm(phi=0.8, n=400, f=4, d=8.0, seed=1)
    known = torch.where(torch.arange(400) % 2 == 0, data.y, -1)
    exact, near = (spread(data.graph, known, (1.0, 2.0), few_steps=few) for few in (False, True))
    for one, other in zip(exact, near, strict=True):
        torch.testing.assert_close(other.double(), one, atol=2e-3, rtol=0)
        torch.testing.assert_close(one.sum(1), torch.ones(400, dtype=torch.float64))


def test_numbers_spread_as_means_of_their_neighbours() -> None:
    star = plap.Graph.from_edges([(0, k) for k in range(1, 5)], num_nodes=6)
    y = torch.tensor([torch.nan, 1.0, 2.0, 3.0, 6.0, torch.nan], dtype=torch.float64)
    for few in (False, True):
        (found,) = spread(star, y, few_steps=few)
        assert float(found[0]) == pytest.approx(3.0, abs=1e-3)
        assert float(found[5]) == pytest.approx(3.0)
        assert 1 < float(found[1]) < 3 < float(found[4]) < 6

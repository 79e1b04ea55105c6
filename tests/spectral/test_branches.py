"""Branches of eigenpairs: what arrives, what it is, and that what is lost is said to be."""

from __future__ import annotations

import numpy as np
import pytest

import plap
import problems
import spectral_graphs
from plap.graph import Graph
from plap.spectral import Branches, decomposition_defect, eigenpair_branches, orthogonality_defect
from plap.spectral.newton import Solution
from plap.spectral.operator import EdgeOperator, signed_power


def check(graph: Graph, result: Branches) -> None:
    """What is called found is a different p-eigenpair each, and what is lost is one at the p it reached."""
    operator = EdgeOperator(graph)
    for branch in result.branches:
        pair = branch.pair
        assert branch.arrived == (pair.p == result.p)
        assert pair.residual <= 1e-9
        u = pair.vector
        assert (np.abs(u) ** pair.p).sum() == pytest.approx(1)
        assert pair.value == pytest.approx(float(operator.quotient(u, pair.p)), abs=1e-12)
        if pair.p >= 1.5:
            wrong = operator.apply(u, pair.p) - pair.value * signed_power(u, pair.p - 1)
            assert np.abs(wrong).max() < 1e-5
    vectors = np.stack([pair.vector / np.linalg.norm(pair.vector) for pair in result.found])
    assert (np.abs(vectors @ vectors.T) - np.eye(len(vectors)) < 1 - 1e-6).all()


@pytest.mark.parametrize("p", [1.2, 1.5, 2.0, 2.5, 3.0])
@pytest.mark.parametrize(
    ("graph", "count"), [(problems.path(10), 9), (problems.star(7), 7)], ids=["path", "star"]
)
def test_all_branches_of_path_and_star_arrive(graph: Graph, count: int, p: float) -> None:
    result = eigenpair_branches(graph, p)
    check(graph, result)
    assert len(result.found) - 1 == count
    assert f"{count} of {count} non-zero eigenvalues" in str(result)


@pytest.mark.parametrize("p", [1.1, 1.5, 3.0])
def test_values_of_the_star(p: float) -> None:
    values = sorted(pair.value for pair in eigenpair_branches(problems.star(5), p).found)
    expected = [0, 1, 1, 1, 1, spectral_graphs.star_largest(5, p)]
    np.testing.assert_allclose(values, expected, atol=1e-9)


@pytest.mark.parametrize("p", [1.1, 1.5, 2.5])
def test_a_multiple_eigenvalue_splits_into_those_of_the_complete_graph(p: float) -> None:
    graph = problems.complete(6)
    result = eigenpair_branches(graph, p)
    check(graph, result)
    assert len(result.found) == 6
    known = np.array(spectral_graphs.complete_values(6, p))
    for pair in result.found[1:]:
        assert np.abs(known - pair.value).min() < 1e-9


@pytest.mark.parametrize(("p", "least"), [(1.5, 17), (1.8, 17), (2.2, 16)])
def test_most_branches_of_a_grid_arrive(p: float, least: int) -> None:
    graph = problems.grid(4, 5)
    result = eigenpair_branches(graph, p)
    check(graph, result)
    assert len(result.found) - 1 >= least


def test_lost_branches_are_reported() -> None:
    graph = problems.random_graph(14, 0.35, seed=4)
    result = eigenpair_branches(graph, 1.2)
    check(graph, result)
    lost = [branch for branch in result.branches if not branch.arrived]
    assert lost
    assert len(result.found) < result.expected
    assert all(1.2 < branch.pair.p <= 2 for branch in lost)
    assert str(result).count("lost at") == len(lost)
    with pytest.raises(plap.InputError, match="Theorem 6 needs all 14 pairs"):
        decomposition_defect(graph, result)


def test_a_jump_to_another_branch_is_no_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    def jump(B: np.ndarray, u: np.ndarray, p: float) -> Solution:
        other = np.array([1.0, 3.0, -2.0, 5.0])
        return Solution(other - u * (u @ other) / (u @ u), 0.0)

    monkeypatch.setattr("plap.spectral.branches.refine", jump)
    result = eigenpair_branches(problems.path(4), 1.5)
    assert [branch.arrived for branch in result.branches] == [True, False, False, False]
    assert {branch.pair.p for branch in result.branches[1:]} == {2.0}


def test_branches_that_end_alike_count_once(monkeypatch: pytest.MonkeyPatch) -> None:
    end = np.array([3.0, 1.0, -1.0, -3.0])
    monkeypatch.setattr("plap.spectral.branches.refine", lambda B, u, p: Solution(end, 0.0))
    monkeypatch.setattr("plap.spectral.branches._SAME_BRANCH", 0.0)
    result = eigenpair_branches(problems.path(4), 1.5)
    assert [branch.merged_with for branch in result.branches] == [None, None, 1, 1]
    assert len(result.found) == 2
    assert "1 of 3 non-zero" in str(result)
    assert str(result).count("merged with 1") == 2


def test_refuses_large_and_disconnected_graphs() -> None:
    with pytest.raises(plap.InputError, match="at most 500 nodes and edges"):
        eigenpair_branches(problems.path(300), 1.5)
    with pytest.raises(plap.InputError, match="2 components"):
        eigenpair_branches(Graph.from_edges([(0, 1), (2, 3)]), 1.5)


def test_theorems_5_and_6_hold_for_p_2() -> None:
    graph = problems.path(8)
    branches = eigenpair_branches(graph, 2)
    assert orthogonality_defect(graph, branches).largest < 1e-12
    defect = decomposition_defect(graph, branches)
    assert max(defect.decomposition, defect.laplacian, defect.identity) < 1e-12


@pytest.mark.parametrize("side", [-1, 1])
def test_theorem_5_fails_in_first_order(side: int) -> None:
    """Twice as far from 2, twice the defect; only the constant stays orthogonal."""
    graph = problems.path(8)
    defects = [orthogonality_defect(graph, eigenpair_branches(graph, 2 + side * h)) for h in (0.01, 0.02)]
    assert defects[1].largest / defects[0].largest == pytest.approx(2, rel=0.1)
    assert max(defect.with_constant for defect in defects) < 1e-9


@pytest.mark.parametrize("p", [1.5, 2.5, 3.0])
def test_theorem_6_is_wrong(p: float) -> None:
    graph = problems.path(10)
    branches = eigenpair_branches(graph, p)
    defect = decomposition_defect(graph, branches)
    assert defect.decomposition > 0.2
    assert defect.identity > 0.2
    assert orthogonality_defect(graph, branches).with_constant < 1e-7


def test_theorem_5_leaves_the_constant_out() -> None:
    """On a star it holds between the others; the power of the constant is not orthogonal to the largest."""
    graph = problems.star(5)
    defect = orthogonality_defect(graph, eigenpair_branches(graph, 3))
    assert defect.largest < 1e-7
    assert defect.cosines[0, -1] > 0.1


@pytest.mark.parametrize("p", [1.5, 3.0])
def test_theorem_6_on_one_edge(p: float) -> None:
    """There Φ Φᵀ = 2 · 4^((1−p)/p) I, and a multiple of Δ_p f has only one direction."""
    graph = problems.path(2)
    defect = decomposition_defect(graph, eigenpair_branches(graph, p))
    assert defect.identity == pytest.approx(abs(2 * 4 ** ((1 - p) / p) - 1))
    assert defect.decomposition < 1e-9


def test_defects_refuse_branches_of_another_graph() -> None:
    branches = eigenpair_branches(problems.path(5), 1.8)
    for function in (orthogonality_defect, decomposition_defect):
        with pytest.raises(plap.InputError, match="graph of 5 nodes, not of 6"):
            function(problems.path(6), branches)

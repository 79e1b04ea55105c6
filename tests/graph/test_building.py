"""The rows of a symmetric matrix against a dense oracle, block borders and extreme node numbers included."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from plap import InputError
from plap.graph import building
from plap.graph.building import Reduction, symmetric_rows

Float = NDArray[np.float64]


def dense(
    source: NDArray[np.int64], target: NDArray[np.int64], weight: Float, n: int, reduction: Reduction
) -> Float:
    """W with W[t, s] the weight of s → t: merge by three dense n × n tables (sum, count, maximum)."""
    total, count, most = np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n))
    np.add.at(total, (target, source), weight)
    np.add.at(count, (target, source), 1.0)
    np.maximum.at(most, (target, source), weight)
    merged: Float = {"sum": total, "amax": most, "mean": total / np.maximum(count, 1)}[reduction]
    if (merged == merged.T).all():
        return merged
    diagonal = np.diag(np.diag(merged))
    there = np.maximum((merged > 0) * 1.0 + (merged.T > 0), 1.0)
    both = merged + merged.T - diagonal
    mean = (merged + merged.T) / there
    answer: Float = {"sum": both, "amax": np.maximum(merged, merged.T), "mean": mean}[reduction]
    return answer


def to_dense(rows: building.Symmetric) -> Float:
    n = rows.indptr.size - 1
    matrix = np.zeros((n, n))
    row = np.repeat(np.arange(n), np.diff(rows.indptr))
    matrix[row, rows.indices] = rows.weight.detach().numpy()
    return matrix


@settings(max_examples=150, deadline=None)
@given(
    n=st.integers(1, 12),
    edges=st.integers(0, 80),
    reduction=st.sampled_from(["amax", "mean", "sum"]),
    weighted=st.booleans(),
    grad=st.booleans(),
    block=st.sampled_from([1, 3, 1 << 16]),
    seed=st.integers(0, 2**32 - 1),
)
def test_rows_are_the_dense_matrix(
    *, n: int, edges: int, reduction: Reduction, weighted: bool, grad: bool, block: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    source, target = random.integers(0, n, (2, edges))
    weight = random.uniform(0.1, 3, edges) if weighted else np.ones(edges)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "_BLOCK", block)
        rows = symmetric_rows(
            source, target, torch.from_numpy(weight).requires_grad_(grad and edges > 0), n, reduction
        )
    expected = dense(source, target, weight, n, reduction)
    np.testing.assert_allclose(to_dense(rows), expected, rtol=1e-12)
    assert rows.indices.size == (expected > 0).sum()
    assert rows.self_loops == (source == target).sum()
    places = {(int(s), int(t)) for s, t in zip(source, target, strict=True)}
    assert rows.duplicates == edges - len(places)
    assert rows.one_way == sum((t, s) not in places for s, t in places)


def test_gradients_do_not_depend_on_the_way_weights_are_laid_out() -> None:
    """The path with gradients and the one without write the same numbers."""
    random = np.random.default_rng(0)
    source, target = random.integers(0, 9, (2, 60))
    weight = torch.from_numpy(random.uniform(0.1, 3, 60))
    plain = symmetric_rows(source, target, weight, 9, "mean")
    tracked = symmetric_rows(source, target, weight.clone().requires_grad_(), 9, "mean")
    assert tracked.weight.requires_grad
    assert torch.equal(plain.weight, tracked.weight.detach())


def test_the_largest_node_numbers_keep_their_bits() -> None:
    top = 2**31 - 1
    keys = building._keys(np.array([top, top - 1, 0]), np.array([top - 1, top, top]), 31)
    assert [building._unpack(int(key), 31) for key in keys] == [(top, top - 1), (top - 1, top), (0, top)]
    assert (keys > 0).all()


def test_dropping_loops_comes_before_merging() -> None:
    index = np.array([0, 1, 1, 1, 2])
    other = np.array([0, 1, 1, 2, 1])
    weight = torch.tensor([1.0, 2.0, 3.0, 4.0, 4.0])
    rows = symmetric_rows(index, other, weight, 3, "sum", drop_loops=True)
    assert (rows.self_loops, rows.duplicates, rows.symmetrized) == (3, 0, False)
    assert to_dense(rows).tolist() == [[0, 0, 0], [0, 0, 4], [0, 4, 0]]
    kept = symmetric_rows(index, other, weight, 3, "sum")
    assert (kept.self_loops, kept.duplicates) == (3, 1)
    assert to_dense(kept).tolist() == [[1, 0, 0], [0, 5, 4], [0, 4, 0]]


def test_a_refusal_names_the_first_edge_by_number() -> None:
    with pytest.raises(InputError, match="edge 1 → 4 has no reverse"):
        symmetric_rows(np.array([3, 1, 2, 2]), np.array([2, 4, 3, 2]), None, 5, None)
    loop = symmetric_rows(np.array([2]), np.array([2]), None, 3, None)
    assert loop.indices.tolist() == [2]

"""Rivals of edge trust against NetworkX and dense formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import plap
import problems
from plap.insight import attention_trust, feature_cosine, neighbour_jaccard, pair_evidence, trust
from plap.nn.gat import GAT


def all_pairs(n: int) -> torch.Tensor:
    return torch.triu_indices(n, n, 1)


@pytest.mark.parametrize("seed", range(3))
def test_jaccard_is_networkxs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_ROWS_AT_A_TIME", 7)
    other = nx.gnp_random_graph(20, 0.2, seed=seed)
    pairs = all_pairs(20)
    expected = [value for _, _, value in nx.jaccard_coefficient(other, pairs.T.tolist())]
    np.testing.assert_allclose(neighbour_jaccard(plap.Graph.from_networkx(other), pairs), expected)


@pytest.mark.parametrize("kind", ["dense", "csr", "scipy"])
def test_cosine_is_the_dense_one(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trust, "_ROWS_AT_A_TIME", 7)
    x = problems.features(9, 4).relu()
    x[4] = 0
    pairs = all_pairs(9)
    expected = torch.cosine_similarity(x[pairs[0]], x[pairs[1]]).numpy()
    given = {"dense": x, "csr": x.to_sparse_csr(), "scipy": scipy.sparse.csr_array(x.numpy())}[kind]
    found = feature_cosine(given, pairs)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert found[(pairs == 4).any(0).numpy()].tolist() == [0.0] * 8


def test_attention_of_equal_nodes_is_an_even_share() -> None:
    graph = problems.random_graph(12, 0.4, seed=1)
    trust = attention_trust(GAT(3, 4, 2, heads=2), torch.ones(12, 3), graph)
    torch.testing.assert_close(trust, torch.ones(graph.num_entries))


@pytest.mark.parametrize("scale", [1e-30, 1e20, 1e25, 1e37])
@pytest.mark.parametrize("kind", ["dense", "csr", "scipy"])
def test_cosine_does_not_depend_on_the_scale(scale: float, kind: str) -> None:
    x = problems.features(9, 4).float()
    x[4] = 0
    pairs = all_pairs(9)
    large = x * scale
    given = {"dense": large, "csr": large.to_sparse_csr(), "scipy": scipy.sparse.csr_array(large.numpy())}
    np.testing.assert_allclose(feature_cosine(given[kind], pairs), feature_cosine(x, pairs), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int8, torch.int64, torch.bfloat16, torch.float16])
def test_cosine_of_any_type_of_numbers(dtype: torch.dtype) -> None:
    x = torch.tensor([[1, 0], [1, 1], [0, 0]], dtype=dtype)
    pairs = torch.tensor([[0, 0], [1, 2]])
    assert feature_cosine(x, pairs) == pytest.approx([0.5**0.5, 0.0])
    if dtype not in (torch.bfloat16, torch.float16):
        assert feature_cosine(scipy.sparse.csr_array(x.numpy()), pairs) == pytest.approx([0.5**0.5, 0.0])


def test_cosine_of_rows_of_unlike_scales_and_of_no_features() -> None:
    x = torch.tensor([[3e30, 0.0], [1e-30, 1e-30]])
    assert feature_cosine(x, torch.tensor([[0], [1]])) == pytest.approx([0.5**0.5])
    assert feature_cosine(torch.ones(2, 0), torch.tensor([[0], [1]])).tolist() == [0.0]


PATH = problems.path(5)
PAIRS: list[Callable[[Any], object]] = [
    lambda pairs: feature_cosine(torch.eye(5), pairs),
    lambda pairs: neighbour_jaccard(PATH, pairs),
    lambda pairs: pair_evidence(plap.nn.PGNN(5, 4, 2), torch.eye(5), PATH, pairs),
]


@pytest.mark.parametrize("score", PAIRS)
@pytest.mark.parametrize(
    ("pairs", "sentence"),
    [
        ([[0], [1]], r"pairs must be an int64 tensor of shape \[2, P\], not list"),
        (
            torch.zeros(2, 1),
            r"pairs must be an int64 tensor of shape \[2, P\], not float32 of shape \[2, 1\]",
        ),
        (torch.zeros(3, 2).long(), r"pairs must be an int64 tensor of shape \[2, P\], not int64 of shape"),
        (torch.tensor([[0], [5]]), "pairs has 5, but there are only the nodes 0 to 4"),
        (torch.tensor([[-1], [2]]), "pairs has -1, but there are only the nodes 0 to 4"),
    ],
)
def test_pairs_are_refused_by_name(score: Callable[[Any], object], pairs: object, sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        score(pairs)


@pytest.mark.parametrize("score", PAIRS)
def test_no_pairs_have_no_scores(score: Callable[[Any], Any]) -> None:
    assert score(torch.zeros(2, 0, dtype=torch.int64)).shape[0] == 0


def test_features_and_graphs_are_refused_by_name() -> None:
    pairs = torch.tensor([[0], [1]])
    with pytest.raises(plap.InputError, match="x must be a tensor or a SciPy sparse matrix, not list"):
        feature_cosine([[1.0], [2.0]], pairs)
    with pytest.raises(plap.InputError, match=r"graph must be a plap\.Graph, not list"):
        neighbour_jaccard([(0, 1)], pairs)  # type: ignore[arg-type]


def test_attention_is_that_of_gat_alone() -> None:
    with pytest.raises(plap.InputError, match="attention is defined for GAT, not for PGNN"):
        attention_trust(plap.nn.PGNN(5, 4, 2), torch.eye(5), PATH)


def test_each_edge_is_named_once() -> None:
    graph = problems.self_loop().graph
    pairs = graph.edge_index[:, graph.edges_once()]
    assert sorted(map(tuple, pairs.T.tolist())) == [(0, 1), (0, 2), (1, 2)]

"""Rivals of edge trust against NetworkX and dense formulas."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch

import plap
import problems
from plap.insight import attention_trust, feature_cosine, neighbour_jaccard, trust
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


def test_each_edge_is_named_once() -> None:
    graph = problems.self_loop().graph
    pairs = graph.edge_index[:, graph.edges_once()]
    assert sorted(map(tuple, pairs.T.tolist())) == [(0, 1), (0, 2), (1, 2)]

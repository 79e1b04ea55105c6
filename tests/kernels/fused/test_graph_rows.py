"""What is found out once per graph, and forgotten with it."""

from __future__ import annotations

import gc

import torch

import plap
from plap.kernels.fused import graph_rows
from plap.kernels.fused.graph_rows import cut_rows, inverse_root


def path(nodes: int) -> plap.Graph:
    return plap.Graph.from_edges([(k, k + 1) for k in range(nodes - 2)], num_nodes=nodes)


def test_is_found_out_once_per_graph_and_dtype() -> None:
    graph, other = path(5), path(6)
    root = inverse_root(graph.degree, torch.float32)
    assert inverse_root(graph.degree, torch.float32) is root
    torch.testing.assert_close(root, torch.tensor([1, 0.5**0.5, 0.5**0.5, 1, 0]))
    assert inverse_root(graph.degree, torch.float64).dtype == torch.float64
    assert inverse_root(other.degree, torch.float32).shape == (6,)


def test_rows_are_cut_for_as_many_workers_as_there_are() -> None:
    graph = path(500)
    assert cut_rows(graph.indptr, 1).chunks.tolist() == [0, 500]
    chunks = cut_rows(graph.indptr, 2).chunks
    assert chunks.shape[0] == 33
    assert chunks[0] == 0
    assert chunks[-1] == 500
    assert (chunks.diff() > 0).all()
    assert cut_rows(graph.indptr, 2).longest == 2


def test_is_forgotten_with_the_graph() -> None:
    graph = path(7)
    before = len(graph_rows._ROOTS._results)
    inverse_root(graph.degree, torch.float32)
    assert len(graph_rows._ROOTS._results) == before + 1
    del graph
    gc.collect()
    assert len(graph_rows._ROOTS._results) <= before

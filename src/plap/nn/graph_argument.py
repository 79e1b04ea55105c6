"""What layers take as a graph: made once, and kept as long as its tensors live."""

from __future__ import annotations

import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.memo import Memo

GraphLike = Graph | Tensor


class GraphArgument:
    """Turns ``edge_index`` and ``edge_weight`` into a graph, once per pair of tensors.

    With ``cached`` the graph of an ``edge_index`` is remembered until that tensor is changed or freed.
    Weights that require gradients, those of a sparse matrix too, are never cached: their graph is part of the
    autograd graph. Changes that PyTorch does not count are not seen: those through ``tensor.data``, and those
    through a NumPy array that shares the memory of ``edge_index`` or ``edge_weight``.
    """

    def __init__(self, cached: bool) -> None:
        self.cached = cached
        self._graphs: Memo[tuple[Tensor | None, Graph]] = (
            Memo()
        )  # the weight is held so that its id stays its own

    def __call__(self, edges: GraphLike, weight: Tensor | None, num_nodes: int) -> Graph:
        """The graph of ``edges``: a Graph, [2, E] indices, an ``EdgeIndex``, or a sparse N × N matrix."""
        if isinstance(edges, Graph):
            if weight is not None:
                raise InputError("edge_weight must not be given with a plap.Graph, which has its own weights")
            if edges.num_nodes != num_nodes:
                raise InputError(f"x has {num_nodes} rows but graph has {edges.num_nodes} nodes")
            return edges
        graph: Graph = self._built(edges, weight, num_nodes)
        return graph

    # What builds a graph is NumPy and SciPy, which cannot be traced.
    @torch.compiler.disable  # type: ignore[untyped-decorator]
    def _built(self, edges: Tensor, weight: Tensor | None, num_nodes: int) -> Graph:
        if not isinstance(edges, Tensor):
            raise InputError(f"edge_index must be a tensor or a plap.Graph, not {type(edges).__name__}")
        differentiable = edges.requires_grad or (weight is not None and weight.requires_grad)
        if not self.cached or differentiable or (weight is not None and weight.is_inference()):
            return _build(edges, weight, num_nodes)
        made_of = (id(weight), None if weight is None else weight._version, num_nodes)
        _, graph = self._graphs.get(edges, lambda: (weight, _build(edges, weight, num_nodes)), made_of)
        return graph


def _build(edges: Tensor, weight: Tensor | None, num_nodes: int) -> Graph:
    if edges.layout == torch.strided:
        return Graph.from_edge_index(edges, weight, num_nodes)
    if weight is not None:
        raise InputError("edge_weight must not be given with a sparse matrix, which has its own weights")
    if edges.shape[0] != num_nodes:
        raise InputError(f"the sparse matrix has {edges.shape[0]} rows but x has {num_nodes}")
    return Graph.from_torch_sparse(edges)

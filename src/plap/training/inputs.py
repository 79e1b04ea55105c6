"""What the runs of a batch share, and what they differ in: graph and features; parameters and seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.kernels.fused.calling import compiled_for
from plap.nn.adjacency import mean_adjacency, normalized_adjacency
from plap.sparse import csr_tensor, scipy_from_tensor
from plap.training import portable
from plap.training.config import RunConfig
from plap.training.devices import wide
from plap.training.dropped_features import dropped_dense_product, dropped_sparse_product, order_of_transpose
from plap.training.native import SparseMatrix, dropout_masks, multiply, stacked_product


@dataclass(frozen=True, eq=False)
class Inputs:
    """What all runs share: graph and features, and what is derived from them once."""

    graph: Graph
    features: Tensor | SparseMatrix
    """[N, F], dense or sparse."""
    adjacency: SparseMatrix | None
    """GCN's normalised adjacency, for the models that use it."""
    means: SparseMatrix | None
    """The matrix of means over neighbours, for the models that use it."""
    dtype: torch.dtype

    def to(self, device: torch.device) -> Inputs:
        """The same on another device."""
        adjacency, means = (None if A is None else A.to(device) for A in (self.adjacency, self.means))
        return Inputs(self.graph.to(device), self.features.to(device), adjacency, means, self.dtype)

    @property
    def num_features(self) -> int:
        """F."""
        return self.features.columns if isinstance(self.features, SparseMatrix) else self.features.shape[1]

    @cached_property
    def matrix(self) -> Tensor:
        """The features as a tensor, dense or sparse CSR."""
        if not isinstance(self.features, SparseMatrix):
            return self.features
        parts = self.features.indptr, self.features.indices, self.features.values
        return csr_tensor(*parts, (self.features.rows, self.features.columns))

    @cached_property
    def dense(self) -> Tensor:
        """The features as a dense tensor."""
        return self.matrix.to_dense() if isinstance(self.features, SparseMatrix) else self.features

    def times_features(self, weight: Tensor) -> Tensor:
        """X Θ of every run: [R, F, C] → [R, N, C]."""
        if isinstance(self.features, SparseMatrix):
            return stacked_product(self.features, weight)
        return torch.bmm(self.features.expand(weight.shape[0], -1, -1), weight)

    def transposed_times(self, grad: Tensor) -> Tensor:
        """Xᵀ times ``grad`` of every run: [R, N, C] → [R, F, C]; not differentiable."""
        if isinstance(self.features, SparseMatrix):
            assert self.features.transposed is not None
            return multiply(self.features.transposed, grad)
        return torch.matmul(self.features.t(), grad)

    def times_dropped_features(
        self, weight: Tensor, settings: RunSettings, epoch: int, name: str, *, layer: int
    ) -> Tensor:
        """The same after dropout of X; for sparse features, drawn for the stored values only."""
        rates = settings.column(name)
        if isinstance(self.features, SparseMatrix):
            masks = settings.masks(epoch, layer, rates, (1, self.features.values.shape[0]))
            return dropped_sparse_product(self.features, self._order_of_transpose, masks.flatten(1), weight)
        rows, columns = self.features.shape

        def mask(run: int) -> Tensor:
            part = slice(run, run + 1)
            return settings.of_runs(part).masks(epoch, layer, rates[part], (rows, columns))[0]

        return dropped_dense_product(self.features, mask, weight)

    @cached_property
    def _order_of_transpose(self) -> Tensor:
        assert isinstance(self.features, SparseMatrix)
        return order_of_transpose(self.features)

    def averaged(self, x: Tensor) -> Tensor:
        """The adjacency times x [R, N, C]."""
        assert self.adjacency is not None
        return stacked_product(self.adjacency, x)

    def mean_of_neighbours(self, x: Tensor) -> Tensor:
        """Weighted means of x [R, N, C] over neighbours."""
        assert self.means is not None
        return stacked_product(self.means, x)

    @cached_property
    def edge_index(self) -> Tensor:
        """The edges of the graph, int64 [2, E]."""
        return self.graph.edge_index


@dataclass(frozen=True, eq=False)
class RunSettings:
    """The parameters of R runs of one model; what :class:`plap.models.stacked.StackedSettings` asks for."""

    configs: Sequence[RunConfig]
    dtype: torch.dtype
    propagation_budget: int | None = None
    """Bytes that pGNN's steps may allocate; where they do not suffice, activations are recomputed."""
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    _columns: dict[tuple[str, torch.dtype], Tensor] = field(default_factory=dict)
    _made: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def seeds(self) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Seeds of the runs, [R]."""
        return np.array([config.seed for config in self.configs], dtype=np.uint64)

    def column(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A parameter of every run, [R]."""
        key = (name, dtype or self.dtype)
        if key not in self._columns:
            values = [getattr(config.parameters, name) for config in self.configs]
            kind = key[1] if key[1] != torch.float64 else wide(self.device)
            self._columns[key] = torch.tensor(values, dtype=kind, device=self.device)
        return self._columns[key]

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` returned when it was first asked for under this name."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def of_runs(self, which: slice) -> RunSettings:
        """The same of some of the runs."""
        return RunSettings(self.configs[which], self.dtype, self.propagation_budget, self.device)

    def drops(self, name: str) -> bool:
        """Whether any run has a positive rate of dropout under this name; known without asking the device."""
        return any(getattr(config.parameters, name) > 0 for config in self.configs)

    @cached_property
    def _seeds_there(self) -> Tensor:
        """The seeds on the device, as int64 with the same bits."""
        return torch.from_numpy(self.seeds.view(np.int64)).to(self.device)

    def common(self, name: str) -> Any:
        """A parameter that all runs have in common."""
        return getattr(self.configs[0].parameters, name)

    def masks(self, epoch: int, layer: int, rates: Tensor, shape: tuple[int, int]) -> Tensor:
        """Dropout masks [R, *shape] of an epoch."""
        size = shape[0] * shape[1]
        if compiled_for(rates.device):
            flat = dropout_masks(self.seeds, epoch, layer, rates, size)
        else:
            flat = portable.dropout_masks(self._seeds_there, epoch, layer, rates, size)
        return flat.view(-1, *shape)


def make_inputs(
    graph: Graph, x: object, dtype: torch.dtype, *, adjacency: bool, means: bool = False,
    device: torch.device | None = None,
) -> Inputs:  # fmt: skip
    """Check the features and prepare them in ``dtype`` on ``device``.

    GCN's adjacency and the matrix of means over neighbours are computed if asked for.

    Features of another device come to the CPU first, unless ``device`` is None: then they are refused.
    """
    check_graph(graph)
    if device is not None:
        graph = graph.to("cpu")
        x = x.cpu() if isinstance(x, Tensor) else x
    features = _features(x, dtype)
    rows = features.rows if isinstance(features, SparseMatrix) else features.shape[0]
    if rows != graph.num_nodes:
        raise InputError(f"x has {rows} rows but graph has {graph.num_nodes} nodes")
    A = SparseMatrix.from_scipy(normalized_adjacency(graph), dtype) if adjacency else None
    M = SparseMatrix.from_scipy(mean_adjacency(graph), dtype) if means else None
    inputs = Inputs(graph, features, A, M, dtype)
    return inputs if device is None or device.type == "cpu" else inputs.to(device)


def _features(x: object, dtype: torch.dtype) -> Tensor | SparseMatrix:
    if isinstance(x, Tensor) and x.device.type != "cpu":
        raise InputError(f"x must be on the CPU, not on {x.device}")
    if scipy.sparse.issparse(x):
        matrix = scipy.sparse.csr_array(x)
    elif isinstance(x, Tensor) and x.layout != torch.strided:
        matrix = scipy_from_tensor(x)
    elif isinstance(x, Tensor) and x.ndim == 2:
        _check_finite(x)
        return (x.clone() if x.is_inference() else x.detach()).to(dtype).contiguous()
    else:
        raise InputError("x must be a tensor of shape [N, F] or a sparse matrix")
    _check_finite(torch.from_numpy(matrix.data))
    return SparseMatrix.from_scipy(matrix, dtype)


def _check_finite(values: Tensor) -> None:
    if not bool(torch.isfinite(values).all()):
        raise InputError("x contains a value that is not finite")

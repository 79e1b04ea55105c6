"""Δ_p as NumPy and SciPy see it: differences along edges, a power, and the differences' transpose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from plap.calculus import incidence
from plap.checks import check_number
from plap.errors import InputError
from plap.graph import Graph, check_graph

Array = NDArray[np.float64]


def signed_power(x: Array, exponent: float) -> Array:
    """sign(x) |x|^exponent, element by element; φ_p(x) of Definition 4 for the exponent p − 1.

    Examples
    --------
    >>> signed_power(np.array([-4.0, 0.0, 9.0]), 0.5)
    array([-2.,  0.,  3.])
    """
    result: Array = np.sign(x) * np.abs(x) ** exponent
    return result


class EdgeOperator:
    r"""A graph's p-Laplacians for every p, on real functions of the nodes.

    The matrix B has one row per undirected edge {i, j},

    .. math:: (B u)_{ij} = \sqrt{W_{ij}/D_i}\, u_i - \sqrt{W_{ij}/D_j}\, u_j,

    so that :math:`\Delta_p u = B^\top \phi_p(B u)` and :math:`\mathcal{S}_p(u) = \|B u\|_p^p` (Eq. 2 and 6);
    see :func:`plap.calculus.incidence`. Functions may come as columns of a matrix.
    """

    def __init__(self, graph: Graph) -> None:
        graph = check_graph(graph).to("cpu")
        ends, share = (part.numpy() for part in incidence(graph))
        shape = (ends.shape[0], graph.num_nodes)
        index = np.int32 if max(ends.size, *shape) < 2**31 - 1 else np.int64
        rows = np.arange(0, ends.size + 1, 2, dtype=index)
        self.B = scipy.sparse.csr_array((share.ravel(), ends.ravel().astype(index), rows), shape=shape)
        self.ends: tuple[NDArray[np.int64], NDArray[np.int64]] = (ends[:, 0], ends[:, 1])
        self.weight: Array = graph.weight.detach().double()[graph.edges_once("upper")].numpy()
        self.degree: Array = graph.degree.detach().numpy()

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.B.shape[1])

    @cached_property
    def transpose(self) -> scipy.sparse.csr_array:
        """The transpose of B, in a form that multiplies fast."""
        return scipy.sparse.csr_array(self.B.T)

    @cached_property
    def dense(self) -> Array:
        """B as an array, for small graphs."""
        array: Array = self.B.toarray()
        return array

    @cached_property
    def laplacian(self) -> scipy.sparse.csr_array:
        """Δ_2 = Bᵀ B."""
        return scipy.sparse.csr_array(self.transpose @ self.B)

    @cached_property
    def components(self) -> NDArray[np.int64]:
        """The connected component of every node, numbered from 0."""
        labels: NDArray[np.int64] = connected_components(self.laplacian, directed=False)[1].astype(np.int64)
        return labels

    def apply(self, u: Array, p: float) -> Array:
        """Δ_p u."""
        result: Array = self.transpose @ signed_power(self.B @ u, p - 1)
        return result

    def quotient(self, u: Array, p: float) -> Array:
        """The Rayleigh quotient S_p(u) / ‖u‖_p^p, of a p-eigenvector its p-eigenvalue."""
        result: Array = (np.abs(self.B @ u) ** p).sum(axis=0) / (np.abs(u) ** p).sum(axis=0)
        return result

    def row_sums(self, p: float) -> Array:
        """Σ_j (W_ij/D_i)^(p/2) of every node: the Rayleigh quotient of the function that is 1 there only."""
        sums: Array = np.zeros(self.num_nodes)
        for end in self.ends:
            np.add.at(sums, end, (self.weight / self.degree[end]) ** (p / 2))
        return sums

    def require_connected(self, what: str) -> None:
        """Refuse a graph that is not connected or has fewer than two nodes."""
        parts = int(self.components.max(initial=-1)) + 1
        if self.num_nodes < 2 or parts > 1:
            has = f"{self.num_nodes} nodes in {parts} components" if parts > 1 else "fewer"
            raise InputError(f"{what} needs a connected graph of two nodes or more; this one has {has}")


@dataclass(frozen=True)
class Eigenpair:
    """A p-eigenvalue and its p-eigenvector, Δ_p u = λ φ_p(u) (Definition 4), as far as it was found."""

    p: float
    value: float
    """λ, the Rayleigh quotient of the vector."""
    vector: Array
    """u of shape [N], with ‖u‖_p = 1 and its largest component positive."""
    residual: float
    """‖Bᵀ z − λ φ_p(u)‖_q for the fluxes z = φ_p(Bu), with 1/p + 1/q = 1 so that ‖φ_p(u)‖_q is 1.

    Near p = 1 rounding limits it: a difference of 1e-16 carries a flux of 0.03 at p = 1.1. Where Newton's
    method solved for z too, this is the norm of both of its equations, the other being φ_q(z) = Bu.
    """
    converged: bool
    """Whether the residual reached the tolerance."""


def eigenpair(
    operator: EdgeOperator, u: Array, p: float, tol: float, residual: float | None = None
) -> Eigenpair:
    """An :class:`Eigenpair` of a vector of any length and sign."""
    u = unit(u, p)
    u = u * np.sign(u[np.argmax(np.abs(u))])
    value = float(operator.quotient(u, p))
    if residual is None:
        residual = _dual_norm(operator.apply(u, p) - value * signed_power(u, p - 1), p)
    return Eigenpair(p, value, u, residual, residual <= tol)


def unit(u: Array, p: float) -> Array:
    """The vector, or each column, divided by its p-norm; zeros stay."""
    largest = np.abs(u).max(axis=0)
    scaled = u / np.where(largest > 0, largest, 1)
    norm = (np.abs(scaled) ** p).sum(axis=0) ** (1 / p)
    result: Array = scaled / np.where(norm > 0, norm, 1)
    return result


def _dual_norm(r: Array, p: float) -> float:
    largest = float(np.abs(r).max(initial=0))
    if largest == 0 or p == 1:
        return largest
    q = p / (p - 1)
    return largest * float(((np.abs(r) / largest) ** q).sum() ** (1 / q))


def check_p(p: float, *, above_one: bool = False) -> float:
    """Return p as a float of at least 1, or above 1, or refuse it."""
    return check_number("p", p, above=1) if above_one else check_number("p", p, least=1)

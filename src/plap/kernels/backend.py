"""What a backend of :func:`plap.propagate` is: one function of one signature, and which calls it serves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor

from plap.graph import Graph
from plap.kernels.budget import Shape, Way
from plap.penalties import Penalty

Variant = Literal["paper", "published"]
"""Eq. 11-13 of the paper, or the step of the code that was published with it."""


@dataclass(frozen=True)
class Capabilities:
    """Which calls a backend serves. :func:`plap.kernels.registry.choose` compares a call with it."""

    devices: frozenset[str] | None
    """Device types such as "cpu" and "cuda"; None for any device."""
    dtypes: frozenset[torch.dtype] = frozenset({torch.float32, torch.float64})
    """Types of x."""
    variants: frozenset[Variant] = frozenset({"paper"})
    memory_budget: bool = False
    """Whether it knows how much memory a call takes, and recomputes activations to keep within a budget."""
    second_derivatives: bool = False
    """Whether its gradients can be differentiated again. First derivatives in x, the edge weights, mu and the
    penalty's parameter are expected of every backend."""
    functional: bool = False
    """Whether torch.func.grad and forward-mode derivatives exist."""
    automatic: bool = True
    """Whether ``backend="auto"`` may choose it."""
    missing: str | None = None
    """What keeps it from working on this machine at all, in a sentence; None if nothing does."""


@runtime_checkable
class Backend(Protocol):
    """Takes K steps of Eq. 11-13.

    An object with these members can be passed to :func:`plap.propagate` as ``backend``; a line in
    :mod:`plap.kernels.registry` makes it known by its name.
    """

    @property
    def name(self) -> str:
        """What people write as ``backend="..."``."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """Which calls it serves; it is never asked for others."""
        ...

    def propagate(
        self,
        x: Tensor,
        graph: Graph,
        penalty: Penalty,
        mu: Tensor,
        K: int,
        omega: float = 1.0,
        eps: float | None = None,
        *,
        detach_weights: bool = False,
        variant: Variant = "paper",
        budget: int | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """K steps of p-Laplacian message passing, Eq. 11-13, from F(0) = x. The arguments have been checked.

        Parameters
        ----------
        x : Tensor, shape [R, N, C]
            R independent runs over one graph.
        graph : Graph
            On the device of x.
        penalty : Penalty
            Its parameter is a tensor of shape [R]; for :class:`plap.penalties.Power` that is p.
        mu : Tensor, shape [R]
        K : int
        omega : float
            Damping: F ← (1 − omega) F + omega F'.
        eps : float, optional
            For penalties that are unbounded at 0 (powers p ≤ 2 among them), clamp the edge norm at eps
            instead of cutting equal rows apart.
        detach_weights : bool
            Treat ψ(ν_ij) as a constant in the backward pass.
        variant : {"paper", "published"}
            "published" weights a message by α of its source and doubles β, as the code of 2022 did.
        budget : int, optional
            Bytes that the call and its backward pass may allocate beyond x, the graph, the result and the
            gradients.
        rows : Tensor, shape [R, T], optional
            The nodes of every run at which the result will be looked at. A backend may leave out what does
            not matter there; other rows have no meaning then.

        Returns
        -------
        Tensor, shape [R, N, C]
        """
        ...

    def refuses(self, penalty: Penalty) -> str | None:
        """Why it cannot run a penalty, as a sentence that names the penalty; None if it can."""
        ...

    def ways(self, shape: Shape, *, training: bool) -> list[Way]:
        """The ways to run a call of this shape, fastest first, each with the memory that it needs.

        The first is what a call takes without a budget, the last needs the least. Empty where
        ``capabilities.memory_budget`` is False.
        """
        ...

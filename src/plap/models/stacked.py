"""Models whose parameters carry a leading axis of runs: R models of one shape evaluated in one go.

A model is two functions. ``embed`` is the first layer, which does not depend on dropout, so a training step
and the evaluation before it share its result; ``head`` is the rest. What these are given is described by two
protocols; training provides both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from plap.graph import Graph
from plap.penalties import Penalty

State = dict[str, Tensor]
"""Parameters by the single-run module's names, [R, ...]; the matrices of linear maps as [R, in, out]."""


class StackedState(NamedTuple):
    """What R runs begin with."""

    parameters: State
    """Optimised."""
    buffers: State
    """Not optimised; a training step may change them."""


class StackedInputs(Protocol):
    """The graph and the features that all runs share."""

    @property
    def graph(self) -> Graph:
        """The graph, N nodes."""
        ...

    def times_features(self, weight: Tensor) -> Tensor:
        """X Θ of every run: [R, F, C] → [R, N, C]."""
        ...

    def times_dropped_features(
        self, weight: Tensor, settings: Any, epoch: int, name: str, *, layer: int
    ) -> Tensor:
        """The same after dropout of X by the rates of the parameter ``name``."""
        ...

    def averaged(self, x: Tensor) -> Tensor:
        """GCN's normalised adjacency times x [R, N, C], for a family that ``uses_adjacency``."""
        ...

    def mean_of_neighbours(self, x: Tensor) -> Tensor:
        """Weighted means of x [R, N, C] over neighbours, for a family that ``uses_means``."""
        ...


class StackedSettings(Protocol):
    """The parameters in which the runs of a batch may differ."""

    @property
    def propagation_budget(self) -> int | None:
        """Bytes that propagation may allocate; None: as many as it takes."""
        ...

    def column(self, name: str, dtype: torch.dtype | None = None) -> Tensor:
        """A parameter of every run, [R]; in the dtype of the training unless told otherwise."""
        ...

    def common(self, name: str) -> Any:
        """A parameter that all runs of the batch have in common, see :attr:`Family.equal`."""
        ...

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What ``make`` returned when it was first asked for under this name: the same in every epoch."""
        ...

    def drops(self, name: str) -> bool:
        """Whether any run has a positive rate of dropout under this name."""
        ...

    def masks(self, epoch: int, layer: int, rates: Tensor, shape: tuple[int, int]) -> Tensor:
        """Dropout masks [R, *shape] of an epoch, a different set for every layer."""
        ...


class Propagation(NamedTuple):
    """A p-Laplacian propagation whose activations may be computed again instead of kept."""

    channels: int
    steps: int


class PLaplacianSteps(NamedTuple):
    """Message passing of a batch of runs, see :func:`plap.kernels.registry.propagate_unchecked`."""

    penalty: Penalty
    mu: Tensor
    K: int
    detach_weights: bool


class TwoMaps(NamedTuple):
    """A model that is a linear map, ReLU, dropout, p-Laplacian steps or none, and another linear map.

    It is trained without autograd where compiled loops can, see :mod:`plap.training.epochs`; then this form
    counts, not ``embed`` and ``head``.
    """

    first: str
    """The linear map of the features, by its name."""
    last: str
    steps: Callable[[StackedSettings], PLaplacianSteps] | None
    """What is between ReLU and the last map; None: nothing."""


@dataclass(frozen=True)
class Family:
    """A model as functions of stacked parameters."""

    embed: Callable[[State, StackedInputs], Tensor]
    """First layer before its activation, [R, N, hidden]."""
    head: Callable[[State, StackedInputs, StackedSettings, Tensor, int | None, Tensor], Tensor]
    """(state, inputs, settings, embedding, epoch, rows [R, T]) → logits [R, T, L]; epoch None: no dropout."""
    equal: tuple[str, ...]
    """Parameters that all runs of a batch must have in common, because they shape it."""
    width: Callable[[Any, int], int]
    """(parameters, L) → about how many numbers per node one run holds at a time."""
    weights: Callable[[Any, int, int], int]
    """(parameters, F, L) → how many weights one run has."""
    edge_width: Callable[[Any], int] = lambda parameters: 0
    """(parameters) → about how many numbers per stored entry of the graph one run holds at a time."""
    uses_adjacency: bool = False
    """Whether it asks its inputs for ``averaged``."""
    uses_means: bool = False
    """Whether it asks its inputs for ``mean_of_neighbours``."""
    propagation: Callable[[Any], Propagation] | None = None
    """(parameters) → what may be computed again where memory is short; None: nothing."""
    two_maps: TwoMaps | None = None
    """The model's form, if it is this one."""
    serves: Callable[[Any], bool] | None = None
    """(parameters) → whether runs with these are stacked; None: always."""

    def stack(self, modules: Sequence[torch.nn.Module], dtype: torch.dtype) -> StackedState:
        """One module per run → one state of all runs."""
        states = [module.state_dict() for module in modules]
        kept = {name for name, _ in modules[0].named_buffers()}
        stacked = {name: torch.stack([s[name] for s in states]) for name in states[0]}
        parameters = {name: _turned(v.to(dtype)) for name, v in stacked.items() if name not in kept}
        buffers = {
            name: v.to(dtype) if v.is_floating_point() else v for name, v in stacked.items() if name in kept
        }
        return StackedState(parameters, buffers)

    def unstack(self, state: State, run: int) -> State:
        """What the single-run module of one run loads."""
        return {name: _turned(value[run : run + 1]).squeeze(0).clone() for name, value in state.items()}


def _turned(value: Tensor) -> Tensor:
    return value.transpose(1, 2).contiguous() if value.ndim == 3 else value


def linear(state: State, name: str, x: Tensor) -> Tensor:
    """The linear map ``name`` of every run: [R, N, in] → [R, N, out]."""
    return torch.baddbmm(state[f"{name}.bias"].unsqueeze(1), x, state[f"{name}.weight"])


def first_linear(name: str) -> Callable[[State, StackedInputs], Tensor]:
    """An ``embed``: the linear map ``name`` of the features."""

    def embed(state: State, inputs: StackedInputs) -> Tensor:
        return inputs.times_features(state[f"{name}.weight"]) + state[f"{name}.bias"].unsqueeze(1)

    return embed


def pick(x: Tensor, rows: Tensor) -> Tensor:
    """``x[r, rows[r]]`` for every run: [R, T, C]."""
    return x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))


def activated(settings: StackedSettings, embedding: Tensor, epoch: int | None) -> Tensor:
    """ReLU, then dropout by the parameter ``dropout``."""
    return dropped(settings, embedding.relu(), epoch, "dropout", layer=0)


def dropout_mask(
    settings: StackedSettings, x: Tensor, epoch: int | None, name: str, *, layer: int
) -> Tensor | None:
    """What x [R, N, C] is multiplied by: dropout by the rates of a parameter; None outside of training."""
    if epoch is None or not settings.drops(name):
        return None
    return settings.masks(epoch, layer, settings.column(name), (x.shape[1], x.shape[2]))


def dropped(settings: StackedSettings, x: Tensor, epoch: int | None, name: str, *, layer: int) -> Tensor:
    """Dropout by the rates of the parameter ``name``; outside of training x as it is."""
    mask = dropout_mask(settings, x, epoch, name, layer=layer)
    return x if mask is None else x * mask


def two_layers(parameters: Any, features: int, classes: int) -> int:
    """Weights of two linear maps with ``hidden`` units between them."""
    hidden: int = parameters.hidden
    return (features + 1) * hidden + (hidden + 1) * classes

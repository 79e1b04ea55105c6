"""Models whose parameters carry a leading axis of runs: R models of one shape evaluated in one go.

A model is two functions. ``embed`` is the first layer, which does not depend on dropout, so a training step
and the evaluation before it share its result; ``head`` is the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.kernels.registry import propagate_unchecked
from plap.training.config import RunConfig
from plap.training.inputs import Inputs
from plap.training.masks import dropout_masks
from plap.training.products import SparseMatrix, stacked_product

State = dict[str, Tensor]
"""Parameters by the single-run module's names, [R, ...]; the matrices of linear maps as [R, in, out]."""


class StackedState(NamedTuple):
    """What R runs begin with."""

    parameters: State
    """Optimised."""
    buffers: State
    """Not optimised; a training step may change them."""


@dataclass(frozen=True, eq=False)
class Settings:
    """The numbers in which runs of a batch may differ, [R] each, and what they have in common."""

    p: Tensor
    mu: Tensor
    alpha: Tensor
    dropout: Tensor
    dprate: Tensor
    seeds: np.ndarray[tuple[int], np.dtype[np.uint64]]
    K: int
    propagation_budget: int | None = None
    """Bytes that pGNN's steps may allocate; activations are computed again where these do not suffice."""

    @classmethod
    def of(
        cls, configs: Sequence[RunConfig], dtype: torch.dtype, propagation_budget: int | None = None
    ) -> Settings:
        """The settings of these runs, which have K in common."""

        def column(name: str, kind: torch.dtype) -> Tensor:
            return torch.tensor([getattr(config, name) for config in configs], dtype=kind)

        return cls(
            p=column("p", torch.float64),
            mu=column("mu", torch.float64),
            alpha=column("alpha", dtype),
            dropout=column("dropout", dtype),
            dprate=column("dprate", dtype),
            seeds=np.array([config.seed for config in configs], dtype=np.uint64),
            K=configs[0].K,
            propagation_budget=propagation_budget,
        )

    def masks(self, epoch: int, layer: int, rates: Tensor, shape: tuple[int, int]) -> Tensor:
        """Dropout masks [R, *shape] of an epoch."""
        flat = dropout_masks(self.seeds, epoch, layer, rates, shape[0] * shape[1])
        return flat.view(-1, *shape)


@dataclass(frozen=True)
class Family:
    """A kind of model, as functions of stacked parameters."""

    embed: Callable[[State, Inputs], Tensor]
    """First layer before its activation, [R, N, hidden]."""
    head: Callable[[State, Inputs, Settings, Tensor, int | None, Tensor], Tensor]
    """(state, inputs, settings, embedding, epoch, rows [R, T]) → logits [R, T, L]; epoch None: no dropout."""
    width: Callable[[RunConfig, int], int]
    """(configuration, L) → about how many numbers a node one run holds at a time."""
    uses_adjacency: bool = False

    def stack(self, modules: Sequence[torch.nn.Module], dtype: torch.dtype) -> StackedState:
        """One module a run → one state of all runs."""
        states = [module.state_dict() for module in modules]
        parameters = {name: torch.stack([s[name] for s in states]).to(dtype) for name in states[0]}
        return StackedState({name: _turned(value) for name, value in parameters.items()}, {})

    def unstack(self, state: State, run: int) -> State:
        """What the single-run module of one run loads."""
        return {name: _turned(value[run : run + 1]).squeeze(0).clone() for name, value in state.items()}


def _turned(value: Tensor) -> Tensor:
    return value.transpose(1, 2).contiguous() if value.ndim == 3 else value


def _times_features(inputs: Inputs, weight: Tensor) -> Tensor:
    """X Θ of every run: [R, N, out]."""
    if isinstance(inputs.features, SparseMatrix):
        return stacked_product(inputs.features, weight)
    return torch.bmm(inputs.features.expand(weight.shape[0], -1, -1), weight)


def _linear(state: State, name: str, x: Tensor) -> Tensor:
    return torch.baddbmm(state[f"{name}.bias"].unsqueeze(1), x, state[f"{name}.weight"])


def _pick(x: Tensor, rows: Tensor) -> Tensor:
    """``x[r, rows[r]]`` for every run: [R, T, C]."""
    return x.gather(1, rows.unsqueeze(2).expand(-1, -1, x.shape[2]))


def _activated(settings: Settings, embedding: Tensor, epoch: int | None) -> Tensor:
    """ReLU and dropout."""
    hidden = embedding.relu()
    if epoch is None or not bool((settings.dropout > 0).any()):
        return hidden
    return hidden * settings.masks(epoch, 0, settings.dropout, (hidden.shape[1], hidden.shape[2]))


def _averaged(inputs: Inputs, x: Tensor) -> Tensor:
    assert inputs.adjacency is not None
    return stacked_product(inputs.adjacency, x)


def _pgnn_embed(state: State, inputs: Inputs) -> Tensor:
    return _times_features(inputs, state["lin.weight"]) + state["lin.bias"].unsqueeze(1)


def _pgnn_head(
    state: State, inputs: Inputs, settings: Settings, embedding: Tensor, epoch: int | None, rows: Tensor
) -> Tensor:
    hidden = _activated(settings, embedding, epoch)
    # not plap.propagate: its checks cost a tenth of an epoch, and one run's overflow must not end the batch
    result = propagate_unchecked(
        hidden, inputs.graph, settings.p, settings.mu, settings.K, budget=settings.propagation_budget
    )
    return _linear(state, "conv.lin", _pick(result, rows))


def _mlp_embed(state: State, inputs: Inputs) -> Tensor:
    return _times_features(inputs, state["lin1.weight"]) + state["lin1.bias"].unsqueeze(1)


def _mlp_head(
    state: State, inputs: Inputs, settings: Settings, embedding: Tensor, epoch: int | None, rows: Tensor
) -> Tensor:
    return _linear(state, "lin2", _pick(_activated(settings, embedding, epoch), rows))


def _gcn_embed(state: State, inputs: Inputs) -> Tensor:
    return _averaged(inputs, _times_features(inputs, state["lin1.weight"])) + state["lin1.bias"].unsqueeze(1)


def _gcn_head(
    state: State, inputs: Inputs, settings: Settings, embedding: Tensor, epoch: int | None, rows: Tensor
) -> Tensor:
    hidden = torch.bmm(_activated(settings, embedding, epoch), state["lin2.weight"])
    return _pick(_averaged(inputs, hidden), rows) + state["lin2.bias"].unsqueeze(1)


def _sgc_embed(state: State, inputs: Inputs) -> Tensor:
    return _times_features(inputs, state["lin.weight"])


def _sgc_head(
    state: State, inputs: Inputs, settings: Settings, embedding: Tensor, epoch: int | None, rows: Tensor
) -> Tensor:
    z = embedding
    for _ in range(settings.K):
        z = _averaged(inputs, z)
    return _pick(z, rows) + state["lin.bias"].unsqueeze(1)


def _appnp_head(
    state: State, inputs: Inputs, settings: Settings, embedding: Tensor, epoch: int | None, rows: Tensor
) -> Tensor:
    start = _linear(state, "lin2", _activated(settings, embedding, epoch))
    alpha = settings.alpha[:, None, None]
    held = alpha * start
    z = start
    for _ in range(settings.K):
        z = torch.addcmul(held, 1 - alpha, _averaged(inputs, z))
    return _pick(z, rows)


def _gprgnn_head(
    state: State, inputs: Inputs, settings: Settings, embedding: Tensor, epoch: int | None, rows: Tensor
) -> Tensor:
    z = _linear(state, "lin2", _activated(settings, embedding, epoch))
    if epoch is not None and bool((settings.dprate > 0).any()):
        z = z * settings.masks(epoch, 1, settings.dprate, (z.shape[1], z.shape[2]))
    gamma = state["gamma"][:, :, None, None]
    result = gamma[:, 0] * _pick(z, rows)
    for k in range(1, settings.K + 1):
        z = _averaged(inputs, z)
        result = torch.addcmul(result, gamma[:, k], _pick(z, rows))
    return result


PGNN = Family(_pgnn_embed, _pgnn_head, lambda c, L: (c.K + 9) * (-(-c.hidden // 8) * 8))
MLP = Family(_mlp_embed, _mlp_head, lambda c, L: 5 * c.hidden)
GCN = Family(_gcn_embed, _gcn_head, lambda c, L: 6 * c.hidden + 4 * L, uses_adjacency=True)
SGC = Family(_sgc_embed, _sgc_head, lambda c, L: (2 * c.K + 4) * L, uses_adjacency=True)
APPNP = Family(_mlp_embed, _appnp_head, lambda c, L: 5 * c.hidden + (2 * c.K + 4) * L, uses_adjacency=True)
GPRGNN = Family(_mlp_embed, _gprgnn_head, lambda c, L: 5 * c.hidden + (3 * c.K + 4) * L, uses_adjacency=True)

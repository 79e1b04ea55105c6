"""pGNN, the paper's model (Eq. 16-18)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from plap.edge_lengths import typical_edge_norm
from plap.graph import Graph
from plap.kernels.registry import propagate_unchecked
from plap.models.kind import STRONG_DECAY, Grid, ModelKind, PairStates
from plap.models.parameters import Parameters, choice, integer, number, share, switch
from plap.models.stacked import (
    Family,
    PLaplacianSteps,
    Propagation,
    StackedInputs,
    StackedSettings,
    State,
    TwoMaps,
    activated,
    first_linear,
    linear,
    pick,
    two_layers,
)
from plap.nn import PGNN
from plap.nn.adjacency import times
from plap.nn.linear import Features
from plap.penalties import BUILT_IN, Penalty, Power
from plap.propagation import propagate

PENALTIES: dict[str, type[Penalty]] = {penalty.__name__.lower(): penalty for penalty in BUILT_IN}
"""By the names that the parameter ``penalty`` takes: ``power``, ``mcp``, ``huber`` and so on."""


@dataclass(frozen=True)
class PGNNParameters(Parameters):
    """Parameters of pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Propagation steps."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""
    penalty: str = choice("power", *PENALTIES)
    """How edges are weighed by their length, see :mod:`plap.penalties`; p belongs to the power alone."""
    gamma: float = number(3.0, above=0)
    """The parameter of every other penalty."""
    unit: float = number(1.0, above=0)
    """The length in which γ and μ are given, see :func:`plap.propagate`. For other penalties than the power a
    search takes the median edge norm of the features, so that one grid serves features of any scale."""
    detach_weights: bool = switch(False)
    """Whether the weights of edges are constants in the backward pass."""


PAPER: Grid = {
    "lr": (0.001, 0.01, 0.05),
    "dropout": (0.0, 0.5),
    "mu": (0.01, 0.1, 0.2, 1.0, 10.0),
    "K": (4, 6, 8),
    "weight_decay": (0.0, 5e-4),
}
"""The appendix "Hyperparameter Settings"; p is not searched there: each has a row of its own."""

SMALL: Grid = {"lr": (0.01,), "mu": (0.01, 0.1, 1.0, 10.0), "K": (4,), "weight_decay": (5e-4,)}

POWERS: Grid = {
    "penalty": ("power",),
    "p": (1.0, 1.5, 2.0, 2.5),
    "mu": (0.01, 0.1, 1.0, 10.0, 100.0),
    "K": PAPER["K"],
    "lr": (0.01, 0.05),
    "dropout": PAPER["dropout"],
    "weight_decay": (*PAPER["weight_decay"], STRONG_DECAY),
}
"""The paper's grid for all of its p. It is extended by mu = 100, with which the model all but ignores edges
that are of no use, and by a stronger weight decay. It leaves out mu = 0.2, beside 0.1, and the learning rate
0.001, with which the first rungs of a search are over before anything is learned."""

ROBUST: tuple[Grid, ...] = (
    {
        "penalty": ("mcp",),
        "gamma": (0.7, 1.2, 2.0),
        "unit": (1.0,),
        "mu": (0.1, 0.3),
        "K": (5,),
        "lr": (0.01, 0.05),
        "dropout": (0.5,),
        "weight_decay": (5e-4, STRONG_DECAY),
        "detach_weights": (True,),
    },
    {
        "penalty": ("huber",),
        "gamma": (0.1, 0.5),
        "unit": (1.0,),
        "mu": (0.1, 0.5),
        "K": (5,),
        "lr": (0.01,),
        "dropout": (0.5,),
        "weight_decay": (5e-4,),
        "detach_weights": (True,),
    },
)
"""Penalties for graphs with edges that lie. A unit of 1 is replaced by the features' median edge norm."""

ON_REQUEST: tuple[Grid, ...] = (
    {**ROBUST[0], "penalty": ("scad",), "gamma": (0.3, 0.5, 0.8)},
    *({**ROBUST[0], "penalty": (name,)} for name in ("welsch", "geman", "cauchy")),
)
"""The other penalties: SCAD leaves out an edge from 3.7 γ on."""

_DIRECTIONS = 64
"""Random directions of the features in which lengths are measured."""


def _measured(candidates: Sequence[PGNNParameters], graph: Graph, x: Features) -> list[PGNNParameters]:
    """The candidates with the unit in which lengths are given: the median edge norm of the features.

    It is that of a random projection, which has the lengths of the features up to a tenth, and serves dense
    and sparse features alike.
    """
    if all(c.penalty == "power" for c in candidates):
        return list(candidates)
    draws = torch.Generator().manual_seed(0)
    directions = torch.randn(_DIRECTIONS, x.shape[1], generator=draws, dtype=torch.float32)
    if isinstance(x, Tensor):
        directions = directions.to(x.dtype)
    unit = float(typical_edge_norm(times(x, directions / _DIRECTIONS**0.5), graph))
    return [c if c.penalty == "power" or c.unit != 1 else replace(c, unit=unit) for c in candidates]


def _build(c: PGNNParameters, in_channels: int, out_channels: int) -> torch.nn.Module:
    return PGNN(
        in_channels, c.hidden, out_channels, mu=c.mu, K=c.K, dropout=c.dropout, unit=c.unit,
        detach_weights=c.detach_weights,
        **({"p": c.p} if c.penalty == "power" else {"penalty": PENALTIES[c.penalty](c.gamma)}),
    )  # fmt: skip


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    result = _propagated(activated(settings, embedding, epoch), inputs.graph, settings, rows)
    return linear(state, "conv.lin", pick(result, rows))


def _propagated(x: Tensor, graph: Graph, settings: StackedSettings, rows: Tensor) -> Tensor:
    # not plap.propagate: its checks cost a tenth of an epoch, and one run's overflow must not end the batch
    penalty, mu, K, detach = settings.once("steps", lambda: _steps(settings))
    return propagate_unchecked(
        x, graph, penalty, mu, K, detach_weights=detach, budget=settings.propagation_budget, rows=rows
    )


def _steps(settings: StackedSettings) -> PLaplacianSteps:
    return PLaplacianSteps(*_absolute(settings), settings.common("K"), settings.common("detach_weights"))


def _absolute(settings: StackedSettings) -> tuple[Penalty, Tensor]:
    """The penalty and μ of every run, in the unit of the features."""
    p, gamma, unit, mu = (settings.column(name, torch.float64) for name in ("p", "gamma", "unit", "mu"))
    kind = settings.common("penalty")
    penalty: Penalty = Power(p) if kind == "power" else PENALTIES[kind](gamma)
    absolute, strength = penalty.in_units_of(unit, mu)
    assert isinstance(strength, Tensor)
    return absolute, strength


def _width(c: PGNNParameters, classes: int) -> int:
    return (c.K + 9) * (-(-c.hidden // 8) * 8)


def _edge_weights(module: PGNN, x: Features, graph: Graph) -> Tensor:
    """α D^-1/2 M D^-1/2 of the last step (Eq. 12-13)."""
    weight: Tensor = module(x, graph, return_aggregation_weights=True)[1][1]
    return weight


def _after(module: PGNN, start: Tensor, graph: Graph, steps: int) -> Tensor:
    conv = module.conv
    penalty, mu = conv.at_scale_of(start, graph)
    return propagate(start, graph, mu=mu, K=steps, penalty=penalty, omega=conv.omega, eps=conv.eps)


def _embeddings(module: PGNN, x: Features, graph: Graph) -> Tensor:
    """F(K) of Eq. 17."""
    return _after(module, module.embed(x), graph, module.conv.K)


def _pair_states(module: PGNN, x: Features, graph: Graph) -> PairStates:
    """F after 0, 1, 2 and K steps."""
    start = module.embed(x)
    later = [_after(module, start, graph, steps) for steps in sorted({1, 2, module.conv.K})]
    return PairStates([start, *later], module.conv.lin(later[-1]).softmax(1))


def _label(c: PGNNParameters) -> str:
    return f"pGNN p = {c.p}" if c.penalty == "power" else f"pGNN {PENALTIES[c.penalty].__name__}"


PGNN_MODEL = ModelKind(
    "pgnn",
    PGNNParameters,
    _build,
    title="pGNN",
    label=_label,
    grid=PAPER,
    small=SMALL,
    wide=64,
    search=(POWERS, *ROBUST),
    on_request=ON_REQUEST,
    even_over=("penalty", "p"),
    measured=_measured,
    unused=lambda c: ("gamma", "unit") if c.penalty == "power" else ("p",),
    later=("penalty", "gamma", "unit", "detach_weights"),
    dropout_fields=("dropout",),
    stacked=Family(
        first_linear("lin"),
        _head,
        equal=("hidden", "K", "penalty", "detach_weights"),
        width=_width,
        weights=two_layers,
        propagation=lambda c: Propagation(c.hidden, c.K),
        two_maps=TwoMaps("lin", "conv.lin", _steps),
    ),
    hops=lambda c: c.K,
    module=PGNN,
    edge_weights=_edge_weights,
    embeddings=_embeddings,
    leaves_edges_out=lambda module: not module.conv.penalty.convex,
    pair_states=_pair_states,
    exportable=True,
)

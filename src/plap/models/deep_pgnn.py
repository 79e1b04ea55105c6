"""Several p-Laplacian layers on top of each other: the paper's for PPI and ogbn-arxiv, and deeper ones."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import Module

from plap.graph import Graph
from plap.kernels.registry import propagate_unchecked
from plap.models.kind import Architecture, Grid, ModelKind, PairStates, linked_nodes_differ
from plap.models.parameters import Parameters, choice, integer, number, share, switch
from plap.models.stacked import (
    Family,
    StackedInputs,
    StackedSettings,
    State,
    dropout_mask,
    first_linear,
    linear,
    pick,
)
from plap.nn import DeepPGNN
from plap.nn.deep import jump
from plap.nn.linear import Features
from plap.nn.stacked_activation import Moments, Norm, activate, moments_of, normalise

_MOMENTUM = 0.1
"""Of PyTorch's BatchNorm, by default."""


@dataclass(frozen=True)
class DeepPGNNParameters(Parameters):
    """Parameters of deep-pgnn."""

    hidden: int = integer(16)
    """Hidden units."""
    p: float = number(2.0, at_least=1)
    mu: float = number(0.1, above=0)
    K: int = integer(4)
    """Steps of each p-Laplacian layer."""
    dropout: float = share(0.5)
    """Share of the hidden units that is dropped in training."""
    layers: int = integer(3)
    """p-Laplacian layers."""
    mlp_layers: int = integer(0, at_least=0)
    """Linear layers in front of them."""
    residual: bool = switch(False)
    """Whether layers add their input to their output."""
    norm: str = choice("batch", "batch", "layer", "none")
    prenorm: bool = switch(False)
    """Whether a layer's input is normalised instead of its output."""
    concat: bool = switch(False)
    """Whether a layer maps its input beside what propagation made of it."""
    output: str = choice("layer", "layer", "linear", "max", "cat")
    """What makes the logits: the last p-Laplacian layer; a linear map of the last one, or of all of them."""
    learn_p: bool = switch(False)
    """Whether every layer learns its own p, from ``p`` on."""
    learn_mu: bool = switch(False)


# The paper says how the deep models are made and nothing of their training: this grid is ours.
GRID: Grid = {"lr": (0.005, 0.01), "dropout": (0.0, 0.5), "weight_decay": (0.0, 5e-4)}
SMALL: Grid = {"lr": (0.01,), "weight_decay": (0.0,)}


SEARCH: Grid = {
    "p": (1.5, 2.0, 2.5),
    "K": (1,),
    "lr": (0.01,),
    "dropout": (0.0, 0.2, 0.5),
    "hidden": (64,),
    "mlp_layers": (1,),
    "output": ("linear",),
}
"""What the following have in common, or replace."""
PLAIN = Architecture(
    {"layers": (1, 2, 3), "norm": ("none",), "mu": (0.01, 0.1, 1.0), "weight_decay": (0.0, 5e-4)},
    start={"p": 2.0, "dropout": 0.2},
)
"""A few layers without normalisation."""
BESIDE = Architecture(
    {
        "layers": (1, 2),
        "norm": ("none",),
        "concat": (True,),
        "mu": (0.01, 0.1, 1.0),
        "weight_decay": (5e-4, 5e-3),
    },
    start={"p": 2.0, "dropout": 0.2, "weight_decay": 5e-3},
)
"""The same that see a node beside its neighbours, for graphs on which the two tell different things."""
BLOCKS = Architecture(
    {
        "layers": (2, 3, 6, 9),
        "lr": (0.003, 0.01),
        "dropout": (0.2, 0.5, 0.8),
        "norm": ("batch", "layer"),
        "concat": (True,),
        "residual": (True,),
        "mu": (0.01,),
        "weight_decay": (0.0, 5e-4, 5e-3),
    },
    start={"p": 2.0, "layers": 3, "lr": 0.01, "dropout": 0.5, "weight_decay": 5e-4},
)
"""Residual blocks that see a node beside its neighbours, with normalised outputs, for deeper networks."""


_MOST_ENTRIES = 1_200_000
"""Of a graph on which a fit that chooses models itself searches this one too."""


def _suits(graph: Graph, y: Tensor, train: Tensor) -> bool:
    return graph.num_entries <= _MOST_ENTRIES and linked_nodes_differ(graph, y, train)


def _build(c: DeepPGNNParameters, in_channels: int, out_channels: int) -> DeepPGNN:
    return DeepPGNN(
        in_channels, c.hidden, out_channels, c.layers, c.p, c.mu, c.K,
        dropout=c.dropout, residual=c.residual, mlp_layers=c.mlp_layers,
        norm=None if c.norm == "none" else c.norm,  # type: ignore[arg-type]
        prenorm=c.prenorm, concat=c.concat, output=c.output, learn_p=c.learn_p, learn_mu=c.learn_mu,  # type: ignore[arg-type]
    )  # fmt: skip


def _label(c: DeepPGNNParameters) -> str:
    if not _as_in_the_appendix(c):
        return f"deep pGNN p = {c.p}, {c.layers} layers"
    return f"pGNN {c.p} + residual {c.layers}" if c.residual else f"pGNN p = {c.p}, {c.hidden} units"


def _as_in_the_appendix(c: DeepPGNNParameters) -> bool:
    return (
        c.norm == "batch" and c.output == "layer" and not (c.prenorm or c.concat or c.learn_p or c.learn_mu)
    )


def _stacks(c: DeepPGNNParameters) -> bool:
    """Runs of the appendix's models are trained one by one: stacked dropout would change their results.

    So are those that propagate the features themselves, of which a stack would hold a copy for every run.
    """
    return c.mlp_layers > 0 and not _as_in_the_appendix(c)


def _head(
    state: State,
    inputs: StackedInputs,
    settings: StackedSettings,
    embedding: Tensor,
    epoch: int | None,
    rows: Tensor,
) -> Tensor:
    prenorm, residual, output = (settings.common(name) for name in ("prenorm", "residual", "output"))
    layers, concat = settings.common("layers"), settings.common("concat")
    norms, masks = (f"norms.{k}" for k in itertools.count()), itertools.count()

    def prepared(x: Tensor) -> Tensor:
        norm = _norm(state, next(norms), settings, x, epoch, differentiable=True) if prenorm else None
        return x if norm is None else normalise(x, norm)

    def activated(x: Tensor, added: Tensor | None = None) -> Tensor:
        norm = None if prenorm else _norm(state, next(norms), settings, x, epoch)
        return activate(x, norm, dropout_mask(settings, x, epoch, "dropout", layer=next(masks)), added)

    hidden = activated(embedding)
    for k in range(1, settings.common("mlp_layers")):
        hidden = activated(linear(state, f"mlp.{k}", hidden))
    states = []
    for k in range(layers - (output == "layer")):
        u = prepared(hidden)
        propagated = _propagated(state, f"convs.{k}", u, inputs.graph, settings)
        mapped = _mapped(state, f"convs.{k}.lin", u if concat else None, propagated)
        hidden = activated(mapped, hidden if residual else None)
        states.append(hidden)
    if output != "layer":
        return linear(state, "lin", pick(prepared(jump(states, output)), rows))
    last = f"convs.{layers - 1}"
    u = prepared(hidden)
    propagated = pick(_propagated(state, last, u, inputs.graph, settings), rows)
    return _mapped(state, f"{last}.lin", pick(u, rows) if concat else None, propagated)


def _mapped(state: State, name: str, u: Tensor | None, propagated: Tensor) -> Tensor:
    """The linear map of [u, propagated], without making that matrix; of ``propagated`` if u is None."""
    if u is None:
        return linear(state, name, propagated)
    weight = state[f"{name}.weight"]
    width = u.shape[2]
    own = torch.baddbmm(state[f"{name}.bias"].unsqueeze(1), u, weight[:, :width])
    return own.baddbmm_(propagated, weight[:, width:])


def _propagated(state: State, conv: str, x: Tensor, graph: Graph, settings: StackedSettings) -> Tensor:
    p, mu = settings.column("p", torch.float64), settings.column("mu", torch.float64)
    if settings.common("learn_p"):
        p = 1 + 2 * state[f"{conv}._raw_p"].sigmoid()
    if settings.common("learn_mu"):
        mu = torch.nn.functional.softplus(state[f"{conv}._raw_mu"])
    return propagate_unchecked(x, graph, p, mu, settings.common("K"))


def _norm(
    state: State,
    name: str,
    settings: StackedSettings,
    x: Tensor,
    epoch: int | None,
    *,
    differentiable: bool = False,
) -> Norm | None:
    """The normalisation of x for every run by itself, as the modules of PyTorch have it."""
    kind = settings.common("norm")
    if kind == "none":
        return None
    weight, bias = state[f"{name}.weight"], state[f"{name}.bias"]
    if kind == "layer":
        return Norm("channels", weight, bias)
    if epoch is None:
        kept = Moments(state[f"{name}.running_mean"], state[f"{name}.running_var"], of_input=False)
        return Norm("nodes", weight, bias, kept)
    moments = moments_of(x, differentiable=differentiable)
    _remember(state, name, moments, x.shape[1])
    return Norm("nodes", weight, bias, moments)


@torch.no_grad()
def _remember(state: State, name: str, moments: Moments, count: int) -> None:
    """Update the running statistics of BatchNorm; not by what is not finite, as for a single module."""
    unbiased = moments.variance * (count / max(1, count - 1))
    for which, now in (("running_mean", moments.mean), ("running_var", unbiased)):
        kept = state[f"{name}.{which}"]
        new = torch.lerp(kept, now, _MOMENTUM)
        kept.copy_(torch.where(new.isfinite().all(1, keepdim=True), new, kept))
    state[f"{name}.num_batches_tracked"] += 1


def _width(c: DeepPGNNParameters, classes: int) -> int:
    each = c.K + 7 + 2 * (c.norm != "none") + c.concat + c.residual
    return (c.layers * each + 5 * max(1, c.mlp_layers)) * (-(-c.hidden // 8) * 8)


def _weights(c: DeepPGNNParameters, features: int, classes: int) -> int:
    linear_output = c.output != "layer"
    jumped = c.hidden * (c.layers if c.output == "cat" else 1)
    sizes = [features, *[c.hidden] * c.mlp_layers]
    count = sum((a + 1) * b for a, b in itertools.pairwise(sizes))
    sizes = [sizes[-1], *[c.hidden] * (c.layers - 1), c.hidden if linear_output else classes]
    count += sum(((1 + c.concat) * a + 1) * b for a, b in itertools.pairwise(sizes))
    count += (jumped + 1) * classes if linear_output else 0
    normalised = (
        c.layers - 1 + (c.mlp_layers > 0) if c.prenorm else c.mlp_layers + c.layers - (not linear_output)
    )
    final = jumped if c.prenorm and linear_output else 0
    return count + (0 if c.norm == "none" else 2 * (normalised * c.hidden + final))


def _seen(module: DeepPGNN, x: Features, graph: Graph) -> tuple[list[Tensor], Tensor, Tensor]:
    """What each p-Laplacian layer and the last linear map are given, and the logits."""
    layers, last = (
        list(module.convs),
        module.lin or module.get_submodule(f"convs.{len(module.convs) - 1}.lin"),
    )
    given: dict[Module, Tensor] = {}

    def note(layer: Module, arguments: tuple[Any, ...]) -> None:
        given[layer] = arguments[0]

    handles = [layer.register_forward_pre_hook(note) for layer in (*layers, last)]
    try:
        logits: Tensor = module(x, graph)
    finally:
        for handle in handles:
            handle.remove()
    return [given[layer] for layer in layers], given[last], logits


def _edge_weights(module: DeepPGNN, x: Features, graph: Graph) -> Tensor:
    """α D^-1/2 M D^-1/2 of the last layer's last step (Eq. 12-13)."""
    inputs, _, _ = _seen(module, x, graph)
    weight: Tensor = module.convs[-1](inputs[-1], graph, return_aggregation_weights=True)[1][1]
    return weight


def _embeddings(module: DeepPGNN, x: Features, graph: Graph) -> Tensor:
    return _seen(module, x, graph)[1]


def _pair_states(module: DeepPGNN, x: Features, graph: Graph) -> PairStates:
    """What the first, the middle and the last layer and the output are given; features are left out."""
    inputs, last, logits = _seen(module, x, graph)
    hidden = inputs[0 if len(module.mlp) else 1 :]
    some = [hidden[k] for k in sorted({0, len(hidden) // 2, len(hidden) - 1})] if hidden else []
    return PairStates([*some, last], logits.softmax(1))


DEEP_PGNN_MODEL = ModelKind(
    "deep-pgnn",
    DeepPGNNParameters,
    _build,
    title="deep pGNN",
    label=_label,
    grid=GRID,
    small=SMALL,
    search=SEARCH,
    architectures=(PLAIN, BESIDE, BLOCKS),
    suits=_suits,
    even_over="p",
    sparse_features=True,
    stacked=Family(
        first_linear("mlp.0"),
        _head,
        equal=(
            "hidden", "K", "layers", "mlp_layers", "residual", "norm", "prenorm", "concat", "output",
            "learn_p", "learn_mu",
        ),
        width=_width,
        weights=_weights,
        serves=_stacks,
    ),
    module=DeepPGNN,
    edge_weights=_edge_weights,
    embeddings=_embeddings,
    pair_states=_pair_states,
    exportable=True,
)  # fmt: skip

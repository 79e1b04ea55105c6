"""The models that a run may train, by name: those of plap, and those that a user adds."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor

from plap.checks import check_choice, near_miss
from plap.errors import InputError
from plap.graph import Graph
from plap.models.kind import TRAINING_FIELDS, ModelKind
from plap.models.parameters import Parameters

_KINDS: dict[str, ModelKind[Any]] = {}
_SEARCHABLE = tuple(name for name in TRAINING_FIELDS if name not in ("model", "parameters", "seed"))


def register_model(kind: ModelKind[Any], *, replace: bool = False) -> None:
    """Let ``RunConfig(model=kind.name)`` name this model, in this process.

    Parameters
    ----------
    kind : ModelKind
    replace : bool
        Whether a model of this name may be there already.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from torch_geometric.nn import GraphSAGE
    >>> from plap.models import ModelKind, Parameters, integer, register_model, share
    >>> from plap.training import RunConfig, build_module
    >>> @dataclass(frozen=True)
    ... class MaxSAGEParameters(Parameters):
    ...     hidden: int = integer(16)
    ...     layers: int = integer(2)
    ...     dropout: float = share(0.5)
    >>> register_model(ModelKind(
    ...     "max-sage",
    ...     MaxSAGEParameters,
    ...     lambda c, i, o: GraphSAGE(i, c.hidden, c.layers, o, dropout=c.dropout, aggr="max"),
    ...     grid={"layers": (2, 3), "lr": (0.01, 0.05)},
    ...     takes="edge_index",
    ... ))
    >>> build_module(RunConfig(model="max-sage", layers=3), 5, 3)
    GraphSAGE(5, 3, num_layers=3)
    """
    check_model(kind)
    if kind.name in _KINDS and not replace:
        raise InputError(
            f"there is a model {kind.name!r} already: say replace=True to put another in its place"
        )
    _KINDS[kind.name] = kind


def check_model(kind: ModelKind[Any]) -> None:
    """Refuse a definition that makes no sense."""
    if not isinstance(kind, ModelKind):
        raise InputError(f"a model is registered as a ModelKind, not as {type(kind).__name__}")
    if not isinstance(kind.name, str) or not kind.name:
        raise InputError(f"a model's name must be a string of one character or more, not {kind.name!r}")
    _check_parameters(kind)
    _check_names(kind)
    if kind.takes not in ("graph", "edge_index"):
        raise InputError(f"takes must be graph or edge_index, not {kind.takes!r}")


def find_model(name: str) -> ModelKind[Any]:
    """The model of this name.

    Examples
    --------
    >>> find_model("sgc").fields
    ('K',)
    """
    return _KINDS[check_choice("model", name, _KINDS)]


def model_names() -> tuple[str, ...]:
    """Names of all models, in the order in which they were registered.

    Examples
    --------
    >>> "pgnn" in model_names()
    True
    """
    return tuple(_KINDS)


def model_of(module: torch.nn.Module) -> ModelKind[Any] | None:
    """The model whose ``module`` class this is an instance of; None where there is none.

    Examples
    --------
    >>> import plap
    >>> model_of(plap.nn.PGNN(3, 4, 2)).name
    'pgnn'
    """
    return next((kind for kind in _KINDS.values() if kind.module and isinstance(module, kind.module)), None)


def models_with(hook: str) -> str:
    """Titles of the models that have something optional, such as ``edge_weights``, in a sentence.

    Examples
    --------
    >>> models_with("leaves_edges_out")
    'pGNN'
    """
    titles = [kind.title_or_name for kind in _KINDS.values() if getattr(kind, hook)]
    return " and ".join([", ".join(titles[:-1]), titles[-1]] if len(titles) > 1 else titles)


def suitable_models(graph: Graph, y: Tensor, train: Tensor) -> list[str]:
    """Names of the models that say of themselves that they are worth a search on this graph.

    Parameters
    ----------
    graph : Graph
    y : Tensor
        [N] labels, of which those of training nodes are read.
    train : Tensor
        [N] the training nodes, as booleans.

    Examples
    --------
    >>> import plap
    >>> for phi in (-1, 1):  # linked nodes differ; linked nodes agree
    ...     data = plap.data.csbm(phi=phi, n=500, f=10, seed=1)
    ...     print(suitable_models(data.graph, data.y, plap.data.split(data).train))
    ['mlp', 'deep-pgnn']
    []
    """
    return [name for name, kind in _KINDS.items() if kind.suits is not None and kind.suits(graph, y, train)]


def _check_parameters(kind: ModelKind[Any]) -> None:
    own = kind.parameters
    if not isinstance(own, type) or not issubclass(own, Parameters) or not dataclasses.is_dataclass(own):
        raise InputError(
            f"model {kind.name!r}: parameters must be a dataclass derived from plap.models.Parameters"
        )
    for entry in dataclasses.fields(own):
        if entry.default is dataclasses.MISSING and entry.default_factory is dataclasses.MISSING:
            raise InputError(f"model {kind.name!r}: the parameter {entry.name!r} has no default")
        if entry.name in TRAINING_FIELDS:
            raise InputError(
                f"model {kind.name!r}: a parameter cannot be called {entry.name!r}, "
                "which is a setting of training"
            )
    own()  # refuses defaults that break the fields' own rules


def _check_names(kind: ModelKind[Any]) -> None:
    grids = [("grid", kind.grid), ("small", kind.small), *(("search", grid) for grid in kind.search_grids)]
    for place, grid in [*grids, *(("architectures", form.grid) for form in kind.architectures)]:
        for name, values in grid.items():
            if name not in (*kind.fields, *_SEARCHABLE):
                raise InputError(
                    f"model {kind.name!r}: {place} names {name!r}, which is neither a parameter of the model "
                    f"nor a setting of training{near_miss(name, kind.fields)}"
                )
            if isinstance(values, str) or not isinstance(values, tuple) or not values:
                raise InputError(f"model {kind.name!r}: {place} must have a tuple of values for {name!r}")
    for form in kind.architectures:
        for name, value in form.start.items():
            tried = {**kind.search_grids[0], **form.grid}.get(name, ())
            if value not in tried:
                raise InputError(
                    f"model {kind.name!r}: an architecture starts at {name} = {value!r}, which is not among "
                    "its values"
                )
    named = (*(kind.dropout_fields or ()), *kind.even_fields)
    if isinstance(kind.dropout_fields, str):
        raise InputError(f"model {kind.name!r}: dropout_fields must be a tuple of names, not one string")
    for name in named:
        if name not in kind.fields:
            raise InputError(f"model {kind.name!r} has no parameter {name!r}{near_miss(name, kind.fields)}")

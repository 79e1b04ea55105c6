"""The models that a run may train, by name: those of plap, and those that a user adds."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal

import torch

from plap.errors import InputError

if TYPE_CHECKING:
    from plap.training.config import RunConfig
    from plap.training.stacked import Family

_KINDS: dict[str, ModelKind] = {}


@dataclass(frozen=True)
class ModelKind:
    """What training has to know about a model.

    A module's ``forward(x, graph)`` or ``forward(x, edge_index)`` gives logits [N, L] of all nodes. Whatever
    it draws at random (weights, dropout) must come from PyTorch's own generator, and what it remembers
    from one step to the next (BatchNorm's statistics) must be a buffer that is changed in place; then a
    run's result depends on its configuration and its split alone.
    """

    name: str
    """What ``RunConfig.model`` says."""
    build: Callable[[RunConfig, int, int], torch.nn.Module]
    """(configuration, number of features, number of classes) → the module with its first weights."""
    uses: tuple[str, ...] = ()
    """Fields of the configuration that ``build`` reads."""
    dropout_fields: tuple[str, ...] | None = None
    """Where all of these are 0, a training step computes what an evaluation does, so the two share one
    forward pass; None: they may always differ."""
    takes: Literal["graph", "edge_index"] = "graph"
    """"graph": a :class:`plap.Graph`. "edge_index": a tensor [2, E], and ``edge_weight=`` [E] where the graph
    is weighted."""
    sparse_features: bool = False
    """Whether sparse features are passed as a torch CSR matrix; otherwise they are made dense, once."""
    stacked: Family | None = None
    """How many runs are evaluated in one go; None: one run after another, each as its module."""

    def may_share(self, config: RunConfig) -> bool:
        """Whether the evaluation's forward pass serves the next training step too."""
        return self.dropout_fields is not None and not any(
            getattr(config, name) > 0 for name in self.dropout_fields
        )


def register_model(kind: ModelKind, *, replace: bool = False) -> None:
    """Let ``RunConfig(model=kind.name)`` name this model, in this process.

    Parameters
    ----------
    kind : ModelKind
    replace : bool
        Whether a model of this name may be there already.

    Examples
    --------
    >>> from torch_geometric.nn import GraphSAGE
    >>> from plap.training import ModelKind, RunConfig, build_module, register_model
    >>> register_model(ModelKind(
    ...     "sage", lambda c, i, o: GraphSAGE(i, c.hidden, 2, o, dropout=c.dropout),
    ...     uses=("hidden", "dropout"), takes="edge_index",
    ... ))
    >>> build_module(RunConfig(model="sage", hidden=8), 5, 3)
    GraphSAGE(5, 3, num_layers=2)
    """
    from plap.training.config import RunConfig  # noqa: PLC0415  (which asks the catalogue for names)

    if not isinstance(kind, ModelKind):
        raise InputError(f"a model is registered as a ModelKind, not as {type(kind).__name__}")
    if not isinstance(kind.name, str) or not kind.name:
        raise InputError(f"a model's name must be a string of one character or more, not {kind.name!r}")
    if isinstance(kind.uses, str) or isinstance(kind.dropout_fields, str):
        raise InputError(
            f"model {kind.name!r}: uses and dropout_fields must be tuples of names, not one string"
        )
    unknown = sorted({*kind.uses, *(kind.dropout_fields or ())} - {field.name for field in fields(RunConfig)})
    if unknown:
        raise InputError(
            f"model {kind.name!r} uses {unknown[0]!r}, which a run's configuration does not have"
        )
    if kind.takes not in ("graph", "edge_index"):
        raise InputError(f"takes must be graph or edge_index, not {kind.takes!r}")
    if kind.name in _KINDS and not replace:
        raise InputError(
            f"there is a model {kind.name!r} already: say replace=True to put another in its place"
        )
    _KINDS[kind.name] = kind


def find_model(name: str) -> ModelKind:
    """The model of this name.

    Examples
    --------
    >>> find_model("sgc").uses
    ('K',)
    """
    if isinstance(name, str) and name in _KINDS:
        return _KINDS[name]
    close = difflib.get_close_matches(str(name), _KINDS, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise InputError(f"model must be one of {', '.join(_KINDS)}, not {name!r}{hint}")


def model_names() -> tuple[str, ...]:
    """Names of all models, in the order in which they were registered."""
    return tuple(_KINDS)

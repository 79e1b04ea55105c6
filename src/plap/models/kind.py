"""What plap knows of a model that can be trained by name: everything about it, in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from plap.data.measures import homophily
from plap.graph import Graph
from plap.models.parameters import Parameters
from plap.models.stacked import Family
from plap.nn.linear import Features

Grid = Mapping[str, tuple[Any, ...]]
"""The values that some fields may take. The last field varies fastest."""

TRAINING_FIELDS = (
    "model", "parameters", "lr", "weight_decay", "seed", "max_epochs", "patience", "stop_by", "stopping",
)  # fmt: skip
"""Fields of :class:`plap.training.RunConfig`, which no model's parameters may be called."""

STRONG_DECAY = 5e-3
"""A weight decay that is ten times the paper's. It validates better on most small graphs, so a search of
``plap fit`` tries it as well, whatever the model: in a comparison all get the same ones."""

P = TypeVar("P", bound=Parameters)


class PairStates(NamedTuple):
    """What a module says of nodes that may or may not be joined by an edge."""

    states: list[Tensor]
    """[N, hidden] each, from before the first step of propagation to after the last."""
    probabilities: Tensor
    """[N, L]."""


class Architecture(NamedTuple):
    """A form of a model that is worth a search of its own.

    Examples
    --------
    >>> from plap.models import Architecture, find_model
    >>> blocks = find_model("deep-pgnn").architectures[-1]
    >>> isinstance(blocks, Architecture), blocks.grid["layers"], blocks.start["layers"]
    (True, (2, 3, 6, 9), 3)
    """

    grid: Grid
    """Values in place of or beside those of the model's ``search``."""
    start: Mapping[str, Any] = {}
    """Where the search of this form begins, however few configurations are drawn: a value for some fields; of
    the others, the first one."""


def with_strong_decay(grid: Grid) -> Grid:
    """A grid of the paper as a fit searches it.

    Examples
    --------
    >>> with_strong_decay({"lr": (0.01,), "weight_decay": (0.0, 5e-4)})
    {'lr': (0.01,), 'weight_decay': (0.0, 0.0005, 0.005)}
    """
    return {**grid, "weight_decay": (*grid["weight_decay"], STRONG_DECAY)}


@dataclass(frozen=True)
class ModelKind(Generic[P]):
    """A model that can be trained by name.

    A module's ``forward(x, graph)`` or ``forward(x, edge_index)`` returns logits [N, L] of all nodes.
    Whatever it draws at random (weights, dropout) must come from PyTorch's own generator, and what it
    remembers from one step to the next (BatchNorm's statistics) must be a buffer that is changed in place;
    then a run's result depends on its configuration and its split alone.
    """

    name: str
    """What ``RunConfig.model`` says."""
    parameters: type[P]
    """A frozen dataclass; every field has a default."""
    build: Callable[[P, int, int], torch.nn.Module]
    """(parameters, number of features, number of classes) → the module with its first weights."""
    title: str = ""
    """What a reader calls the model, whatever its parameters are; by default its name."""
    label: Callable[[P], str] | None = None
    """What a table calls the model with these parameters; by default its title."""
    uses: str = "features and edges"
    """What predictions are made from, in words."""
    grid: Grid = field(default_factory=dict)
    """The values that the paper searches: parameters, ``lr`` and ``weight_decay``."""
    small: Grid = field(default_factory=dict)
    """For a shorter search: values in place of the grid's; where it names none, the grid's own."""
    search: Grid | tuple[Grid, ...] | None = None
    """What :func:`plap.training.tune` and ``plap fit`` search: a grid, or several that are searched together;
    by default the grid. Values of ``even_over`` that only further grids have are tried in addition."""
    on_request: tuple[Grid, ...] = ()
    """Grids that are searched only where a word is asked for that no grid of ``search`` has."""
    architectures: tuple[Architecture, ...] = ()
    """The forms that are searched, instead of the whole of ``search`` at once; see
    :func:`plap.training.architectures`."""
    even_over: str | tuple[str, ...] = ()
    """Parameters whose values a random draw from ``search`` takes equally often."""
    wide: int | None = None
    """Hidden units with which a fit tries the best of a search once more, unless it is told how many."""
    suits: Callable[[Graph, Tensor, Tensor], bool] | None = None
    """(graph, labels, training nodes) → whether a fit that chooses models itself searches this one too."""
    measured: Callable[[Sequence[P], Graph, Features], list[P]] | None = None
    """(candidates of a search, graph, x) → the same with what is measured on the data, such as a unit."""
    unused: Callable[[P], tuple[str, ...]] | None = None
    """(parameters) → fields that have no effect beside the others, which reports leave out."""
    later: tuple[str, ...] = ()
    """Parameters that the model did not have at first: models saved before may lack them."""
    dropout_fields: tuple[str, ...] | None = None
    """Where all of these parameters are 0, a training step computes what an evaluation does, so the two
    share one forward pass; None: they may always differ."""
    takes: Literal["graph", "edge_index"] = "graph"
    """"graph": a :class:`plap.Graph`. "edge_index": a tensor [2, E], and ``edge_weight=`` [E] where the graph
    is weighted."""
    sparse_features: bool = False
    """Whether sparse features are passed as a torch CSR matrix; otherwise they are made dense, once."""
    stacked: Family | None = None
    """How many runs are evaluated in one go; None: one run after another, each as its module."""
    hops: Callable[[P], int] | None = None
    """How far away a node may be and still count: steps of message passing, and one more for a model that
    takes a graph and adds self-loops to it. None: as the module's attribute ``hops`` says, if it has one."""
    module: type[torch.nn.Module] | None = None
    """The class of what ``build`` returns, by which the functions below find the model of a module."""
    edge_weights: Callable[[Any, Features, Graph], Tensor] | None = None
    """(module, x, graph) → how much each stored entry counts, [entries] or [entries, heads]."""
    embeddings: Callable[[Any, Features, Graph], Tensor] | None = None
    """(module, x, graph) → what the last linear map sees of each node, [N, units]."""
    leaves_edges_out: Callable[[Any], bool] | None = None
    """(module) → whether its edge weights are 0 where it does not believe an edge."""
    pair_states: Callable[[Any, Features, Graph], PairStates] | None = None
    """(module, x, graph) → what edge trust is judged by."""
    exportable: bool = False
    """Whether :func:`plap.fitting.export.export_model` can trace the module: all that it asks of a graph goes
    through :class:`plap.nn.PLaplacianConv`."""

    def label_of(self, parameters: P) -> str:
        """What a table calls the model.

        Examples
        --------
        >>> from plap.models import find_model
        >>> pgnn = find_model("pgnn")
        >>> pgnn.label_of(pgnn.parameters(p=1.5))
        'pGNN p = 1.5'
        """
        return self.title_or_name if self.label is None else self.label(parameters)

    @property
    def title_or_name(self) -> str:
        """The title, or the name of a model without one."""
        return self.title or self.name

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the parameters.

        Examples
        --------
        >>> from plap.models import find_model
        >>> find_model("appnp").fields
        ('hidden', 'K', 'alpha', 'dropout')
        """
        return tuple(entry.name for entry in fields(self.parameters))

    @property
    def search_grids(self) -> tuple[Grid, ...]:
        """What a search tries where it is not told otherwise."""
        if self.search is None:
            return (self.grid,)
        return self.search if isinstance(self.search, tuple) else (self.search,)

    @property
    def search_grid(self) -> Grid:
        """Every field that a search may choose, with all of its values, whatever grid they are of."""
        merged: dict[str, tuple[Any, ...]] = {}
        for grid in self.search_grids:
            for name, values in grid.items():
                merged[name] = tuple(dict.fromkeys((*merged.get(name, ()), *values)))
        return merged

    @property
    def even_fields(self) -> tuple[str, ...]:
        """The names of ``even_over``."""
        return (self.even_over,) if isinstance(self.even_over, str) else self.even_over

    def family_of(self, parameters: P) -> Family | None:
        """How runs with these parameters are stacked; None: one run after another."""
        family = self.stacked
        return None if family is None or (family.serves and not family.serves(parameters)) else family

    def may_share(self, parameters: P) -> bool:
        """Whether the evaluation's forward pass serves the next training step too."""
        return self.dropout_fields is not None and not any(
            getattr(parameters, name) > 0 for name in self.dropout_fields
        )


_UNLIKE = 0.4
"""Adjusted homophily below which linked nodes differ; all of the paper's homophilic graphs have more."""
_FEWEST_ENTRIES = 100
"""Between training nodes, for a verdict about them."""


def linked_nodes_differ(graph: Graph, y: Tensor, train: Tensor) -> bool:
    """Whether classes of linked training nodes agree so rarely that averages over neighbours may mislead.

    By adjusted homophily, which is 0 where edges know nothing of classes, and 1 where they join equals only.
    False for other tasks than one class per node, and where too few edges join training nodes.

    Examples
    --------
    >>> import plap
    >>> for phi in (-1, 1):
    ...     data = plap.data.csbm(phi=phi, n=500, f=10, seed=1)
    ...     print(linked_nodes_differ(data.graph, data.y, plap.data.split(data).train))
    True
    False
    """
    if y.ndim != 1 or y.is_floating_point():
        return False
    known = torch.where(train & (y >= 0), y, -1)
    ends = known[graph.edge_index]
    ends = ends[:, (ends >= 0).all(0)]
    if ends.shape[1] < _FEWEST_ENTRIES or ends[0].unique().shape[0] < 2:
        return False
    return homophily(graph, known, measure="adjusted") < _UNLIKE

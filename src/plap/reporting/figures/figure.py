"""What a picture is (a table of numbers, and a way to draw it), and the graphs, splits and runs it shows."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from plap.checks import check_integer
from plap.data import GraphData, Split, split
from plap.data.benchmarks.registry import BENCHMARKS
from plap.data.resolve import open_graph
from plap.errors import InputError
from plap.reporting.picture import plain
from plap.training import RunConfig, RunResult, train_runs

if TYPE_CHECKING:
    import matplotlib.figure
    import polars


@dataclass(frozen=True)
class FigureOptions:
    """What a picture may be asked for; each picture uses the options that concern it."""

    datasets: tuple[str, ...] = ()
    """Benchmarks, or graphs of the user's own; by default those of the paper's picture."""
    seeds: int = 1
    """Number of repetitions, counted from seed 0."""
    epochs: int = 200
    quick: bool = False
    """A first look: at most 30 epochs, no search for μ, fewer nodes in a plane."""
    root: Path | str | None = None
    """Data folder to look in first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", tuple(self.datasets))
        for name in ("seeds", "epochs"):
            check_integer(name, getattr(self, name), 1)

    @property
    def trained_epochs(self) -> int:
        """Maximum number of epochs per run."""
        return min(self.epochs, 30) if self.quick else self.epochs


@dataclass(frozen=True)
class PaperFigure:
    """A picture of the paper, or of what the paper says; its module is imported when it is needed."""

    name: str
    """Of the files, and on the command line."""
    title: str
    module: str
    """File in ``plap.reporting.figures``."""

    def compute(self, options: FigureOptions) -> polars.DataFrame:
        """Everything that is drawn, as one table; the slow half."""
        return cast("polars.DataFrame", self._load().compute(options))

    def draw(self, data: polars.DataFrame) -> matplotlib.figure.Figure:
        """The picture of such a table, also of a saved one."""
        return cast("matplotlib.figure.Figure", self._load().draw(data))

    def _load(self) -> Any:
        return importlib.import_module(f"plap.reporting.figures.{self.module}")


HOMOPHILIC = ("cora", "citeseer", "pubmed", "computers", "photo", "cs", "physics")
"""Split 2.5/2.5/95 in the paper."""
HETEROPHILIC = ("chameleon", "squirrel", "actor", "wisconsin", "texas", "cornell")
"""Split 60/20/20, like every other graph here."""
ALL = (*HOMOPHILIC, *HETEROPHILIC)
P_VALUES = (1.0, 1.5, 2.0, 2.5)
_MU = (0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True, eq=False)
class Case:
    """A graph with labels, and the split for training."""

    name: str
    data: GraphData
    split: Split


def open_case(name: str, options: FigureOptions, seed: int = 0) -> Case:
    """The graph of this name with a stratified split in the paper's proportions."""
    data = open_graph(name, root=options.root)
    if not data.task.one_class_per_node:
        raise InputError(f"{name} does not have one class per node, which the figures need")
    return Case(name, data, split(data, preset="sparse" if name in HOMOPHILIC else "dense", seed=seed))


def shown_name(dataset: str) -> str:
    """What a picture calls a benchmark or a user's graph.

    Examples
    --------
    >>> shown_name("citeseer"), shown_name("my/graph")
    ('CiteSeer', 'my/graph')
    """
    return BENCHMARKS[dataset].label if dataset in BENCHMARKS else plain(dataset)


def best_runs(case: Case, groups: Sequence[Sequence[RunConfig]]) -> list[RunResult]:
    """Train all configurations and return the run with the best validation score of each group."""
    data = case.data
    configs = [config for group in groups for config in group]
    runs = iter(train_runs(data.graph, data.x, data.y, configs, case.split, num_classes=data.num_classes))
    return [max([next(runs) for _ in group], key=lambda run: run.val_score) for group in groups]


def pgnn_configs(p: float, options: FigureOptions, seed: int = 0) -> list[RunConfig]:
    """pGNN with four values of μ from the paper's grid, or only the default in a quick look."""
    epochs = options.trained_epochs
    return [
        RunConfig(p=p, mu=mu, seed=seed, max_epochs=epochs, patience=min(100, epochs))
        for mu in ((0.1,) if options.quick else _MU)
    ]


def gat_config(options: FigureOptions, seed: int = 0) -> RunConfig:
    """The paper's GAT: 8 heads with 8 units each."""
    epochs = options.trained_epochs
    return RunConfig(
        model="gat", hidden=8, heads=8, lr=0.005, dropout=0.6, seed=seed, max_epochs=epochs,
        patience=min(100, epochs),
    )  # fmt: skip

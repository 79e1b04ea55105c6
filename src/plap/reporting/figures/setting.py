"""Which graphs the pictures show, how they are split, and which of several runs is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plap.data import GraphData, Split, split
from plap.data.resolve import open_graph
from plap.errors import InputError
from plap.reporting.figures.figure import FigureOptions
from plap.training import RunConfig, RunResult, train_runs

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
        raise InputError(f"{name} has several labels per node; the pictures need one class per node")
    return Case(name, data, split(data, preset="sparse" if name in HOMOPHILIC else "dense", seed=seed))


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

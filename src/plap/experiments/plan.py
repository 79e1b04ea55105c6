"""From a table to its runs: which configurations are searched, which is chosen, which seeds follow."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from plap.errors import InputError
from plap.experiments.model_files import ModelFile, spec_of_file
from plap.experiments.models import GridName, ModelSpec, find_model_spec
from plap.experiments.own_files import bare_name, files_digest
from plap.experiments.runs import Record, Run, Setting
from plap.experiments.tables import Table
from plap.training import RunConfig

_BEFORE_A_NAME = re.compile(r",(?=\s*(?:dataset|model)\s*=)")
"""The commas between conditions, not those inside ``csbm:phi=0.5,n=100``."""


@dataclass(frozen=True)
class Effort:
    """How much is spent on a cell; the paper's own by default."""

    runs: int
    """Seeds of the chosen configuration."""
    grid: GridName = "full"
    search_epochs: int = 1000
    """At most so many epochs a run of the search."""
    max_epochs: int = 1000
    patience: int = 200
    """Epochs without improvement that end a run."""
    quick: bool = False

    def __post_init__(self) -> None:
        if self.grid not in ("full", "small"):
            raise InputError(f"grid must be full or small, not {self.grid!r}")
        for name in ("runs", "search_epochs", "max_epochs", "patience"):
            if getattr(self, name) < 1:
                raise InputError(f"{name.replace('_', '-')} must be 1 or more, not {getattr(self, name)}")

    @classmethod
    def of(
        cls,
        table: Table,
        *,
        runs: int | None = None,
        grid: GridName | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        quick: bool = False,
    ) -> Effort:
        """The table's own effort, or what the user asks for.

        A small grid is searched with 200 epochs a run at most. ``quick`` is a small grid searched with 100,
        three runs, and at most 300 epochs with a patience of 100.
        """
        grid = grid or ("small" if quick else "full")
        most, wait = (300, 100) if quick else (1000, 200)
        return cls(
            runs=runs or (min(3, table.runs) if quick else table.runs),
            grid=grid,
            search_epochs=100 if quick else 200 if grid == "small" else 1000,
            max_epochs=max_epochs or most,
            patience=patience or wait,
            quick=quick,
        )

    def sentence(self, *, timed: bool) -> str:
        """For the reader of a result."""
        whole = "Quick look, not the paper's effort: " if self.quick else ""
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        if timed:
            return (
                f"{whole}{runs} per cell, one after another on all cores, each with at most "
                f"{self.max_epochs} epochs and a patience of {self.patience}; there is no search: every "
                "model uses the first configuration of its grid with dropout, and an epoch is a training "
                "step and an evaluation."
            )
        grid = "paper's grid" if self.grid == "full" else "small part of the grid"
        return (
            f"{whole}{runs} per cell; every configuration of the {grid} was trained once for at most "
            f"{min(self.search_epochs, self.max_epochs)} epochs, then the one with the best validation score "
            f"for all seeds with at most {self.max_epochs} epochs and a patience of {self.patience}."
        )


@dataclass(frozen=True)
class CellPlan:
    """One model on one dataset: the search, then the seeds."""

    model: str
    dataset: str
    """As the table names it."""
    setting: Setting
    spec: ModelSpec
    effort: Effort
    model_file: ModelFile | None = None
    hidden: int | None = None

    def search(self) -> list[Run]:
        """A run for each configuration of the grid; none where there is nothing to choose."""
        configs = self._configs()
        if len(configs) == 1 or self.setting.alone:
            return []
        limit = min(self.effort.search_epochs, self._max_epochs)
        return [self._run(replace(config, max_epochs=limit, seed=0)) for config in configs]

    def final(self, found: Sequence[Record]) -> list[Run]:
        """A run for each seed of the configuration that did best in the search, by validation alone.

        Parameters
        ----------
        found : records of :meth:`search`, all of them
        """
        chosen = self.chosen(found)
        return [
            self._run(replace(chosen, max_epochs=self._max_epochs, seed=seed))
            for seed in range(self.effort.runs)
        ]

    def chosen(self, found: Sequence[Record]) -> RunConfig:
        """The best validation score, the lower loss where equal, the first of the grid where still equal.

        Where nothing is searched, the first of the grid; of runs for their time the first with dropout,
        without which training and evaluation would share a forward pass.
        """
        if not found:
            configs = self._configs()
            dropping = [config for config in configs if config.dropout > 0]
            return dropping[0] if self.setting.alone and dropping else configs[0]
        return max(found, key=lambda record: (record.val_score, -record.val_loss)).run.config

    @property
    def _max_epochs(self) -> int:
        return min(self.spec.base.max_epochs, self.effort.max_epochs)

    def _configs(self) -> list[RunConfig]:
        configs = self.spec.configs(self.effort.grid)
        if self.hidden is not None and self.spec.base.model != "gat":
            configs = [replace(config, hidden=self.hidden) for config in configs]
        return [replace(config, patience=self.effort.patience) for config in configs]

    def _run(self, config: RunConfig) -> Run:
        return Run(self.setting, self.model, config, self.model_file.digest if self.model_file else "")


@dataclass(frozen=True)
class Selection:
    """Which cells the user wants: alternatives for each of dataset and model; all where none is named.

    Examples
    --------
    >>> Selection.parse(["dataset=texas,model=gcn", "model=mlp"]).takes("mlp", "texas")
    True
    >>> Selection.parse(["dataset=computers"]).takes("gcn", "computers:r=0.5")
    True
    """

    wanted: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def parse(cls, options: Sequence[str]) -> Selection:
        """``dataset=NAME,model=NAME``, any number of times."""
        wanted: dict[str, tuple[str, ...]] = {}
        for entry in (part for option in options for part in _BEFORE_A_NAME.split(option)):
            key, _, value = entry.partition("=")
            if key.strip() not in ("dataset", "model") or not value.strip():
                raise InputError(f"--only takes dataset=NAME or model=NAME, not {entry!r}")
            wanted[key.strip()] = (*wanted.get(key.strip(), ()), value.strip().casefold())
        return cls(wanted)

    def takes(self, model: str, dataset: str) -> bool:
        """Whether a cell is wanted; capitals do not matter."""
        datasets, models = self.wanted.get("dataset"), self.wanted.get("model")
        return (datasets is None or bool(_names_of(dataset) & set(datasets))) and (
            models is None or model.casefold() in models
        )

    def check(self, table: Table) -> None:
        """Refuse names that the table does not have."""
        for dataset in self.wanted.get("dataset", ()):
            if not any(dataset in _names_of(own) for own in table.datasets):
                raise InputError(
                    f"--only: table {table.name} has no dataset {dataset!r}: {', '.join(table.datasets)}"
                )
        for model in self.wanted.get("model", ()):
            if model not in (own.casefold() for own in table.models):
                raise InputError(
                    f"--only: table {table.name} has no model {model!r}: {', '.join(table.models)}"
                )


def _names_of(dataset: str) -> set[str]:
    """A dataset's own name, what stands before its colon, and both without the folders of a path.

    Examples
    --------
    >>> sorted(_names_of("own/Ours:r=0.5"))
    ['ours', 'ours:r=0.5', 'own/ours', 'own/ours:r=0.5']
    """
    names = (dataset.casefold(), bare_name(dataset.casefold()))
    return {*names, *(name.partition(":")[0] for name in names)}


def make_cells(table: Table, protocol: str, effort: Effort, selection: Selection) -> list[CellPlan]:
    """The wanted cells of a table, dataset by dataset."""
    selection.check(table)
    model_files = {model: ModelFile.read(path) for model, path in table.model_files.items()}
    prefix = f"{table.variant}/" if table.variant else ""
    found = {
        model: spec_of_file(model_files[model]) if model in model_files else find_model_spec(prefix + model)
        for model in table.models
        if model not in table.not_run
    }
    specs = {model: spec.with_small(table.small) for model, spec in found.items()}
    alone = table.measure == "time"
    cells = []
    for dataset in table.datasets:
        setting = Setting(protocol, dataset, table.split, alone, files_digest(dataset))
        cells += [
            CellPlan(model, dataset, setting, specs[model], effort, model_files.get(model), table.hidden)
            for model in specs
            if selection.takes(model, dataset)
        ]
    return cells

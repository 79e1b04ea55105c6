"""From a table to its runs: which configurations are searched, which is chosen, and the seeds of the rest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any, Literal

from plap.checks import check_choice, check_integer
from plap.data.dataset import DatasetName
from plap.errors import InputError
from plap.experiments.model_files import UserModelFile
from plap.experiments.protocol import find_protocol
from plap.experiments.rows import Candidates, GridName, Row, find_candidates
from plap.experiments.runs import CellKey, Record, Run, Setting, files_digest
from plap.experiments.tables import TableDefinition, load_table
from plap.models import find_model
from plap.training import RunConfig
from plap.training.config import Stopping

Stage = Literal["search", "finalist", "final"]
Records = Callable[[Sequence[Run]], Sequence[Record]]
"""The results of runs that are there, in their order."""
_BEFORE_A_NAME = re.compile(r",(?=\s*(?:dataset|model)\s*=)")
"""The commas between conditions, not those inside ``csbm:phi=0.5,n=100``."""


@dataclass(frozen=True)
class Effort:
    """How much is computed per cell; as in the paper by default."""

    runs: int
    """Number of seeds that the chosen configuration is trained with."""
    grid: GridName = "full"
    search_epochs: int = 1000
    """Maximum number of epochs per run of the search."""
    max_epochs: int = 1000
    """Maximum number of epochs per run."""
    patience: int = 200
    """Number of epochs without improvement after which a run ends."""
    quick: bool = False
    finalists: int = 1
    """Number of configurations, the best of the search, that are trained with several seeds before one is
    chosen; with 1, the best of the search is."""
    finalist_seeds: int = 3
    """Number of seeds that each of several finalists is trained with."""
    stopping: Stopping = "best"
    """When the runs after the search end and which epoch counts, see
    :attr:`plap.training.RunConfig.stopping`; the search itself always stops early."""

    def __post_init__(self) -> None:
        check_choice("grid", self.grid, GridName)
        check_choice("stopping", self.stopping, Stopping)
        for name in ("runs", "search_epochs", "max_epochs", "patience", "finalists", "finalist_seeds"):
            check_integer(name, getattr(self, name), 1)

    @classmethod
    def of(
        cls,
        table: TableDefinition,
        *,
        runs: int | None = None,
        grid: str | None = None,
        max_epochs: int | None = None,
        patience: int | None = None,
        search_epochs: int | None = None,
        finalists: int | None = None,
        finalist_seeds: int | None = None,
        stopping: str | None = None,
        quick: bool = False,
        protocol: str | None = None,
    ) -> Effort:
        """The table's own effort, except for what is given.

        By the paper's protocol the runs after the search follow the rule of the published code, without early
        stopping, unless a ``patience`` is given or time is measured.

        In the search of a small grid a run has at most 200 epochs unless ``search_epochs`` is given.
        ``quick`` stands for three runs, a small grid that is searched with 100 epochs, and at most 300 epochs
        with a patience of 100.
        """
        name = grid if grid is not None else "small" if quick else "full"
        usual = min(3, table.runs) if quick else table.runs
        most, wait = (300, 100) if quick else (1000, 200)
        usual_search = 100 if quick else 200 if name == "small" else 1000
        by_paper = (table.protocol if protocol is None else protocol) == "paper"
        early = patience is not None or quick or table.measure == "time" or not by_paper
        rule = stopping if stopping is not None else "best" if early else "published"
        return cls(
            runs=usual if runs is None else runs,
            grid=check_choice("grid", name, GridName),
            search_epochs=usual_search if search_epochs is None else search_epochs,
            max_epochs=most if max_epochs is None else max_epochs,
            patience=wait if patience is None else patience,
            quick=quick,
            finalists=1 if finalists is None else finalists,
            finalist_seeds=3 if finalist_seeds is None else finalist_seeds,
            stopping=check_choice("stopping", rule, Stopping),
        )

    def sentence(self, *, timed: bool) -> str:
        """The effort in a sentence for the reader of a result."""
        whole = "Quick look, not the paper's effort: " if self.quick else ""
        runs = "1 run" if self.runs == 1 else f"{self.runs} runs"
        if timed:
            return (
                f"{whole}{runs} per cell, one after another on all cores, each with at most "
                f"{self.max_epochs} epochs and a patience of {self.patience}; there is no search: every "
                "model uses the first configuration of its grid with dropout, and an epoch is a training "
                "step and an evaluation."
            )
        chosen = "then the one with the best validation score"
        if self.finalists > 1:
            seeds = "1 seed" if self.finalist_seeds == 1 else f"{self.finalist_seeds} seeds"
            chosen = (
                f"then the {self.finalists} with the best validation scores with {seeds} each, and the one "
                "with the best mean of these"
            )
        grid = "paper's grid" if self.grid == "full" else "small part of the grid"
        last = f"at most {self.max_epochs} epochs and a patience of {self.patience}"
        if self.stopping == "progress":
            last += ", which a falling validation loss renews"
        elif self.stopping == "published":
            last = f"{self.max_epochs} epochs, of which the first with the best validation score counts"
        return (
            f"{whole}{runs} per cell; every configuration of the {grid} was trained once for at most "
            f"{min(self.search_epochs, self.max_epochs)} epochs, {chosen} "
            f"for all seeds with {last}."
        )


@dataclass(frozen=True)
class CellPlan:
    """One model on one dataset: the search, then the seeds."""

    model: str
    dataset: str
    """As the table names it."""
    setting: Setting
    candidates: Candidates
    effort: Effort
    model_file: UserModelFile | None = None

    @property
    def key(self) -> CellKey:
        """Dataset and row."""
        return self.dataset, self.model

    def search(self) -> list[Run]:
        """One run per configuration of the grid; none if there is nothing to choose."""
        configs = self._configs()
        if len(configs) == 1 or self.setting.alone:
            return []
        limit = min(self.effort.search_epochs, self._max_epochs)
        return [self._run(config.with_values(max_epochs=limit, seed=0)) for config in configs]

    def stages(self, records: Records) -> dict[Stage, list[Run]]:
        """The stages of the cell that are known: each when all runs of the one before have results.

        Parameters
        ----------
        records : function of runs
            The results that are there.
        """
        search = self.search()
        if not search:
            return {"final": self.final([])}
        found = records(search)
        if len(found) < len(search):
            return {"search": search}
        if self.effort.finalists == 1:
            return {"search": search, "final": self.final(found)}
        again = self.finalists(found)
        seen = records(again)
        if len(seen) < len(again):
            return {"search": search, "finalist": again}
        return {"search": search, "finalist": again, "final": self.final(found, seen)}

    def finalists(self, found: Sequence[Record]) -> list[Run]:
        """The best of the search, each with several seeds and as many epochs as a final run."""
        best = sorted(found, key=_merit, reverse=True)[: self.effort.finalists]
        return [run for record in best for run in self._seeds(record.run.config, self.effort.finalist_seeds)]

    def final(self, found: Sequence[Record], finalists: Sequence[Record] = ()) -> list[Run]:
        """One run per seed, with the configuration that was best in the search by validation alone.

        Parameters
        ----------
        found : all records of :meth:`search`
        finalists : all records of :meth:`finalists`, if there are several
        """
        return self._seeds(self.chosen(found, finalists), self.effort.runs)

    def _seeds(self, config: RunConfig, count: int) -> list[Run]:
        longer = config.with_values(max_epochs=self._max_epochs, stopping=self.effort.stopping)
        return [self._run(longer.with_values(seed=seed)) for seed in range(count)]

    def chosen(self, found: Sequence[Record], finalists: Sequence[Record] = ()) -> RunConfig:
        """The best validation score; of equal ones the lowest loss, then the first of the grid.

        Of several finalists it is the mean of their scores that counts.

        Where nothing is searched, the first of the grid. Where time is measured, the first with dropout,
        without which training and evaluation would share a forward pass.
        """
        if not found:
            configs = self._configs()
            dropping = [c for c in configs if getattr(c.parameters, "dropout", 0) > 0]
            return dropping[0] if self.setting.alone and dropping else configs[0]
        if not finalists:
            return max(found, key=_merit).run.config
        groups: dict[RunConfig, list[tuple[float, float]]] = {}
        for record in finalists:
            groups.setdefault(record.run.config.with_values(seed=0), []).append(_merit(record))
        return max(groups, key=lambda config: tuple(map(fmean, zip(*groups[config], strict=True))))

    @property
    def _max_epochs(self) -> int:
        return min(self.candidates.base.max_epochs, self.effort.max_epochs)

    def _configs(self) -> list[RunConfig]:
        configs = self.candidates.configs(self.effort.grid)
        return [config.with_values(patience=self.effort.patience) for config in configs]

    def _run(self, config: RunConfig) -> Run:
        return Run(self.setting, self.model, config, self.model_file.digest if self.model_file else "")


def _merit(record: Record) -> tuple[float, float]:
    """Validation score, then the negative loss: higher is better."""
    return record.val_score, -record.val_loss


@dataclass(frozen=True)
class Selection:
    """Which cells are wanted: any of the named datasets and models; all where none is named.

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
        """Parse options such as ``dataset=NAME,model=NAME``."""
        wanted: dict[str, tuple[str, ...]] = {}
        for entry in (part for option in options for part in _BEFORE_A_NAME.split(option)):
            key, _, value = entry.partition("=")
            if key.strip() not in ("dataset", "model") or not value.strip():
                raise InputError(f"only takes dataset=NAME or model=NAME, not {entry!r}")
            wanted[key.strip()] = (*wanted.get(key.strip(), ()), value.strip().casefold())
        return cls(wanted)

    def takes(self, model: str, dataset: str) -> bool:
        """Whether a cell is wanted; names are compared regardless of case."""
        datasets, models = self.wanted.get("dataset"), self.wanted.get("model")
        return (datasets is None or bool(_names_of(dataset) & set(datasets))) and (
            models is None or model.casefold() in models
        )

    def check(self, table: TableDefinition) -> None:
        """Refuse names that the table does not have."""
        for dataset in self.wanted.get("dataset", ()):
            if not any(dataset in _names_of(own) for own in table.datasets):
                raise InputError(
                    f"only: table {table.name} has no dataset {dataset!r}: {', '.join(table.datasets)}"
                )
        for model in self.wanted.get("model", ()):
            if model not in (own.casefold() for own in table.models):
                raise InputError(
                    f"only: table {table.name} has no model {model!r}: {', '.join(table.models)}"
                )


def _names_of(dataset: str) -> set[str]:
    """A dataset's name, the part before its colon, and both without the folders of a path.

    Examples
    --------
    >>> sorted(_names_of("own/Ours:r=0.5"))
    ['ours', 'ours:r=0.5', 'own/ours', 'own/ours:r=0.5']
    """
    name = DatasetName.parse(dataset.casefold())
    return {dataset.casefold(), str(name.bare), name.base, name.bare.base}


def make_cells(table: TableDefinition, protocol: str, effort: Effort, selection: Selection) -> list[CellPlan]:
    """The wanted cells of a table, dataset by dataset."""
    selection.check(table)
    run = [row for row in table.rows if row.is_run]
    model_files = {row.key: None if row.file is None else UserModelFile.read(row.file) for row in run}
    candidates = {row.key: _candidates(table, row, model_files[row.key]) for row in run}
    cells = []
    for dataset in table.datasets:
        digest = files_digest(dataset)
        for row in run:
            if selection.takes(row.key, dataset):
                setting = Setting(
                    protocol, dataset, table.split, table.measure == "time", digest, row.correct_and_smooth
                )
                file = model_files[row.key]
                cells.append(CellPlan(row.key, dataset, setting, candidates[row.key], effort, file))
    return cells


@dataclass(frozen=True)
class TablePlan:
    """What is to be run of a table."""

    table: TableDefinition
    protocol: str
    cells: tuple[CellPlan, ...]
    """Dataset by dataset; at least one."""

    @classmethod
    def of(
        cls,
        table: str | os.PathLike[str],
        *,
        only: str | Sequence[str] = (),
        protocol: str | None = None,
        **effort: Any,
    ) -> TablePlan:
        """The wanted cells of a table by its name or file; ``effort`` as :meth:`Effort.of` takes it."""
        found = load_table(os.fspath(table))
        rules = find_protocol(found.protocol if protocol is None else protocol).name
        selection = Selection.parse([only] if isinstance(only, str) else only)
        cells = make_cells(found, rules, Effort.of(found, protocol=rules, **effort), selection)
        if not cells:
            raise InputError("only leaves no cell of the table")
        return cls(found, rules, tuple(cells))


def _candidates(table: TableDefinition, row: Row, file: UserModelFile | None) -> Candidates:
    """The configurations that the search of a row chooses from in this table."""
    found = find_candidates(row, file).with_small(table.small)
    has_hidden = "hidden" in find_model(found.base.model).fields
    if table.hidden is None or not has_hidden or "hidden" in row.fixed:
        return found
    return replace(found, base=found.base.with_values(hidden=table.hidden))

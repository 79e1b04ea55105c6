"""The result of a table: the scores of every cell, their mean and interval, and the published values."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from scipy.stats import t

from plap.experiments.differences import Difference, find_cause
from plap.experiments.published import PublishedCell
from plap.reporting.table_content import Agreement, Mark

_TWO_SIGMA = 2.0
_PAPER = "paper"
"""The protocol under which a difference is one of the results and not of the rules."""


@dataclass(frozen=True)
class Cell:
    """One model on one dataset."""

    model: str
    dataset: str
    values: tuple[float, ...] = ()
    """One per run in the table's unit, by seed: test score in %, or ms per epoch."""
    totals: tuple[float, ...] = ()
    """Seconds of each run, in a table of running times."""
    config: Mapping[str, Any] | None = None
    """What the search chose, by field."""
    tried: int = 0
    """Configurations that were searched."""
    grid: int = 0
    """Configurations that the paper's grid has."""
    seconds: float = 0.0
    """Training time of all runs, the search's among them."""
    not_finite: int = 0
    """Runs that ended in NaN or infinity."""
    published: PublishedCell | None = None
    problem: str | None = None
    """Why there are no values: missing files, or an error; one sentence."""
    out_of_memory: bool = False
    """Whether the problem is that memory ran out."""

    @cached_property
    def mean(self) -> float | None:
        """Over the runs; None before the first."""
        return statistics.fmean(self.values) if self.values else None

    @cached_property
    def deviation(self) -> float | None:
        """Sample standard deviation of the runs (n - 1 degrees of freedom); None for fewer than two."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    @cached_property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the mean by Student's t; None for fewer than two runs."""
        if self.mean is None or self.deviation is None:
            return None
        count = len(self.values)
        half = float(t.ppf(0.975, count - 1)) * self.deviation / math.sqrt(count)
        return self.mean - half, self.mean + half

    @property
    def difference(self) -> float | None:
        """Ours minus the published mean."""
        if self.mean is None or self.published is None or self.published.mean is None:
            return None
        return self.mean - float(self.published.mean)


@dataclass(frozen=True)
class TableResult:
    """All cells of a table, and the rules that they were obtained by."""

    name: str
    title: str
    unit: str
    measure: str
    """"score" (higher is better) or "time" (ms per epoch, lower is better)."""
    models: tuple[str, ...]
    datasets: tuple[str, ...]
    families: tuple[tuple[str, ...], ...]
    cells: tuple[Cell, ...]
    """Row by row."""
    protocol: str
    rules: tuple[str, ...]
    """What a reader must know: protocol, split, grid, runs and versions, one sentence for each."""
    full_score: float | None = None
    """A perfect score in the table's unit; None in a table of running times."""
    notes: tuple[str, ...] = ()
    """Notes on the published table."""
    curve: str | None = None
    """The parameter in the datasets' names that pictures have along their axis."""
    highlighted: frozenset[str] = frozenset()
    """Rows of the models that the table is about: those of the p-Laplacian."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """What a reader calls a row, by its key; the key itself where there is none."""

    def label(self, model: str) -> str:
        """What a reader calls a row."""
        return self.labels.get(model, model)

    def cell(self, model: str, dataset: str) -> Cell:
        """The cell of a row and a column."""
        return self.cells[self.models.index(model) * len(self.datasets) + self.datasets.index(dataset)]

    def agreement(self, cell: Cell) -> Agreement:
        """Whether the two means are within two standard deviations of a run, of both together.

        Times of two machines are not compared.
        """
        if self.measure == "time" or cell.difference is None or cell.published is None:
            return "unknown"
        allowed = _TWO_SIGMA * math.hypot(float(cell.published.plus_minus or 0), cell.deviation or 0)
        if abs(cell.difference) <= allowed:
            return "agrees"
        return "above" if cell.difference > 0 else "below"

    def difference(self, cell: Cell) -> Difference | None:
        """Why a cell does not agree; None if it does, or if the rules are not the paper's."""
        if self.protocol != _PAPER:
            return None
        return find_cause(self.name, cell.model, cell.dataset, self.agreement(cell))

    def mark(self, cell: Cell) -> Mark:
        """``best`` of its family and column, or ``near``: inside the 95 % interval of the best's mean."""
        rivals = [
            other
            for other in self.cells
            if other.dataset == cell.dataset and other.mean is not None and self._related(other, cell)
        ]
        if cell.mean is None or not rivals:
            return ""
        best = self._best(rivals)
        if cell is best:
            return "best"
        low, high = best.interval or (math.inf, -math.inf)
        return "near" if low <= cell.mean <= high else ""

    def _best(self, rivals: Sequence[Cell]) -> Cell:
        sign = -1 if self.measure == "time" else 1
        return max(rivals, key=lambda other: sign * (other.mean or 0.0))

    def _related(self, one: Cell, other: Cell) -> bool:
        return any(one.model in family and other.model in family for family in self.families)

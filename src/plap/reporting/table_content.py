"""What the report of a table says, as plain values: models × datasets beside the published values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

Mark = Literal["best", "near", ""]
"""Best of its family and column, or within the confidence interval of the best."""
Agreement = Literal["agrees", "above", "below", "unknown"]
"""With the published value."""


@dataclass(frozen=True)
class ModelRow:
    """A row of the table."""

    key: str
    label: str
    highlighted: bool = False
    """Drawn in blue: the models that the table is about."""


@dataclass(frozen=True)
class DatasetColumn:
    """A column of the table."""

    key: str
    name: str
    detail: str = ""
    """Shown below the name: a parameter, or what sets the dataset apart."""

    @property
    def label(self) -> str:
        """Name and detail on one line."""
        return " ".join(filter(None, [self.name, self.detail]))


@dataclass(frozen=True)
class PublishedValue:
    """A cell as it was published."""

    mean: Decimal | None = None
    """With the digits that were printed; None where nothing was."""
    plus_minus: Decimal | None = None
    mark: Mark = ""
    out_of_memory: bool = False
    run_seconds: Decimal | None = None


@dataclass(frozen=True)
class ResultCell:
    """One model on one dataset."""

    model: str
    dataset: str
    runs: int = 0
    mean: float | None = None
    deviation: float | None = None
    interval: tuple[float, float] | None = None
    """95 % confidence interval of the mean."""
    mark: Mark = ""
    published: PublishedValue | None = None
    difference: float | None = None
    """Our mean minus the published one."""
    agreement: Agreement = "unknown"
    cause: str = ""
    """Why the two differ; empty where they agree."""
    cause_note: str = ""
    """What is known about that, in a sentence."""
    ratio: float | None = None
    """In a table of times: a multiple of the MLP's."""
    published_ratio: float | None = None
    run_seconds: float | None = None
    """In a table of times: mean time of a whole run."""
    config: Mapping[str, Any] | None = None
    """The hyperparameters that were selected."""
    tried: int = 0
    grid: int = 0
    """Configurations that were tried, and those of the whole grid."""
    seconds: float = 0.0
    """Training time of all runs, including the search."""
    not_finite: int = 0
    """Runs that ended in NaN or infinity, including the search."""
    problem: str | None = None
    """Why there is no value."""
    out_of_memory: bool = False


@dataclass(frozen=True)
class Point:
    """A mean at one value of the parameter, with the ends of its 95 % confidence interval."""

    at: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """One model along the parameter."""

    name: str
    ours: tuple[Point, ...]
    published: tuple[Point, ...]
    """Without intervals."""


@dataclass(frozen=True)
class Panel:
    """One dataset along its parameter."""

    name: str
    series: tuple[Series, ...]
    """One per model of the table, in its order."""

    @property
    def places(self) -> tuple[float, ...]:
        """Values of the parameter, in ascending order."""
        points = (point.at for line in self.series for point in (*line.ours, *line.published))
        return tuple(sorted(set(points)))


@dataclass(frozen=True)
class TableReport:
    """The whole report; a part that is empty is left out."""

    name: str
    title: str
    unit: str
    timed: bool
    """Whether the values are times (lower is better), not scores."""
    protocol: str
    models: tuple[ModelRow, ...]
    datasets: tuple[DatasetColumn, ...]
    families: tuple[tuple[str, ...], ...]
    """Keys of models that are compared with each other."""
    cells: tuple[ResultCell, ...]
    """Row by row."""
    rules: tuple[str, ...] = ()
    """How the experiments were run; one sentence each."""
    notes: tuple[str, ...] = ()
    """About the published table."""
    panels: tuple[Panel, ...] = ()
    """What the curves show; empty for a table without a parameter."""
    parameter: str = ""
    """Name of the parameter along the curves, such as φ."""
    parameter_meaning: str = ""
    """Its explanation, beginning with its name."""

    def row(self, model: str) -> tuple[ResultCell, ...]:
        """The cells of a model."""
        first = [row.key for row in self.models].index(model) * len(self.datasets)
        return self.cells[first : first + len(self.datasets)]

    def cell(self, model: str, dataset: str) -> ResultCell:
        """The cell of a model and a dataset."""
        return self.row(model)[[column.key for column in self.datasets].index(dataset)]

    def model_label(self, model: str) -> str:
        """The name of a model, by its key."""
        return next(row.label for row in self.models if row.key == model)

    def dataset_label(self, dataset: str) -> str:
        """The name of a dataset on one line, by its key."""
        return next(column.label for column in self.datasets if column.key == dataset)

    @property
    def has_published(self) -> bool:
        """Whether there is anything to compare with."""
        return any(cell.published is not None for cell in self.cells)

    @property
    def is_compared(self) -> bool:
        """Whether cells are said to agree with the published ones or not; times of two machines are not."""
        return not self.timed and self.has_published

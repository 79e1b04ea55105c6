"""What a picture is: a table of numbers, and a way to draw it."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from plap.checks import check_integer

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

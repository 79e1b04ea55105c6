"""What a picture is: numbers, and a way to draw them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from plap.checks import check_integer

if TYPE_CHECKING:
    import matplotlib.figure
    import polars


@dataclass(frozen=True)
class FigureOptions:
    """What a picture may be asked for; each takes what concerns it."""

    datasets: tuple[str, ...] = ()
    """Benchmarks, or graphs of the user's own; none: those of the paper's picture."""
    seeds: int = 1
    """Repetitions, counted from seed 0."""
    epochs: int = 200
    quick: bool = False
    """A first look: at most 30 epochs, no search for μ, few nodes in a plane."""
    root: Path | str | None = None
    """Data folder to look in first."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "datasets", tuple(self.datasets))
        for name in ("seeds", "epochs"):
            check_integer(name, getattr(self, name), 1)

    @property
    def trained_epochs(self) -> int:
        """Epochs per run, at most."""
        return min(self.epochs, 30) if self.quick else self.epochs


@dataclass(frozen=True)
class Figure:
    """A picture of the paper, or of what the paper says."""

    name: str
    """Of the files, and on the command line."""
    title: str
    compute: Callable[[FigureOptions], polars.DataFrame]
    """Everything that is drawn, as one table; the slow half."""
    draw: Callable[[polars.DataFrame], matplotlib.figure.Figure]
    """From the table alone, so that a saved one can be drawn again."""

"""Colours that are told apart with any kind of colour vision, and what all pictures share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

# Okabe and Ito's.
BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
GREEN, PURPLE, BLACK, GREY = "#009E73", "#CC79A7", "#000000", "#59626b"
CLASSES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK, "#b5a900")
"""For points; classes beyond these begin again with another marker."""
MARKERS = ("o", "^", "s", "P")


def grid(rows: int, columns: int, *, width: float = 2.6, height: float = 2.1) -> tuple[Figure, NDArray]:  # type: ignore[type-arg]
    """A white figure and its panels, [rows, columns]."""
    size = (0.8 + width * columns, 0.7 + height * rows)
    figure = Figure(figsize=size, dpi=120, layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False)


def tidy(axes: Axes) -> None:
    """No frame where there is no axis, and a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7e9", linewidth=0.7)
    axes.set_axisbelow(True)


def plain(text: str) -> str:
    """Text of a user's own, without Matplotlib's formulas."""
    return text.replace("$", r"\$")

"""The paper's pictures, and some of what it says without one: ``write_figure(name, folder)``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plap.checks import did_you_mean
from plap.errors import InputError
from plap.insight.figures import (
    edge_trust,
    embeddings,
    entropy,
    gradient_example,
    risk_bound,
    training_curves,
)
from plap.insight.figures.figure import Figure, FigureOptions
from plap.insight.figures.writing import check_folder, encode, write

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        entropy.FIGURE,
        training_curves.FIGURE,
        embeddings.FIGURE,
        gradient_example.FIGURE,
        risk_bound.FIGURE,
        edge_trust.FIGURE,
    )
}

__all__ = ["FIGURES", "Figure", "FigureOptions", "find_figure", "write_figure"]


def find_figure(name: str) -> Figure:
    """The figure of this name.

    Examples
    --------
    >>> find_figure("entropie")
    Traceback (most recent call last):
    plap.errors.InputError: there is no figure named 'entropie': did you mean entropy?
    """
    if name in FIGURES:
        return FIGURES[name]
    raise InputError(f"there is no figure named {name!r}: {did_you_mean(name, FIGURES)}")


def write_figure(name: str, folder: Path | str, **options: Any) -> list[Path]:
    """Compute a figure and write NAME.png, NAME.svg and NAME.csv, which holds what was drawn.

    Parameters
    ----------
    name : str
        A key of ``FIGURES``.
    folder : path
        Made if it is not there.
    **options :
        Fields of :class:`FigureOptions`: datasets, seeds, epochs, quick, root.
    """
    figure = find_figure(name)
    chosen = FigureOptions(**options)
    check_folder(Path(folder))
    data = figure.compute(chosen)
    return write(Path(folder), encode(name, figure.draw(data), data))

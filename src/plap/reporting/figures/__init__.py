"""The paper's pictures, and pictures of what it says without one: one file and one line here per picture.

The file of a picture has two functions: ``compute(options)`` gathers everything that is drawn in one table,
and ``draw(table)`` makes the picture from that table alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plap.checks import did_you_mean
from plap.errors import InputError
from plap.reporting.figures.figure import FigureOptions, PaperFigure
from plap.reporting.picture import check_folder, encode, write_files

FIGURES: dict[str, PaperFigure] = {
    figure.name: figure
    for figure in (
        PaperFigure("entropy", "Concentration of the learned weights, pGNN and GAT", "entropy_histograms"),
        PaperFigure("training-curves", "Training loss and test accuracy for p = 1", "training_curves"),
        PaperFigure("embeddings", "Node embeddings of pGNN and GCN by t-SNE", "embedding_planes"),
        PaperFigure("gradient-example", "Graph gradient and divergence on a tiny graph", "gradient_example"),
        PaperFigure("risk-bound", "The terms of Theorem 4 on a regular graph", "risk_terms"),
        PaperFigure("edge-trust", "Finding random edges by edge trust and simpler scores", "random_edges"),
        PaperFigure("adaptive-attack", "Accuracy under an attack that knows the model", "adaptive_attack"),
        PaperFigure("filters", "Frequency response of pGNN, GCN and APPNP", "filter_responses"),
    )
}

__all__ = ["FIGURES", "FigureOptions", "PaperFigure", "find_figure", "write_figure"]


def find_figure(name: str) -> PaperFigure:
    """The picture of this name.

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
    """Compute a picture and write NAME.png, NAME.svg, and NAME.csv with the numbers that were drawn.

    Parameters
    ----------
    name : str
        A key of :data:`plap.reporting.figures.FIGURES`.
    folder : path
        Created if it does not exist.
    **options :
        Fields of :class:`plap.reporting.figures.FigureOptions`: datasets, seeds, epochs, quick, root.
    """
    figure = find_figure(name)
    chosen = FigureOptions(**options)
    check_folder(Path(folder))
    data = figure.compute(chosen)
    picture = figure.draw(data)
    files = {
        f"{name}.png": encode(picture, "png"),
        f"{name}.svg": encode(picture, "svg"),
        f"{name}.csv": data.write_csv(float_precision=6).encode(),
    }
    return write_files(Path(folder), files)

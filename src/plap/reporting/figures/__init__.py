"""The paper's pictures, and pictures of what it says without one: one file and one line here per picture.

The file of a picture has two functions: ``compute(options)`` gathers everything that is drawn in one table,
and ``draw(table)`` makes the picture from that table alone.
"""

from __future__ import annotations

from plap.checks import did_you_mean
from plap.errors import InputError
from plap.reporting.figures.figure import FigureOptions, PaperFigure

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

__all__ = ["FIGURES", "FigureOptions", "PaperFigure", "find_figure"]


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

"""A colour and a marker for each model: no two models share both, and the p-Laplacian ones are blue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Hues apart in lightness too, for a white and for a black page.
_OTHERS = (
    ("#4d565e", "#c3cad0"),
    ("#d55e00", "#f0883e"),
    ("#a37200", "#e3c04a"),
    ("#aa4499", "#d98fd0"),
    ("#117733", "#4cc38a"),
    ("#c0445a", "#f28b9b"),
    ("#7a1f4b", "#b98aff"),
)
_PLAPLACIAN = (
    ("#1b8fc4", "#8fd6ff"),
    ("#0060a0", "#56b4e9"),
    ("#4457d0", "#8c9dff"),
    ("#1b1464", "#4f8df5"),
)


@dataclass(frozen=True)
class Marker:
    """A shape for both kinds of picture."""

    matplotlib: str
    path: str
    """Around (0, 0), in SVG's words."""


_MARKERS = (
    Marker("o", "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z"),
    Marker("s", "M-2.7-2.7h5.4v5.4h-5.4z"),
    Marker("^", "M0-3.6l3.4 6h-6.8z"),
    Marker("D", "M0-3.7l3.7 3.7l-3.7 3.7l-3.7-3.7z"),
    Marker("v", "M0 3.6l3.4-6h-6.8z"),
)


@dataclass(frozen=True)
class LineStyle:
    """How a model's line looks."""

    light: str
    """Colour on a white page."""
    dark: str
    marker: Marker


def line_styles(models: Sequence[str]) -> tuple[LineStyle, ...]:
    """A style for each model, in order.

    Examples
    --------
    >>> [style.light for style in line_styles(["mlp", "pgnn-1.0", "gcn"])]
    ['#4d565e', '#1b8fc4', '#d55e00']
    """
    seen = {True: 0, False: 0}
    styles = []
    for model in models:
        blue = "pgnn" in model
        palette, count = (_PLAPLACIAN if blue else _OTHERS), seen[blue]
        styles.append(LineStyle(*palette[count % len(palette)], _MARKERS[count % len(_MARKERS)]))
        seen[blue] += 1
    return tuple(styles)

"""The one palette: colours that can be told apart with any kind of colour vision, on white and on dark pages.

Okabe and Ito's colours are the base. Models are drawn with a colour and a marker, so that no two models share
both, and p-Laplacian models are blue.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

BLUE, SKY, ORANGE, VERMILION = "#0072B2", "#56B4E9", "#E69F00", "#D55E00"
GREEN, PURPLE, BLACK, GREY = "#009E73", "#CC79A7", "#000000", "#59626b"
PALE_BLUE, PALE_ORANGE = "#b9dcef", "#f7cdb0"
GRID_LINE = "#e4e7e9"

CATEGORIES = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK, "#b5a900")
"""For classes of points and other kinds of things; beyond these, start again with the next marker."""
CATEGORY_MARKERS = ("o", "^", "s", "P", "D", "v", "X")

PAGE_COLOURS = {
    "page": ("#fcfcfb", "#14181b"),
    "ink": ("#1c2126", "#e6e9eb"),
    "soft": (GREY, "#a3adb5"),
    "rule": ("#e1e4e6", "#2c3338"),
    "grid": ("#eceeef", "#242a2f"),
    "head": ("#f4f5f5", "#1b2024"),
    "blue": (BLUE, SKY),
    "grey": ("#8b949c", "#8d98a1"),
    "on-blue": ("#ffffff", "#0b1216"),
    "mark": ("#e8f2f8", "#17303f"),
    "above": ("#d6e9f5", "#12344a"),
    "above-sign": ("#00629b", "#7cc7f0"),
    "below": ("#fbe3cf", "#4a2c0a"),
    "below-sign": ("#a84900", "#f0b04d"),
}
"""CSS variables of the HTML pages: on a light and on a dark screen."""


@dataclass(frozen=True)
class Marker:
    """A shape, for both drawing engines."""

    matplotlib: str
    path: str
    """An SVG path around (0, 0)."""


@dataclass(frozen=True)
class LineStyle:
    """The look of a line and of the points on it."""

    light: str
    """Colour on a white page."""
    dark: str
    marker: Marker


_CIRCLE = Marker("o", "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z")
_MARKERS = (
    _CIRCLE,
    Marker("s", "M-2.7-2.7h5.4v5.4h-5.4z"),
    Marker("^", "M0-3.6l3.4 6h-6.8z"),
    Marker("D", "M0-3.7l3.7 3.7l-3.7 3.7l-3.7-3.7z"),
    Marker("v", "M0 3.6l3.4-6h-6.8z"),
)
# Hues that differ in lightness as well, for a white and for a dark page.
_MODELS = (
    ("#4d565e", "#c3cad0"),
    ("#d55e00", "#f0883e"),
    ("#a37200", "#e3c04a"),
    ("#aa4499", "#d98fd0"),
    ("#117733", "#4cc38a"),
    ("#c0445a", "#f28b9b"),
    ("#7a1f4b", "#b98aff"),
)
_HIGHLIGHTED_MODELS = (
    ("#1b8fc4", "#8fd6ff"),
    ("#0060a0", "#56b4e9"),
    ("#4457d0", "#8c9dff"),
    ("#1b1464", "#4f8df5"),
)

TRAINING = LineStyle(VERMILION, ORANGE, _CIRCLE)
VALIDATION = LineStyle(BLUE, SKY, _CIRCLE)


_CLASSES = (
    ("#0072B2", "#56B4E9"),
    ("#D55E00", "#F0883E"),
    ("#00815e", "#3fcf9f"),
    ("#A37200", "#E3C04A"),
    ("#AA4499", "#D98FD0"),
    ("#4d565e", "#c3cad0"),
    ("#4457d0", "#9aa8ff"),
    ("#7a1f4b", "#f28b9b"),
)


def class_styles(count: int) -> tuple[LineStyle, ...]:
    """A colour and a marker for each class; after eight classes the colours come again with the next marker.

    Examples
    --------
    >>> styles = class_styles(9)
    >>> styles[0].light == styles[8].light, styles[0].marker == styles[8].marker
    (True, False)
    """
    return tuple(
        LineStyle(*_CLASSES[k % len(_CLASSES)], _MARKERS[(k + k // len(_CLASSES)) % len(_MARKERS)])
        for k in range(count)
    )


def model_styles(highlighted: Iterable[bool]) -> tuple[LineStyle, ...]:
    """A style for each model, in order; the highlighted ones are blue.

    Examples
    --------
    >>> [style.light for style in model_styles([False, True, False])]
    ['#4d565e', '#1b8fc4', '#d55e00']
    """
    seen = {True: 0, False: 0}
    styles = []
    for blue in highlighted:
        colours, position = (_HIGHLIGHTED_MODELS if blue else _MODELS), seen[blue]
        styles.append(LineStyle(*colours[position % len(colours)], _MARKERS[position % len(_MARKERS)]))
        seen[blue] += 1
    return tuple(styles)

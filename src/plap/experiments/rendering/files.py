"""All files of a result."""

from __future__ import annotations

from plap.experiments.outcome import TableResult
from plap.experiments.rendering.csv_file import csv_text
from plap.experiments.rendering.latex import latex
from plap.experiments.rendering.markdown import markdown
from plap.experiments.rendering.page import page
from plap.experiments.rendering.picture import curve_picture


def render_files(result: TableResult) -> dict[str, bytes]:
    """The result in every format, by file name; the same result gives the same bytes.

    Returns
    -------
    dict of str to bytes
        ``NAME.md``, ``NAME.csv``, ``NAME.tex``, ``NAME.html`` and, for a table with a curve,
        ``NAME-curve.svg`` and ``NAME-curve.png``.
    """
    pictures = {
        f"{result.name}-curve.svg": curve_picture(result, "svg"),
        f"{result.name}-curve.png": curve_picture(result, "png"),
    }
    drawn = {name: picture for name, picture in pictures.items() if picture is not None}
    texts = {
        f"{result.name}.md": markdown(result, picture=next(iter(drawn), None)),
        f"{result.name}.csv": csv_text(result),
        f"{result.name}.tex": latex(result),
        f"{result.name}.html": page(result),
    }
    return {name: text.encode() for name, text in texts.items()} | drawn

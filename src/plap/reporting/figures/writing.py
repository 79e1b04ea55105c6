"""A picture of the paper as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plap.reporting.figures import FigureOptions, find_figure
from plap.reporting.picture import check_folder, encode, write_files


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

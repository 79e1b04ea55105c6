"""Picture files by Matplotlib: what all pictures share, and files with the same bytes for the same data."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import matplotlib
from matplotlib.figure import Figure

from plap.atomic_file import write_atomic
from plap.errors import InputError
from plap.reporting.number_text import shortened
from plap.reporting.palette import GRID_LINE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

PictureKind = Literal["png", "svg"]

_METADATA: dict[PictureKind, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def panels(
    rows: int,
    columns: int,
    size: tuple[float, float] | None = None,
    *,
    width: float = 2.6,
    height: float = 2.1,
    dpi: int = 120,
    **options: Any,
) -> tuple[Figure, NDArray[Any]]:
    """A white figure and its axes, [rows, columns].

    Parameters
    ----------
    rows, columns : int
    size : (float, float), optional
        Of the whole figure in inches; by default each panel is ``width`` × ``height`` inches.
    width, height : float
    dpi : int
    **options :
        For :meth:`matplotlib.figure.Figure.subplots`.
    """
    size = size or (0.8 + width * columns, 0.7 + height * rows)
    figure = Figure(figsize=size, dpi=dpi, layout="constrained", facecolor="white")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def tidy(axes: Axes, *, lines: Literal["x", "y"] | None = "y") -> None:
    """Remove the frame where there is no axis, and draw a light grid behind the data."""
    axes.spines[["top", "right"]].set_visible(False)
    if lines:
        axes.grid(axis=lines, color=GRID_LINE, linewidth=0.7)
    axes.set_axisbelow(True)


def plain(text: str, length: int | None = None) -> str:
    """Text of a user's own, not read as Matplotlib's formulas, and shortened to ``length`` characters."""
    return (text if length is None else shortened(text, length)).replace("$", r"\$")


def encode(figure: Figure, kind: PictureKind) -> bytes:
    """The picture as a file; the same figure gives the same bytes."""
    stream = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "plap"}):
        figure.savefig(stream, format=kind, metadata=_METADATA[kind])
    return stream.getvalue()


def check_folder(folder: Path) -> None:
    """Create the folder, and refuse one that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be created ({error.strerror})") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} cannot be written: permission denied")


def write_files(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write each file completely or not at all; returns their paths."""
    written = []
    for name, content in files.items():
        path = folder / name
        try:
            write_atomic(path, content)
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror})") from None
        written.append(path)
    return written

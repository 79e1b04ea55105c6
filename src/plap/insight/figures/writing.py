"""A picture as files, each whole or not there, the same bytes for the same data."""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from plap.atomic_file import write_atomic
from plap.errors import InputError

if TYPE_CHECKING:
    import matplotlib.figure
    import polars

_METADATA: dict[str, dict[str, str | None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
}


def encode(name: str, picture: matplotlib.figure.Figure, data: polars.DataFrame) -> dict[str, bytes]:
    """NAME.png, NAME.svg and NAME.csv."""
    import matplotlib  # noqa: PLC0415

    files = {}
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        for kind, metadata in _METADATA.items():
            stream = io.BytesIO()
            picture.savefig(stream, format=kind, metadata=metadata)
            files[f"{name}.{kind}"] = stream.getvalue()
    files[f"{name}.csv"] = data.write_csv(float_precision=6).encode()
    return files


def check_folder(folder: Path) -> None:
    """Make the folder, and refuse one that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} cannot be made ({error.strerror})") from None
    if not os.access(folder, os.W_OK):
        raise InputError(f"{folder} cannot be written, it is not permitted")


def write(folder: Path, files: dict[str, bytes]) -> list[Path]:
    """Write each file beside its place and rename it; gives where they are."""
    written = []
    for name, content in files.items():
        path = folder / name
        try:
            write_atomic(path, content)
        except OSError as error:
            raise InputError(f"{path} cannot be written ({error.strerror})") from None
        written.append(path)
    return written

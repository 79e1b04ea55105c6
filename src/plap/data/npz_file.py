"""One NPZ file, read array by array, without ever unpickling."""

from __future__ import annotations

import os
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from plap.errors import InputError

Array = NDArray[Any]


@dataclass(frozen=True)
class NpzFile:
    """The names of its arrays; each is read when it is asked for."""

    path: Path
    names: tuple[str, ...]

    @classmethod
    def open(cls, path: Path) -> NpzFile:
        """Check that the file is there and an archive of arrays."""
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if not path.is_file() or not os.access(path, os.R_OK):
            raise InputError(f"{path}: this is not a file that can be read")
        if path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
        if not zipfile.is_zipfile(path):
            raise InputError(f"{path}: not a whole NPZ file")
        try:
            with np.load(path, allow_pickle=False) as archive:
                return cls(path, tuple(archive.files))
        except (ValueError, OSError, EOFError, zipfile.BadZipFile):
            raise InputError(f"{path}: not a whole NPZ file") from None

    def find(self, names: tuple[str, ...]) -> str | None:
        """Return the first of ``names`` that is there."""
        return next((name for name in names if name in self.names), None)

    def first(self, names: tuple[str, ...], ndim: int) -> tuple[str, Array] | None:
        """Name and array of the first of ``names`` that is there, of ``ndim`` dimensions."""
        name = self.find(names)
        if name is None:
            return None
        array = self.array(name)
        if array.ndim != ndim:
            self.fail(name, f"must have {ndim} dimension{'s' if ndim > 1 else ''}, not {array.ndim}")
        return name, array

    def array(self, name: str) -> Array:
        """Read one array."""
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                array: Array | bytes = archive[name]
        except (OSError, EOFError, zipfile.BadZipFile, zlib.error, NotImplementedError):
            self.fail(name, "the data is truncated or damaged")
        except (ValueError, SyntaxError, TypeError, MemoryError) as error:
            if "pickle" in str(error):
                self.fail(name, "holds Python objects, which are never loaded")
            self.fail(name, "is not a NumPy array")
        if isinstance(array, bytes):
            self.fail(name, "is not a NumPy array")
        if array.dtype.kind not in "biufU":
            self.fail(name, f"holds {array.dtype}, and must hold numbers or text")
        return array

    def fail(self, name: str, problem: str, row: int | None = None) -> NoReturn:
        """Raise an ``InputError`` that names the file, the array and the row."""
        where = f"array {name!r}" + ("" if row is None else f", row {row}")
        raise InputError(f"{self.path}, {where}: {problem}")

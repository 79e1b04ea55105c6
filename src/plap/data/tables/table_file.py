"""One CSV, TSV or Parquet file, read by column, that can say on which line a value stands."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from functools import cached_property
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import polars as pl

from plap.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


class Table(Protocol):
    """What a loader needs of a file."""

    path: Path
    columns: tuple[str, ...]
    height: int

    def column(self, name: str) -> pl.Series:
        """Return one column; empty text is null."""
        ...

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file, the line of data row ``row``, and the column."""
        ...


def open_table(path: str | os.PathLike[str]) -> Table:
    """Open a table by what its name ends in: one of ``SUFFIXES``."""
    path = Path(path)
    name = path.name.lower()
    if not name.endswith(SUFFIXES):
        raise InputError(f"{path}: a table must end in {', '.join(SUFFIXES)}")
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if not path.is_file():
        raise InputError(f"{path}: this is not a file")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: reading this file is not permitted")
    if path.stat().st_size == 0:
        raise InputError(f"{path}: the file is empty")
    return ParquetTable(path) if name.endswith(".parquet") else TextTable(path)


def find_column(table: Table, names: tuple[str, ...]) -> str | None:
    """Return the column called by the first of ``names`` that occurs, in upper or lower case."""
    known = {column.strip().lower(): column for column in reversed(table.columns)}
    return next((known[name] for name in names if name in known), None)


def need_column(table: Table, names: tuple[str, ...], what: str) -> str:
    """As :func:`find_column`, but refuse a table without it."""
    column = find_column(table, names)
    if column is None:
        found = ", ".join(repr(name) for name in table.columns[:8]) + (
            ", …" if len(table.columns) > 8 else ""
        )
        raise InputError(
            f"{table.path}: no column holds {what} ({' or '.join(names)}), the columns are {found}"
        )
    return column


class TextTable:
    """A CSV or TSV file, gzip or not, with a header line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._separator = "\t" if ".tsv" in path.name.lower() else ","
        self._compressed = path.name.lower().endswith(".gz")
        self._frame, self._rows = self._read()
        self.columns: tuple[str, ...] = tuple(self._frame.columns)
        self.height: int = self._frame.height

    def column(self, name: str) -> pl.Series:
        """Return one column as text without blanks around it; empty cells are null."""
        text = pl.col(name).str.strip_chars()
        return self._frame.select(pl.when(text != "").then(text).alias(name))[name]

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file, the line of data row ``row``, and the column."""
        record = row if self._rows is None else int(self._rows[row])
        raise InputError(f"{self.path}, line {self._line(record)}, column {column!r}: {problem}")

    def _read(self) -> tuple[pl.DataFrame, np.ndarray | None]:
        """All cells as text, without blank lines, and the record that each row was if some were blank."""
        self._check_header()
        try:
            frame = pl.read_csv(
                self._bytes if self._compressed else self.path,
                separator=self._separator,
                infer_schema=False,
                glob=False,
            )
        except (pl.exceptions.PolarsError, OSError) as error:
            self._explain(error)
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        if filled.all():
            return frame, None
        return frame.filter(filled), filled.arg_true().to_numpy()

    @cached_property
    def _bytes(self) -> bytes:
        """The whole file, decompressed."""
        try:
            return gzip.decompress(self.path.read_bytes()) if self._compressed else self.path.read_bytes()
        except (EOFError, zlib.error):
            raise InputError(f"{self.path}: the gzip file is truncated or damaged") from None
        except gzip.BadGzipFile:
            raise InputError(f"{self.path}: this is not a gzip file, or a damaged one") from None

    def _check_header(self) -> None:
        """Refuse a first line that is not UTF-8, not there, or that has one name twice."""
        with io.BytesIO(self._bytes) if self._compressed else self.path.open("rb") as stream:
            line = stream.readline(1 << 24)
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(f"{self.path}: the file is UTF-16, and must be UTF-8")
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path}, line 1: not UTF-8 text ({error.reason})") from None
        if "\r" in text.rstrip("\r\n"):
            raise InputError(
                f"{self.path}: lines end in a carriage return alone, and must end in a line feed"
            )
        if not text.strip():
            raise InputError(f"{self.path}: the first line must name the columns, and is empty")
        names = [name.strip() for name in next(csv.reader([text], delimiter=self._separator))]
        twice = next((name for k, name in enumerate(names) if name and name in names[:k]), None)
        if twice is not None:
            raise InputError(f"{self.path}, line 1: the column {twice!r} is there twice")

    def _explain(self, error: Exception) -> NoReturn:
        """Say where the text is malformed."""
        data = self._bytes
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as wrong:
            line = data[: wrong.start].count(b"\n") + 1
            raise InputError(
                f"{self.path}, line {line}: byte 0x{data[wrong.start]:02x} is not UTF-8 text"
            ) from None
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._separator)
        width, line = len(next(reader, [])), 2
        try:
            for record in reader:
                if len(record) > width:
                    raise InputError(f"{self.path}, line {line}: {len(record)} cells under {width} columns")
                line = reader.line_num + 1
        except csv.Error:
            pass
        if text.count('"') % 2:
            raise InputError(f"{self.path}: a quotation mark is opened and never closed") from None
        first = str(error).split("\n", 1)[0]
        raise InputError(f"{self.path}: the file cannot be read as a table ({first})") from None

    def _line(self, record: int) -> int:
        """The line on which a record begins; quoted cells may span several."""
        reader = csv.reader(
            io.TextIOWrapper(io.BytesIO(self._bytes), "utf-8-sig", newline=""), delimiter=self._separator
        )
        line = 1
        try:
            for number, _ in enumerate(reader):
                if number == record + 1:
                    return line
                line = reader.line_num + 1
        except csv.Error:
            pass
        return record + 2


class ParquetTable:
    """A Parquet file; columns are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

        self._broken = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
        try:
            self.columns: tuple[str, ...] = tuple(pl.read_parquet_schema(path))
            lazy = pl.scan_parquet(path, glob=False)
            self.height = int(lazy.select(pl.len()).collect().item())
        except self._broken as error:
            self._refuse(error)

    def column(self, name: str) -> pl.Series:
        """Return one column; empty text is null."""
        try:
            series = pl.read_parquet(self.path, columns=[name], glob=False)[name]
        except self._broken as error:
            self._refuse(error)
        if isinstance(series.dtype, pl.Categorical | pl.Enum):
            series = series.cast(pl.String)
        if series.dtype == pl.String:
            series = series.set(series == "", None)
        return series

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file, the row (the first is 1) and the column."""
        raise InputError(f"{self.path}, row {row + 1}, column {column!r}: {problem}")

    def _refuse(self, error: BaseException) -> NoReturn:
        first = str(error).split("\n", 1)[0]
        raise InputError(f"{self.path}: not a whole Parquet file ({first})") from None

"""One CSV, TSV or Parquet file, read by column, that can say on which line a value stands."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import os
import re
import zlib
from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path
from typing import NoReturn, Protocol

import numpy as np
import polars as pl

from plap.errors import InputError

SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_SNIFFED = 20
"""Lines that are looked at to tell one separator from another."""
_NOT_TEXT = re.compile(rb"[\x00-\x08\x0b\x0e-\x1f\x7f]")
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
"""A character of more than one byte: a file with one and a wrong byte elsewhere is damaged UTF-8."""
_INDEX = re.compile(r"__index_level_\d+__")
"""What pandas calls the index of a table in a Parquet file."""


class Table(Protocol):
    """What a loader needs of a file."""

    path: Path
    columns: tuple[str, ...]
    height: int
    notes: list[str]
    """How the file had to be read, one sentence each."""
    categories: frozenset[str]
    """Columns whose type says that their values are categories."""

    def column(self, name: str) -> pl.Series:
        """Return one column; text has no blanks around it, and is null where it is empty."""
        ...

    def head(self, name: str, rows: int) -> pl.Series:
        """Return the first cells of a column."""
        ...

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file, the line of data row ``row``, and the column."""
        ...


def open_table(source: str | os.PathLike[str] | Table) -> Table:
    """Open a table by what its name ends in: one of ``SUFFIXES``; what is a table already stays as it is."""
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "fail"):
            raise InputError(
                f"a table must be a path here, not {type(source).__name__}; plap.read_tables takes tables in "
                "memory"
            )
        return source
    path = Path(source)
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


def find_column(table: Table, names: tuple[str, ...], without: Collection[str] = ()) -> str | None:
    """Return the column called by the first of ``names`` that occurs, in upper or lower case."""
    seen = (column for column in reversed(table.columns) if column not in without)
    known = {column.strip().lower(): column for column in seen}
    return next((known[name] for name in names if name in known), None)


def refuse_without(table: Table, names: tuple[str, ...], what: str, flag: str) -> NoReturn:
    """Refuse a table without a column called by one of ``names``; ``flag`` would name another."""
    raise InputError(
        f"{table.path}: no column holds {what} ({' or '.join(names[:3])}), "
        f"the columns are {shown_columns(table)}; {flag} names another"
    )


def categories_of(schema: Mapping[str, pl.DataType]) -> frozenset[str]:
    """Columns whose type says that their values are categories."""
    return frozenset(name for name, kind in schema.items() if isinstance(kind, pl.Categorical | pl.Enum))


def plain(column: pl.Series) -> pl.Series:
    """A column of a table in memory or in Parquet with cells as those of a text file.

    Categories are text, text has no blanks around it and is null where it is empty, and decimal numbers are
    whole numbers (or their digits) where their type has no fraction, and floats otherwise.
    """
    if isinstance(column.dtype, pl.Categorical | pl.Enum):
        column = column.cast(pl.String)
    if column.dtype == pl.String:
        text = column.str.strip_chars()
        return text.set((text == "").fill_null(False), None)
    if isinstance(column.dtype, pl.Decimal):
        if column.dtype.scale:
            return column.cast(pl.Float64)
        whole = column.cast(pl.Int64, strict=False)
        return whole if whole.null_count() == column.null_count() else column.cast(pl.String)
    return column


def shown_columns(table: Table) -> str:
    """The first columns of a table, for a sentence."""
    return ", ".join(repr(name) for name in table.columns[:8]) + (", …" if len(table.columns) > 8 else "")


class TextTable:
    """A CSV or TSV file, gzip or not, with a header line.

    Cells are separated by commas, semicolons, tabs or vertical bars, whichever the header and the first rows
    agree on. A file that is not UTF-8 is read as UTF-16 where it begins with a byte order mark, and as
    Windows-1252 where it looks like a text of an older spreadsheet; ``notes`` says so.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self.categories: frozenset[str] = frozenset()
        self._compressed = path.name.lower().endswith(".gz")
        self._separator = self._check_header()
        self._frame, self._rows = self._read()
        self.columns: tuple[str, ...] = tuple(self._frame.columns)
        self.height: int = self._frame.height

    def column(self, name: str) -> pl.Series:
        """Return one column as text without blanks around it; empty cells are null."""
        text = pl.col(name).str.strip_chars()
        return self._frame.select(pl.when(text != "").then(text).alias(name))[name]

    def head(self, name: str, rows: int) -> pl.Series:
        """Return the first cells of a column as they are."""
        return self._frame[name].head(rows)

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file, the line of data row ``row``, and the column."""
        record = row if self._rows is None else int(self._rows[row])
        raise InputError(f"{self.path}, line {self._line(record)}, column {column!r}: {problem}")

    def _read(self) -> tuple[pl.DataFrame, np.ndarray | None]:
        """All cells as text, without blank lines, and the record that each row was if some were blank."""
        try:
            frame = pl.read_csv(
                self._bytes if self._in_memory else self.path,
                separator=self._separator,
                infer_schema=False,
                glob=False,
            )
        except (pl.exceptions.PolarsError, OSError) as error:
            if self._western() or self._requoted():
                return self._read()
            self._explain(error)
        if frame.width > 1 and frame.to_series(-1).null_count():
            self._tell_short_rows(frame.width)
        frame = self._with_names(frame)
        frame = frame.rename({name: name.strip() for name in frame.columns})
        filled = frame.select(pl.any_horizontal(pl.all().is_not_null())).to_series()
        if filled.all():
            return frame, None
        return frame.filter(filled), filled.arg_true().to_numpy()

    def _tell_short_rows(self, width: int) -> None:
        """Note rows with fewer cells than columns, as the last one of a file that was cut off has."""
        data = self._bytes if self._in_memory else self.path.read_bytes()  # not kept
        mark, lines = self._separator.encode(), data.count(b"\n") + (not data.endswith(b"\n"))
        if b'"' not in data and data.count(mark) == (width - 1) * lines:
            return
        text = io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", newline="")
        reader, line, short = csv.reader(text, delimiter=self._separator), 1, list[tuple[int, int]]()
        with contextlib.suppress(csv.Error):
            for record in reader:
                if 0 < len(record) < width and any(cell.strip() for cell in record):
                    short.append((line, len(record)))
                line = reader.line_num + 1
        if short:
            rows = "1 row has" if len(short) == 1 else f"{len(short):,} rows have"
            first = f"line {short[0][0]}: {short[0][1]} under {width} columns"
            self.notes.append(
                f"{self.path.name}: {rows} fewer cells than columns ({first}); what is not there is missing."
            )

    def _with_names(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Without columns that the header does not name: an index that pandas wrote, or commas at the end."""
        named = [bool(name) for name in self._names]
        if all(named) or not any(named) or len(named) != frame.width:
            return frame
        kept = [name for name, keep in zip(frame.columns, named, strict=True) if keep]
        lost = frame.drop(kept)
        if lost.select(pl.any_horizontal(pl.all().is_not_null().any())).item():
            self.notes.append(f"{self.path.name}: a column without a name is not used.")
        return frame.select(kept)

    @property
    def _in_memory(self) -> bool:
        """Whether the text was read, or rewritten, already."""
        return "_bytes" in self.__dict__

    @cached_property
    def _bytes(self) -> bytes:
        """The whole file, decompressed, in UTF-8 if it can be."""
        try:
            return gzip.decompress(self.path.read_bytes()) if self._compressed else self.path.read_bytes()
        except (EOFError, zlib.error):
            raise InputError(f"{self.path}: the gzip file is truncated or damaged") from None
        except gzip.BadGzipFile:
            raise InputError(f"{self.path}: this is not a gzip file, or a damaged one") from None

    def _western(self) -> bool:
        """Take a file that is not UTF-8 for Windows-1252, if that is what it looks like."""
        data = self._bytes
        if data.isascii() or _NOT_TEXT.search(data) or _MULTIBYTE.search(data):
            return False
        try:
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            return False
        self.__dict__["_bytes"] = text.encode()
        self.notes.append(f"{self.path.name}: not UTF-8, so it was read as Windows-1252.")
        return True

    def _requoted(self) -> bool:
        """Rewrite a file whose cells have quotation marks inside, as of inches, so that these are doubled."""
        data = self._bytes
        if b'"' not in data:
            return False
        rewritten = io.StringIO()
        try:
            text = io.StringIO(data.decode("utf-8-sig"), newline="")
            records = csv.reader(text, delimiter=self._separator, strict=True)
            csv.writer(rewritten, delimiter=self._separator, lineterminator="\n").writerows(records)
        except (UnicodeDecodeError, csv.Error):
            return False
        self.__dict__["_bytes"] = rewritten.getvalue().encode()
        return self._bytes != data

    def _check_header(self) -> str:
        """The separator; refuse a first line that is not text, not there, or that has one name twice."""
        with io.BytesIO(self._bytes) if self._compressed else self.path.open("rb") as stream:
            line = stream.readline(1 << 24)
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            try:
                self.__dict__["_bytes"] = self._bytes.decode("utf-16").encode()
            except UnicodeDecodeError as error:
                raise InputError(f"{self.path}: the file is damaged UTF-16 ({error.reason})") from None
            self.notes.append(f"{self.path.name}: read as UTF-16.")
            line = self._bytes.split(b"\n", 1)[0]
        try:
            text = line.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            if not self._western():
                raise InputError(f"{self.path}, line 1: not UTF-8 text ({error.reason})") from None
            text = self._bytes.split(b"\n", 1)[0].decode()
        if "\r" in text.rstrip("\r\n"):
            raise InputError(
                f"{self.path}: lines end in a carriage return alone, and must end in a line feed"
            )
        if not text.strip():
            raise InputError(f"{self.path}: the first line must name the columns, and is empty")
        separator = "\t" if ".tsv" in self.path.name.lower() else self._guess_separator(text)
        names = [name.strip() for name in next(csv.reader([text], delimiter=separator))]
        self._names = names
        twice = next((name for k, name in enumerate(names) if name and name in names[:k]), None)
        if twice is not None:
            raise InputError(f"{self.path}, line 1: the column {twice!r} is there twice")
        return separator

    def _guess_separator(self, header: str) -> str:
        """The separator that gives the header the most columns, as many as the first rows have."""
        widths = {mark: _width(header, mark) for mark in _SEPARATORS}
        others = max(width for mark, width in widths.items() if mark != ",")
        if others == 1 or others < widths[","]:
            return ","
        with io.BytesIO(self._bytes) if self._in_memory else self.path.open("rb") as stream:
            rows = [stream.readline(1 << 20).decode("utf-8", "replace") for _ in range(_SNIFFED + 1)][1:]
        rows = [row for row in rows if row.strip()]
        agree = {mark: sum(_width(row, mark) == width for row in rows) for mark, width in widths.items()}
        split = [mark for mark in _SEPARATORS if widths[mark] > 1]
        found = max(split, key=lambda mark: (agree[mark], widths[mark]))
        if found != ",":
            self.notes.append(f"{self.path.name}: cells are separated by {_SEPARATORS[found]}.")
        return found

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


def _width(line: str, separator: str) -> int:
    """Number of cells of a line, as far as one line can tell."""
    try:
        return len(next(csv.reader([line], delimiter=separator), []))
    except csv.Error:
        return 0


class ParquetTable:
    """A Parquet file; columns are read when they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []
        self._broken = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
        try:
            schema = pl.read_parquet_schema(path)
            names, self.categories = tuple(schema), categories_of(schema)
            self.columns: tuple[str, ...] = tuple(name for name in names if not _INDEX.fullmatch(name))
            lazy = pl.scan_parquet(path, glob=False)
            self.height = int(lazy.select(pl.len()).collect().item())
        except self._broken as error:
            self._refuse(error)
        if len(self.columns) < len(names):
            self.notes.append(f"{path.name}: the index that pandas wrote is not used.")

    def column(self, name: str) -> pl.Series:
        """Return one column; text has no blanks around it, and is null where it is empty."""
        try:
            series = pl.read_parquet(self.path, columns=[name], glob=False)[name]
        except self._broken as error:
            self._refuse(error)
        return plain(series)

    def head(self, name: str, rows: int) -> pl.Series:
        """Return the first cells of a column as they are."""
        try:
            return pl.read_parquet(self.path, columns=[name], n_rows=rows, glob=False)[name]
        except self._broken as error:
            self._refuse(error)

    def fail(self, row: int, column: str, problem: str) -> NoReturn:
        """Raise an ``InputError`` that names the file, the row (the first is 1) and the column."""
        raise InputError(f"{self.path}, row {row + 1}, column {column!r}: {problem}")

    def _refuse(self, error: BaseException) -> NoReturn:
        first = str(error).split("\n", 1)[0]
        raise InputError(f"{self.path}: not a whole Parquet file ({first})") from None

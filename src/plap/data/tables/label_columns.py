"""Labels as they stand in a table of nodes: numbers, one class per node, or several."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import polars as pl
from numpy.typing import NDArray

from plap.data.columns.cells import MISSING
from plap.data.labels import encode_labels, is_integer, looks_numeric_target
from plap.data.tables.cells import WHOLE, BadRows, as_written, decimal_commas_in, numbers
from plap.data.tables.options import TableOptions, quoted
from plap.data.tables.table_file import Table
from plap.errors import InputError

SEVERAL = "label:"
"""What the names of columns begin with where a node may have several labels."""

_UNKNOWN = tuple(word for word in MISSING if word not in ("none", "nil", "missing", ".", ".."))
"""What stands for a label that is not known, in lower case; "none" may well be a class."""
_FEW = 0.1
"""Cells of text in a column of numbers to be predicted, at most, as a share of the numbers; these must have
fractions, because whole numbers beside text are names of classes."""

_ZEROS = re.compile(r"\.0+$")
"""What a float has behind a whole number."""

Labels = NDArray[np.int64] | NDArray[np.float32] | NDArray[np.float64]


def read_labels(
    table: Table,
    name: str | None,
    several: list[str],
    bad: BadRows,
    options: TableOptions,
    lone_classes: bool,
    notes: list[str],
) -> tuple[Labels, tuple[str, ...]]:
    """Labels of all rows, and the names of the classes.

    Parameters
    ----------
    table : Table
    name : str, optional
        The column of labels.
    several : list of str
        Columns of 0 and 1 in place of it, where a node may have several labels.
    bad : BadRows
        Told of rows that cannot be used.
    options : TableOptions
    lone_classes : bool
        Whether a class that only one node has is none to refuse.
    notes : list of str
        Sentences are added to it.

    Returns
    -------
    y : array, int64 [N] with −1, float64 [N] with NaN, or float32 [N, L] with rows of NaN, where unknown
    class_names : tuple of str
        None for numbers.
    """
    if several:
        return _read_several(table, several)
    unknown = np.full(table.height, -1, dtype=np.int64)
    if name is None:
        return unknown, ()
    said: list[str] = []
    column = _known_cells(table, name, options, said)
    found = _read_numbers(table, column, bad, options, said)
    if found is not None:
        notes += said
        return found, ()
    try:
        result = _read_classes(table, column, bad, options, lone_classes, said)
    except InputError as error:
        if options.keep_labels:
            raise
        notes.append(f"Labels were not read: {error}.")
        return unknown, ()
    notes += said
    return result


def _known_cells(table: Table, name: str, options: TableOptions, notes: list[str]) -> pl.Series:
    """The column with null where a cell says that the label is not known."""
    column = table.column(name)
    if options.unknown is not None and not column.dtype.is_nested():
        mark = _ZEROS.sub("", str(options.unknown).strip())
        marked = (column.cast(pl.String).str.replace(_ZEROS.pattern, "") == mark).fill_null(False)
        if not (marked.any() or options.predicts):
            notes.append(f"{table.path.name}: no cell of {name!r} is {mark!r}, the mark of an unknown label.")
        return column.set(marked, None)
    if column.dtype != pl.String:
        return column
    text = column.str.strip_chars()
    marked = text.str.to_lowercase().is_in(_UNKNOWN).fill_null(False)
    marks = text.filter(marked & (text != "")).value_counts(sort=True)
    if marks.height:
        count = int(marks["count"].sum())
        cells, written = "1 cell is" if count == 1 else f"{count:,} cells are", marks[name].to_list()[:5]
        notes.append(
            f"{table.path.name}: in {name!r}, {cells} {quoted(written)}, taken for unknown; --unknown names "
            "another mark."
        )
    return column.set(marked, None)


def _read_numbers(
    table: Table, column: pl.Series, bad: BadRows, options: TableOptions, notes: list[str]
) -> NDArray[np.float64] | None:
    """Labels that are numbers, NaN where unknown; None where they are classes."""
    if options.task == "classes" or not (column.dtype.is_numeric() or column.dtype == pl.String):
        return None
    name = column.name
    cells, written = (column, "") if options.raw_features else as_written(column, decimal_commas_in(table))
    values = cells.cast(pl.Float64, strict=False)
    wrong = (values.is_null() & column.is_not_null()).to_numpy()
    found: NDArray[np.float64] = values.fill_null(float("nan")).to_numpy().copy()
    wrong |= np.isinf(found)
    if options.task is None:
        finite = found[np.isfinite(found)]
        certain = wrong.sum() <= _FEW * finite.size and bool((finite % 1 != 0).any())
        if (wrong.any() and not certain) or not looks_numeric_target(found):
            return None
    if not options.keep_labels:
        return np.where(wrong, np.nan, found)
    advice = "" if options.task else "; --task classes takes labels for classes"
    bad.keep(~wrong, name, lambda row: f"{column[row]} is not a finite number{advice}")
    if written:
        notes.append(f"{table.path.name}: the numbers in {name!r} are written with {written}.")
    if options.task is None:
        different = np.unique(finite).size
        notes.append(
            f"{table.path.name}: the column {name!r} holds {different} different numbers, so a number is "
            "predicted for each node; --task classes takes them for classes."
        )
    return found


def _read_several(table: Table, names: list[str]) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """0 and 1 [N, L], a row of NaN where all are empty."""
    columns = [table.column(name) for name in names]
    empty = np.stack([column.is_null().to_numpy() for column in columns], axis=1)
    y = np.full(empty.shape, np.nan, dtype=np.float32)
    known = ~empty.all(axis=1)
    for k, (name, column) in enumerate(zip(names, columns, strict=True)):
        missing = known & empty[:, k]
        if missing.any():
            table.fail(int(missing.argmax()), name, "is empty, but other labels of the row are not")
        y[known, k] = numbers(table, column.fill_null("0" if column.dtype == pl.String else 0))[known]
        wrong = known & (y[:, k] != 0) & (y[:, k] != 1)
        if wrong.any():
            row = int(wrong.argmax())
            table.fail(row, name, f"{column[row]} is neither 0 nor 1")
    return y, tuple(name.strip()[len(SEVERAL) :].strip() for name in names)


def _read_classes(
    table: Table, column: pl.Series, bad: BadRows, options: TableOptions, lone_classes: bool, notes: list[str]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Class numbers, -1 where unknown, and the names of the classes."""
    name = column.name
    text = _class_names(table, column)
    if options.unknown is None:
        _forget_minus_one(text, f"{table.path.name}: ", name, notes)
    _tell_case(text, f"{table.path.name}: ", name, notes)
    text[~bad.kept] = ""
    lone: list[str] = []

    def fail(row: int, problem: str) -> None:
        if lone_classes or not options.keep_labels:
            return
        if not options.drops:
            advice = "; --on-bad-rows drop makes its label unknown"
            table.fail(row, name, problem + advice)
        lone.append(str(text[row]))

    y, names = encode_labels(text, fail)
    if lone:
        counts = np.bincount(y[y >= 0], minlength=len(names))
        lost = [each for each, count in zip(names, counts, strict=True) if count == 1]
        text[np.isin(text, lost)] = ""
        notes.append(f"{table.path.name}: seen once in {name!r} and so made unknown: {quoted(lost[:5])}.")
        y, names = encode_labels(text, fail)
    return y, names


def _class_names(table: Table, column: pl.Series) -> NDArray[np.str_]:
    """The class of each row as text, "" where it is empty; whole numbers without a fraction."""
    name = column.name
    if column.dtype.is_float():
        column = column.fill_nan(None)
        whole = column.cast(pl.Int64, strict=False)
        if whole.null_count() > column.null_count() or not (whole == column).all():
            row = int((~(whole == column).fill_null(column.is_null())).arg_max() or 0)
            table.fail(row, name, f"{column[row]} is not the name of a class: text or a whole number is")
        column = whole
    if not (column.dtype.is_integer() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
        table.fail(0, name, f"labels must be text or whole numbers, not {column.dtype}")
    text: NDArray[np.str_] = column.cast(pl.String).fill_null("").to_numpy().astype(np.str_)
    values = {str(value) for value in np.unique(text) if value}
    fractions = {value for value in values if re.match(WHOLE, value)}
    if fractions and all(is_integer(value) for value in values - fractions):
        for value in fractions:
            text[text == value] = value.partition(".")[0]
    return text


def _forget_minus_one(text: NDArray[np.str_], where: str, name: str, notes: list[str]) -> None:
    """Take -1 for unknown, as everywhere in plap, unless -1 and 1 are the two classes."""
    values = {str(value) for value in np.unique(text) if value}
    if "-1" not in values:
        return
    if values == {"-1", "1"}:
        notes.append(f"{where}-1 and 1 in {name!r} are two classes, so -1 is not unknown here.")
        return
    count = int((text == "-1").sum())
    text[text == "-1"] = ""
    nodes = "1 node" if count == 1 else f"{count:,} nodes"
    notes.append(f"{where}-1 in {name!r} ({nodes}) is taken for unknown; --unknown names another mark.")


def _tell_case(text: NDArray[np.str_], where: str, name: str, notes: list[str]) -> None:
    values = [str(value) for value in np.unique(text)]
    folded = Counter(value.casefold() for value in values)
    alike = [value for value in values if folded[value.casefold()] > 1]
    if alike:
        shown = quoted(alike[:5])
        notes.append(f"{where}the classes {shown} in {name!r} differ in case alone, and count as different.")

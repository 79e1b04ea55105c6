"""Rows of a table that cannot be used: the first is refused, or all are dropped, counted and shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from plap.data.tables.table_file import Table
from plap.errors import InputError

_EXAMPLES = 3


class BadRows:
    """Which rows of a table are kept, and what was wrong with the others."""

    def __init__(self, table: Table, *, drop: bool) -> None:
        self._table, self._drop = table, drop
        self.kept: NDArray[np.bool_] = np.ones(table.height, dtype=np.bool_)
        self._examples: list[str] = []

    def keep(self, good: NDArray[np.bool_], column: str, problem: Callable[[int], str]) -> None:
        """Drop the rows that are not ``good``, or refuse the first of them.

        Parameters
        ----------
        good : boolean array [rows]
        column : str
            Where the problem is.
        problem : function of a row
            What is wrong with it.
        """
        wrong = np.flatnonzero(self.kept & ~good)
        for row in wrong[: max(1, _EXAMPLES - len(self._examples))].tolist() if wrong.size else ():
            try:
                self._table.fail(row, column, problem(row))
            except InputError as error:
                if not self._drop:
                    raise
                self._examples.append(str(error).removeprefix(str(self._table.path)).lstrip(", "))
        self.kept &= good

    @property
    def notes(self) -> tuple[str, ...]:
        """How many rows were dropped, and the first of them."""
        count = int((~self.kept).sum())
        if not count:
            return ()
        shown = "; ".join(self._examples[:_EXAMPLES]) + ("; …" if count > _EXAMPLES else "")
        rows = "1 row was" if count == 1 else f"{count:,} rows were"
        return (f"{self._table.path.name}: {rows} dropped ({shown}).",)

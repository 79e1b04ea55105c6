"""Dates to one standardised number and cyclic parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.encoding.number import NumberEncoder
from plap.data.columns.reading.cells import Cells

PARTS = ("month", "weekday", "hour")


@dataclass(frozen=True)
class DateEncoder:
    """The standardised time, and sine and cosine of month, weekday and hour where they vary."""

    time: NumberEncoder
    parts: tuple[str, ...]
    unmarked: ClassVar[str] = "filled with the training median"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]]) -> DateEncoder:
        """Learn from training values, in seconds since 1970."""
        seconds = cells.values[~np.isnan(cells.values)]
        varying = tuple(part for part in PARTS if np.unique(np.floor(_position(seconds, part))).size > 1)
        return cls(NumberEncoder.fit(cells, linear=True), varying)

    @property
    def indicator(self) -> bool:
        """Whether a feature marks missing dates."""
        return self.time.indicator

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature; the mark of missing values is the last."""
        cyclic = [f"{column} {part} {wave}" for part in self.parts for wave in ("sine", "cosine")]
        time = self.time.feature_names(column)
        return time[: self.time.varies] + cyclic + time[self.time.varies :]

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; cyclic parts of missing dates are 0."""
        if self.time.varies or self.time.indicator:
            time = np.empty((out.shape[0], self.time.varies + self.time.indicator), dtype=np.float32)
            self.time.write(cells, time)
            if self.time.varies:
                out[:, 0] = time[:, 0]
            if self.time.indicator:
                out[:, -1] = time[:, -1]
        missing = np.isnan(cells.values)
        seconds = np.where(missing, 0.0, cells.values)
        for k, part in enumerate(self.parts):
            angle = _position(seconds, part) * (2 * np.pi / _PERIODS[part])
            at = int(self.time.varies) + 2 * k
            out[:, at] = np.where(missing, 0.0, np.sin(angle))
            out[:, at + 1] = np.where(missing, 0.0, np.cos(angle))
        return 0

    def describe(self) -> str:
        """Say what became of the dates."""
        if not self.time.varies:
            return self.time.describe()
        cyclic = f", with {' and '.join(self.parts)} as sine and cosine" if self.parts else ""
        return f"standardised time{cyclic}"

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"time": self.time.to_json(), "parts": list(self.parts)}

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> DateEncoder:
        """Return the encoder that ``to_json`` described."""
        return cls(NumberEncoder.from_json(entries.child("time"), tensors), entries.texts("parts", PARTS))


_PERIODS = {"month": 12, "weekday": 7, "hour": 24}


def _position(seconds: NDArray[np.float64], part: str) -> NDArray[np.float64]:
    """Where in its cycle each time is: month 0-11, weekday 0-6 (0 is Monday), hour 0-24 with its fraction."""
    days = np.floor(seconds / 86400)
    if part == "hour":
        hour: NDArray[np.float64] = (seconds - days * 86400) / 3600
        return hour
    if part == "weekday":
        weekday: NDArray[np.float64] = (days + 3) % 7
        return weekday
    months = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return (months % 12).astype(np.float64)

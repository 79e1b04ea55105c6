"""The content of a table's cell as text, the same in every format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from plap.reporting.number_text import number, significant_decimals, with_minus
from plap.reporting.table_content import Agreement, Mark, PublishedValue, ResultCell, TableReport

NOTHING = "–"
OUT_OF_MEMORY = "OOM"
SYMBOLS: dict[Agreement, str] = {"agrees": "≈", "above": "▲", "below": "▼", "unknown": ""}


@dataclass(frozen=True)
class CellText:
    """One cell; what it does not have is an empty text."""

    mean: str
    """Or :data:`NOTHING`, or :data:`OUT_OF_MEMORY`."""
    deviation: str
    ratio: str
    """To the MLP, in a table of times."""
    mark: Mark
    published_mean: str
    published_deviation: str
    published_ratio: str
    published_mark: Mark
    agreement: Agreement
    difference: str

    @property
    def ours(self) -> str:
        """Mean ± standard deviation."""
        return join_deviation(self.mean, self.deviation)

    @property
    def published(self) -> str:
        """Mean ± what was printed after it."""
        return join_deviation(self.published_mean, self.published_deviation)

    @property
    def symbol(self) -> str:
        """One character for the agreement, so that it can be seen without colours."""
        return SYMBOLS[self.agreement]


def cell_text(report: TableReport, cell: ResultCell) -> CellText:
    """Scores with as many decimals as the published ones, times with three significant digits."""
    decimals = _decimals(report, cell)
    published = cell.published or PublishedValue()
    missing = OUT_OF_MEMORY if cell.out_of_memory else NOTHING
    return CellText(
        mean=missing if cell.mean is None else with_minus(f"{cell.mean:.{decimals}f}"),
        deviation="" if cell.deviation is None else f"{cell.deviation:.{decimals}f}",
        ratio=_times(cell.ratio),
        mark=cell.mark,
        published_mean=_printed(published),
        published_deviation="" if published.plus_minus is None else str(published.plus_minus),
        published_ratio=_times(cell.published_ratio),
        published_mark=published.mark,
        agreement=cell.agreement,
        difference="" if cell.difference is None else with_minus(f"{cell.difference:+.{decimals}f}"),
    )


def join_deviation(mean: str, deviation: str) -> str:
    """Both, or the mean alone."""
    return f"{mean} ± {deviation}" if deviation else mean


def interval_text(report: TableReport, cell: ResultCell) -> str:
    """Ends of the 95 % confidence interval."""
    if cell.interval is None:
        return ""
    decimals = _decimals(report, cell)
    low, high = cell.interval
    return with_minus(f"{low:.{decimals}f} to {high:.{decimals}f}")


def config_text(config: Mapping[str, Any] | None) -> str:
    """Hyperparameters on one line.

    Examples
    --------
    >>> config_text({"lr": 0.01, "K": 4})
    'lr 0.01, K 4'
    """
    return ", ".join(f"{name} {number(value)}" for name, value in (config or {}).items())


def searched_text(cell: ResultCell) -> str:
    """How many configurations were tried."""
    if not cell.tried:
        return ""
    return f"{cell.tried} of {cell.grid}" if cell.grid else f"{cell.tried}"


def _decimals(report: TableReport, cell: ResultCell) -> int:
    if report.timed:
        return significant_decimals(cell.mean)
    means = (other.published.mean for other in report.cells if other.published)
    return max((_printed_decimals(mean) for mean in means if mean is not None), default=2)


def _printed_decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _printed(published: PublishedValue) -> str:
    if published.out_of_memory:
        return OUT_OF_MEMORY
    return "" if published.mean is None else with_minus(str(published.mean))


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.{significant_decimals(ratio)}f}×"

"""What stands in a cell, as text: the same in every format."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from plap.experiments.outcome import Agreement, Cell, Mark, TableResult
from plap.experiments.published import PublishedCell
from plap.experiments.rendering.names import with_minus
from plap.report.page import number

NOTHING = "–"
OUT_OF_MEMORY = "OOM"
SYMBOLS: dict[Agreement, str] = {"agrees": "≈", "above": "▲", "below": "▼", "unknown": ""}
_REFERENCE = "mlp"


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
        """Mean ± what the paper printed behind it."""
        return join_deviation(self.published_mean, self.published_deviation)

    @property
    def symbol(self) -> str:
        """One character for the agreement, so that it never takes a colour to see it."""
        return SYMBOLS[self.agreement]


def cell_text(result: TableResult, cell: Cell) -> CellText:
    """Numbers with as many digits as the paper's, times with three that count."""
    digits = _digits(result, cell)
    mean = _missing(cell) if cell.mean is None else f"{cell.mean:.{digits}f}"
    published = cell.published or PublishedCell()
    ratio, published_ratio = ratios(result, cell)
    return CellText(
        mean=with_minus(mean),
        deviation="" if cell.deviation is None else f"{cell.deviation:.{digits}f}",
        ratio=_times(ratio),
        mark=result.mark(cell),
        published_mean=_printed(published),
        published_deviation="" if published.plus_minus is None else str(published.plus_minus),
        published_ratio=_times(published_ratio),
        published_mark="near" if published.underline else "best" if published.bold else "",
        agreement=result.agreement(cell),
        difference="" if cell.difference is None else with_minus(f"{cell.difference:+.{digits}f}"),
    )


def ratios(result: TableResult, cell: Cell) -> tuple[float | None, float | None]:
    """Our time and the published one as multiples of the MLP's on the same dataset."""
    if result.measure != "time" or _REFERENCE not in result.models:
        return None, None
    reference = result.cell(_REFERENCE, cell.dataset)
    return (
        _quotient(cell.mean, reference.mean),
        _quotient(
            cell.published.mean if cell.published else None,
            reference.published.mean if reference.published else None,
        ),
    )


def join_deviation(mean: str, deviation: str) -> str:
    """Both, or the mean alone."""
    return f"{mean} ± {deviation}" if deviation else mean


def interval_text(result: TableResult, cell: Cell) -> str:
    """Ends of the 95 % interval."""
    if cell.interval is None:
        return ""
    digits = _digits(result, cell)
    low, high = cell.interval
    return with_minus(f"{low:.{digits}f} to {high:.{digits}f}")


def config_text(config: Mapping[str, Any] | None) -> str:
    """What was chosen, on one line.

    Examples
    --------
    >>> config_text({"lr": 0.01, "K": 4})
    'lr 0.01, K 4'
    """
    return ", ".join(f"{name} {number(value)}" for name, value in (config or {}).items())


def searched_text(cell: Cell) -> str:
    """How many configurations were tried."""
    if not cell.tried:
        return ""
    return f"{cell.tried} of {cell.grid}" if cell.grid else f"{cell.tried}"


def has_published(result: TableResult) -> bool:
    """Whether there is anything to compare with."""
    return any(cell.published is not None for cell in result.cells)


def is_compared(result: TableResult) -> bool:
    """Whether cells are said to agree with the paper or not."""
    return result.measure != "time" and has_published(result)


def families_shown(result: TableResult) -> tuple[tuple[str, ...], ...]:
    """The families, without models that the result has no row for."""
    present = (tuple(model for model in family if model in result.models) for family in result.families)
    return tuple(family for family in present if family)


def joined(words: Iterable[str]) -> str:
    """Words in a sentence.

    Examples
    --------
    >>> joined(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _digits(result: TableResult, cell: Cell) -> int:
    if result.measure == "time":
        return _digits_of_three(cell.mean)
    means = (other.published.mean for other in result.cells if other.published)
    return max((_decimals(mean) for mean in means if mean is not None), default=2)


def _decimals(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _digits_of_three(value: float | None) -> int:
    if value is None or value <= 0 or not math.isfinite(value):
        return 1
    return min(max(2 - math.floor(math.log10(value)), 0), 3)


def _missing(cell: Cell) -> str:
    return OUT_OF_MEMORY if "out of memory" in (cell.problem or "").lower() else NOTHING


def _printed(published: PublishedCell) -> str:
    if published.out_of_memory:
        return OUT_OF_MEMORY
    return "" if published.mean is None else with_minus(str(published.mean))


def _quotient(value: float | Decimal | None, reference: float | Decimal | None) -> float | None:
    return None if value is None or not reference else float(value) / float(reference)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.{_digits_of_three(ratio)}f}×"

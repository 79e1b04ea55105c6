"""A table as text, the same in every format: what its cells show, and what is said about it in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from plap.reporting.number_text import counted, joined, number, significant_decimals, with_minus
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


def headline(report: TableReport) -> str:
    """The title, without its full stop."""
    return report.title.strip().removesuffix(".")


def unit_title(report: TableReport) -> str:
    """The unit as it begins a sentence."""
    return report.unit[:1].upper() + report.unit[1:]


def summary(report: TableReport) -> str:
    """How many cells have values, and how many of them agree with the published ones."""
    cells = len(report.cells)
    filled = sum(cell.mean is not None for cell in report.cells)
    have = "has a value" if cells == 1 else "have values"
    if filled == cells:
        text = f"{'The only cell' if cells == 1 else f'All {cells} cells'} {have}."
    else:
        text = f"{filled} of {counted(cells, 'cell')} {have}."
    counts = Counter(cell.agreement for cell in report.cells)
    compared = counts["agrees"] + counts["above"] + counts["below"]
    if not compared:
        return text
    agree = "agrees" if counts["agrees"] == 1 else "agree"
    are = "is" if counts["above"] == 1 else "are"
    return (
        f"{text} Of {counted(compared, 'cell')} with a published value, {counts['agrees']} {agree} with it, "
        f"{counts['above']} {are} above it and {counts['below']} below it."
    )


def explanations(
    report: TableReport, best_sign: str = "Bold", near_sign: str = "Underlined bold"
) -> tuple[str, str]:
    """What a cell shows, and what its marks mean."""
    where = "in its family and column" if len(report.families) > 1 else "in its column"
    return (
        _content(report),
        f"{best_sign}: best {where}. {near_sign}: within the 95 % confidence interval of the best mean.",
    )


def agreement_meanings() -> dict[Agreement, str]:
    """What each agreement means."""
    return {
        "agrees": "within two standard deviations (ours and theirs combined) of the published mean",
        "above": "above it by more than that",
        "below": "below it by more than that",
    }


def agreement_sentence() -> str:
    """The same, as one sentence with the symbols."""
    meanings = agreement_meanings().items()
    return "; ".join(f"{SYMBOLS[name]} {meaning}" for name, meaning in meanings) + "."


def differing(report: TableReport) -> tuple[ResultCell, ...]:
    """Cells that do not agree with the published ones, the largest difference first."""
    cells = [cell for cell in report.cells if cell.agreement in ("above", "below")]
    return tuple(sorted(cells, key=lambda cell: -abs(cell.difference or 0.0)))


def causes(report: TableReport) -> tuple[str, ...]:
    """Why cells differ from the published ones: each cause with what is known about it and its cells."""
    cells_of: dict[tuple[str, str], dict[str, list[str]]] = {}
    for cell in report.cells:
        if cell.cause:
            models = cells_of.setdefault((cell.cause, cell.cause_note), {})
            models.setdefault(cell.model, []).append(report.dataset_label(cell.dataset))
    sentences = []
    for (cause, note), models in cells_of.items():
        cells = [f"{report.model_label(model)} on {joined(names)}" for model, names in models.items()]
        known = f" {note}" if note else ""
        sentences.append(f"{cause[:1].upper()}{cause[1:]}: {'; '.join(cells)}.{known}")
    return tuple(sentences)


def problems(report: TableReport) -> tuple[str, ...]:
    """Why values are missing, and which runs diverged; one sentence each."""
    models_of: dict[tuple[str, str], list[str]] = {}
    for cell in report.cells:
        if cell.problem:
            models_of.setdefault((cell.dataset, cell.problem), []).append(cell.model)
    datasets_of: dict[tuple[str, str], list[str]] = {}
    for (dataset, problem), models in models_of.items():
        datasets_of.setdefault((_named(models, report), problem), []).append(report.dataset_label(dataset))
    missing = [
        f"{models} on {joined(datasets)}: {_sentence(problem)}"
        for (models, problem), datasets in datasets_of.items()
    ]
    diverged = [
        f"{report.model_label(cell.model)} on {report.dataset_label(cell.dataset)}: {diverged_text(cell)}."
        for cell in report.cells
        if cell.not_finite
    ]
    return (*missing, *diverged)


def diverged_text(cell: ResultCell) -> str:
    """How many runs ended without a finite result."""
    return f"{counted(cell.not_finite, 'run')} ended in NaN or infinity (including the search)"


def _content(report: TableReport) -> str:
    published = ", and the published values" if report.has_published else ""
    deviation = "mean ± sample standard deviation over runs"
    if not report.timed:
        return f"{unit_title(report)}: {deviation}{published}."
    machines = " Times on two machines cannot be compared; their ratios to the MLP can." if published else ""
    return f"Milliseconds per epoch: {deviation}, multiple of the MLP's time{published}.{machines}"


def _named(models: Sequence[str], report: TableReport) -> str:
    everything = len(models) == len(report.models) > 1
    return "All models" if everything else joined([report.model_label(model) for model in models])


def _sentence(text: str) -> str:
    return f"{text.strip().removesuffix('.')}."

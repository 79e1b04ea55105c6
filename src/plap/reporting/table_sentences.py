"""What a table's report says in sentences: what was found, what the signs mean, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plap.reporting.number_text import counted, joined
from plap.reporting.table_cells import SYMBOLS
from plap.reporting.table_content import Agreement, ResultCell, TableReport


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
    are = "is" if counts["above"] == 1 else "are"
    return (
        f"{text} Of {counted(compared, 'cell')} with a published value, {counts['agrees']} agree with it, "
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

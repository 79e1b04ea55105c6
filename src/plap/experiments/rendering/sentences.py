"""What a result says in sentences: what was found, what the signs mean, what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from plap.experiments.outcome import Agreement, Cell, TableResult
from plap.experiments.rendering.names import dataset_name
from plap.experiments.rendering.texts import SYMBOLS, families_shown, has_published, joined


def headline(result: TableResult) -> str:
    """The title, without its full stop."""
    return result.title.strip().removesuffix(".")


def unit_title(result: TableResult) -> str:
    """The unit as it begins a sentence."""
    return result.unit[:1].upper() + result.unit[1:]


def summary(result: TableResult) -> str:
    """How much is there, and how much of it agrees with the paper."""
    cells = len(result.cells)
    filled = sum(cell.mean is not None for cell in result.cells)
    text = (
        f"{_counted(cells, 'cell')}, all with values."
        if filled == cells
        else f"{filled} of {cells} cells have values."
    )
    counts = Counter(result.agreement(cell) for cell in result.cells)
    compared = counts["agrees"] + counts["above"] + counts["below"]
    if not compared:
        return text
    return (
        f"{text} Of {compared} that have a published number {counts['agrees']} agree with it, "
        f"{counts['above']} {_are(counts['above'])} above it and {counts['below']} below."
    )


def explanations(
    result: TableResult, best_sign: str = "Bold", near_sign: str = "Underlined bold"
) -> tuple[str, str]:
    """What stands in a cell, and what its marks mean."""
    best = (
        "the best of its family and column" if len(families_shown(result)) > 1 else "the best of its column"
    )
    return (
        _content(result),
        f"{best_sign}: {best}. {near_sign}: inside the 95 % interval of the best's mean.",
    )


def agreement_meanings() -> dict[Agreement, str]:
    """What each agreement means."""
    return {
        "agrees": "within two standard deviations of a run (ours and theirs together) of the published mean",
        "above": "above it by more",
        "below": "below it by more",
    }


def agreement_sentence() -> str:
    """The same, as one sentence with the symbols."""
    meanings = agreement_meanings().items()
    return "; ".join(f"{SYMBOLS[name]} {meaning}" for name, meaning in meanings) + "."


def differing(result: TableResult) -> tuple[Cell, ...]:
    """Cells that do not agree with the paper, the farthest first."""
    cells = [cell for cell in result.cells if result.agreement(cell) in ("above", "below")]
    return tuple(sorted(cells, key=lambda cell: -abs(cell.difference or 0.0)))


def problems(result: TableResult) -> tuple[str, ...]:
    """Why values are missing, and which runs broke down, a sentence each."""
    models_of: dict[tuple[str, str], list[str]] = {}
    for cell in result.cells:
        if cell.problem:
            models_of.setdefault((cell.dataset, cell.problem), []).append(cell.model)
    datasets_of: dict[tuple[str, str], list[str]] = {}
    for (dataset, problem), models in models_of.items():
        name = dataset_name(dataset, result.protocol)
        datasets_of.setdefault((_models(models, result), problem), []).append(name)
    missing = [
        f"{models} on {joined(datasets)}: {_sentence(problem)}"
        for (models, problem), datasets in datasets_of.items()
    ]
    broken = [
        f"{result.label(cell.model)} on {dataset_name(cell.dataset, result.protocol)}: "
        f"{_counted(cell.not_finite, 'run')} ended in NaN or infinity, those of the search counted."
        for cell in result.cells
        if cell.not_finite
    ]
    return (*missing, *broken)


def _content(result: TableResult) -> str:
    published = ", and the published numbers" if has_published(result) else ""
    deviation = "mean ± standard deviation of the runs (n − 1)"
    if result.measure != "time":
        return f"{unit_title(result)}: {deviation}{published}."
    machines = " Times of two machines cannot be compared; their ratios to the MLP can." if published else ""
    return f"Milliseconds an epoch: {deviation}, how many times the MLP's that is{published}.{machines}"


def _models(models: Sequence[str], result: TableResult) -> str:
    return "All models" if len(models) == len(result.models) > 1 else joined(map(result.label, models))


def _sentence(text: str) -> str:
    return f"{text.strip().removesuffix('.')}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"

"""A line a cell, for whoever computes further: plain names, all digits."""

from __future__ import annotations

import csv
import io
from statistics import fmean
from typing import Any

from plap.experiments.outcome import Cell, TableResult
from plap.experiments.rendering.texts import ratios


def csv_text(result: TableResult) -> str:
    """RFC 4180, with a head line.

    What the search chose has a column for each of its fields, named ``config_lr`` and so on. Empty is what
    a cell does not have.
    """
    fields = list(dict.fromkeys(name for cell in result.cells for name in cell.config or {}))
    rows = [_row(result, cell, fields) for cell in result.cells]
    stream = io.StringIO()
    writer = csv.DictWriter(stream, fieldnames=list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def _row(result: TableResult, cell: Cell, fields: list[str]) -> dict[str, Any]:
    low, high = cell.interval or (None, None)
    published = cell.published
    ratio, published_ratio = ratios(result, cell)
    compared, timed = result.agreement(cell), result.measure == "time"
    row: dict[str, Any] = {
        "model": cell.model,
        "dataset": cell.dataset,
        "runs": len(cell.values),
        "mean": cell.mean,
        "std": cell.deviation,
        "low": low,
        "high": high,
        "mark": result.mark(cell),
        "published_mean": published and published.mean,
        "published_plus_minus": published and published.plus_minus,
        "published_out_of_memory": "yes" if published and published.out_of_memory else "",
        "difference": None if timed else cell.difference,
        "agreement": "" if compared == "unknown" else compared,
    }
    if timed:
        row |= {
            "ratio_to_mlp": ratio,
            "published_ratio_to_mlp": published_ratio,
            "run_seconds": fmean(cell.totals) if cell.totals else None,
            "published_run_seconds": published and published.total,
        }
    row |= {f"config_{name}": (cell.config or {}).get(name) for name in fields}
    return row | {
        "tried": cell.tried,
        "grid": cell.grid,
        "seconds": cell.seconds,
        "not_finite": cell.not_finite,
        "problem": cell.problem,
    }

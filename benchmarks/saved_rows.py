"""Rows that are measured one by one and kept in a file, so that a long measurement can be interrupted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def complete(path: Path, jobs: Iterable[Row], measure: Callable[..., Row]) -> list[Row]:
    """All rows of the file, after those of ``jobs`` that it lacked were measured and added.

    A job is the part of a row that says what it is of, and the keywords of ``measure``, which returns the
    rest. The file is written after every row.
    """
    rows: list[Row] = json.loads(path.read_text()) if path.exists() else []
    for job in jobs:
        if not any(job.items() <= row.items() for row in rows):
            rows.append(job | measure(**job))
            path.write_text(json.dumps(rows, indent=1) + "\n")
    return rows

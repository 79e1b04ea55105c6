"""Rows that are measured one by one and kept in a file, so that a long measurement can be interrupted."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterable, Sequence
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


def usual_options(
    doc: str | None, datasets: Sequence[str], splits: int, out: str, flags: Sequence[str] = ()
) -> argparse.Namespace:
    """What was said on the command line: --datasets, --splits, --root, --json-out, and further flags."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--datasets", nargs="+", default=list(datasets))
    parser.add_argument("--splits", type=int, default=splits)
    parser.add_argument("--root", default=os.environ.get("PLAP_DATA"))
    parser.add_argument("--json-out", type=Path, default=Path("benchmarks") / out)
    for flag in flags:
        parser.add_argument(f"--{flag}", action="store_true")
    return parser.parse_args()

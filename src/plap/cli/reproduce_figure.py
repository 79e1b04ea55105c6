"""``plap reproduce`` for a picture: PNG, SVG, and the numbers in it as CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from plap.errors import InputError


def draw_figure(
    name: str,
    out: Path,
    only: Sequence[str],
    *,
    seeds: int | None,
    epochs: int | None,
    quick: bool,
    root: Path | None,
    as_json: bool,
) -> None:
    """Compute and write a picture, and print where it is."""
    from plap.reporting.figures.writing import write_figure  # noqa: PLC0415

    datasets = _datasets(only)
    options = {"seeds": seeds, "epochs": epochs, "root": root}
    given = {key: value for key, value in options.items() if value is not None}
    written = write_figure(name, out, datasets=datasets, quick=quick, **given)
    if as_json:
        print(json.dumps({"figure": name, "files": [str(path) for path in written]}, indent=1))
    else:
        print("\n".join(str(path) for path in written))


def _datasets(only: Sequence[str]) -> tuple[str, ...]:
    from plap.experiments.plan import Selection  # noqa: PLC0415

    wanted = Selection.parse(only).wanted
    if "model" in wanted:
        raise InputError("--only: a picture has its own models; it takes dataset=NAME only")
    return wanted.get("dataset", ())

"""``plap reproduce`` for a picture: PNG, SVG, and the numbers in it as CSV."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from plap.errors import InputError

FIGURES = {
    "entropy": "How concentrated the learned weights are, pGNN and GAT against the uniform case",
    "training-curves": "Loss and accuracy by epoch for p = 1, on all sets",
    "embeddings": "Nodes in the plane (t-SNE) for four p and GCN",
    "gradient-example": "Graph gradient and divergence on a tiny graph",
    "risk-bound": "The terms of Theorem 4 on a regular graph",
    "edge-trust": "Random edges found by edge trust and by three simple rivals",
    "filters": "What a few steps do to each frequency, for four p, GCN and APPNP",
}
"""Names on the command line; all but ``filters`` are those of :mod:`plap.insight.figures`."""


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
    """Compute and write a picture, and say where it is."""
    datasets = _datasets(only)
    if name == "filters":
        written = _draw_filters(out, datasets, root)
    else:
        from plap.insight.figures import write_figure  # noqa: PLC0415

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


def _draw_filters(out: Path, datasets: Sequence[str], root: Path | None) -> list[Path]:
    """Of the features of each graph; Cora and Chameleon where none is named."""
    from plap.data.resolve import open_graph  # noqa: PLC0415
    from plap.spectral import draw_responses, response_curves  # noqa: PLC0415

    written: list[Path] = []
    for dataset in datasets or ("cora", "chameleon"):
        data = open_graph(dataset, root=root)
        curves = response_curves(data.x.to_dense(), data.graph)
        place = out / f"filters-{data.name.replace(':', '-').replace('/', '-')}"
        written += draw_responses(curves, place, title=data.name)
    return written

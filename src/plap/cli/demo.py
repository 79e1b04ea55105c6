"""``plap demo``: the whole of it on a made graph."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from plap.cli.fit import check_place, run
from plap.cli.progress import ends_early
from plap.cli.shared import JsonOption, OutOption, QuietOption
from plap.data import csbm, perturb_edges, split
from plap.fitting import FitSettings
from plap.fitting.settings import MODEL


@ends_early()
def demo(out: OutOption = Path("plap-demo"), as_json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Fit a noisy heterophilic graph and compare pGNN with baselines."""
    check_place(out)
    clean = csbm(phi=-0.75, n=2000, f=200, seed=7)
    noisy = perturb_edges(clean.graph, 0.15, seed=7)
    notes = (*clean.provenance.notes, "15 % of the edges were replaced by random ones.")
    data = replace(
        clean, graph=noisy.graph, name=f"{clean.name} with random edges",
        provenance=replace(clean.provenance, notes=notes),
    )  # fmt: skip
    settings = FitSettings(  # a short search: no edge lies on purpose here, so powers do
        models=(MODEL,), hidden=16, fixed={"penalty": "power"}, budget=3600, seeds=4, max_epochs=300,
        patience=100, rivals=("mlp", "gcn", "labels"),
    )  # fmt: skip
    run(data, split(data, seed=7), settings, out, as_json=as_json, quiet=quiet)

"""``plap export``: a fitted model as one file that runs without plap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plap.cli.shared import JsonOption, check_writable
from plap.fitting.export import export_model
from plap.reporting.number_text import counted


def export(
    model: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Program to write, .pt2 or .onnx.")],
    as_json: JsonOption = False,
) -> None:
    """Write a fitted model as a program that runs without plap, by torch.export or in ONNX."""
    check_writable(file, "FILE")
    done = export_model(model, file)
    if as_json:
        print(json.dumps(done.to_json(), indent=1))
        return
    weighted = ""
    if done.relations:
        factors = ", ".join(f"{name} {factor:.3g}" for name, factor in done.relations.items())
        weighted = f" Multiply the weights of each relation's edges by its factor first ({factors})."
    gives = f"probabilities of {', '.join(done.outputs)}" if done.outputs else "a number"
    print(
        f"Wrote {file} ({counted(done.members, 'member')}). It takes x [nodes, {done.features}], edge_index "
        f"[2, entries] with both directions of every edge, and edge_weight [entries], and gives {gives} for "
        f"each node.{weighted} Largest difference from plap on a random graph: {done.difference:.1g}."
    )

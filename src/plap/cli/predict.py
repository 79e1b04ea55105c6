"""``plap predict``: label the nodes of a graph with a model that was fitted before."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Annotated

import typer

from plap.cli.shared import GraphArgument, NodesOption, RootOption, check_writable, write_atomically
from plap.data.dataset import GraphData
from plap.data.resolve import open_graph
from plap.errors import InputError
from plap.fitting.artifacts import Predictions, SavedModel, load_model
from plap.fitting.prediction import agreement, predict_nodes
from plap.reporting.number_text import shown


def predict(
    model: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    graph: GraphArgument,
    nodes: NodesOption = None,
    root: RootOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the predictions, .csv or .parquet.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Label the nodes of a graph with a model that plap fit found; prints CSV if no file is named."""
    if out is not None:
        _check_suffix(out)
        check_writable(out, "--out")
    file = load_model(model)
    data = open_graph(graph, nodes=nodes, root=root)
    table = predict_nodes(file, data, device=device)
    summary = _summary(file, data, table)
    if out is not None:
        write_atomically(out, _encoded(table, out.suffix), "--out")
    if as_json:
        print(json.dumps(summary, indent=1))
    elif out is None:
        sys.stdout.write(_encoded(table, ".csv").decode())
    else:
        print(" ".join(str(value) for value in (summary["sentence"], f"They are in {out}.")))


def _check_suffix(out: Path) -> None:
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out: {out} must end in .csv or .parquet")


def _summary(file: SavedModel, data: GraphData, table: Predictions) -> dict[str, object]:
    """How many nodes were labelled and, where the graph has labels itself, how far these agree."""
    numbers = agreement(table, data)
    count, metric = data.graph.num_nodes, table.task.metric
    sentence = f"Labelled {count} nodes."
    if metric.name in numbers:
        value = shown(numbers[metric.name], metric.share)
        sentence += f" On {numbers['known']} nodes with known labels {metric.label} is {value}."
    elif "right" in numbers:
        share = numbers["right"] / numbers["known"]
        sentence += f" Of {numbers['known']} known labels {numbers['right']} agree ({share:.1%})."
    if numbers and data.graph.digest == file.graph_digest:
        numbers["same_graph"] = True
        sentence += " The model was fitted on this graph, so that says little."
    return {"nodes": count, **numbers, "sentence": sentence}


def _encoded(table: Predictions, suffix: str) -> bytes:

    stream = BytesIO()
    (table.write_csv if suffix == ".csv" else table.write_parquet)(stream)
    return stream.getvalue()

"""``plap predict``: label the nodes of a graph with a model that was fitted before."""

from __future__ import annotations

import json
import sys
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import typer

from plap.cli.shared import (
    BadRowsOption,
    GraphArgument,
    IdOption,
    LabelOption,
    NodesOption,
    RootOption,
    SourceOption,
    TargetOption,
    UnknownOption,
    WeightOption,
    check_writable,
    write_atomically,
)
from plap.data.dataset import GraphData
from plap.data.resolve import open_graph
from plap.data.tables.options import TableOptions
from plap.errors import InputError
from plap.fitting.artifacts import Predictions, SavedModel, load_model
from plap.fitting.fitted_graph import fitted_nodes
from plap.fitting.prediction import agreement, as_fitted, like, predict_nodes, with_roles
from plap.reporting.number_text import counted, shown


def predict(
    model: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    graph: GraphArgument,
    nodes: NodesOption = None,
    root: RootOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the predictions (.csv or .parquet).")
    ] = None,
    node_id: IdOption = None,
    label: LabelOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    unknown: UnknownOption = None,
    on_bad_rows: BadRowsOption = None,
    only_new: Annotated[
        bool, typer.Option("--only-new", help="Write only nodes that the model was not fitted on.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda, cuda:N or mps.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict the labels of a graph's nodes with a fitted model; prints CSV unless --out names a file."""
    if out is not None:
        _check_suffix(out)
        check_writable(out, "--out")
    file = load_model(model)
    tables = TableOptions(
        id=node_id, label=label, source=source, target=target, weight=weight, unknown=unknown,
        on_bad_rows=on_bad_rows,  # type: ignore[arg-type]
    )  # fmt: skip
    data = as_fitted(file, open_graph(graph, like(file, tables), nodes=nodes, root=root))
    table = with_roles(predict_nodes(file, data, device=device), fitted_nodes(model))
    summary = _summary(file, data, table, out, only_new=only_new)
    if only_new:
        table = table.only_new()
    if out is not None:
        write_atomically(out, _encoded(table, out.suffix), "--out")
    if as_json:
        print(json.dumps(summary, indent=1))
        return
    for sentence in summary["notes"]:
        print(f"plap: {sentence}", file=sys.stderr)
    if out is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(_encoded(table, ".csv"))
    else:
        print(summary["sentence"])


def _check_suffix(out: Path) -> None:
    if out.suffix not in (".csv", ".parquet"):
        raise InputError(f"--out: {out} must end in .csv or .parquet")


def _summary(
    file: SavedModel, data: GraphData, table: Predictions, out: Path | None = None, *, only_new: bool = False
) -> dict[str, Any]:
    """How many nodes were predicted, how far their labels agree where they have any, and what drifted."""
    numbers = agreement(table, data, only_new=only_new)
    metric, new = table.task.metric, None if table.new is None else int(table.new.sum())
    count = new if only_new and new is not None else data.graph.num_nodes
    sentence = f"Predicted {counted(count, 'node')}"
    if only_new:
        sentence += " that the model was not fitted on"
    elif new:
        sentence += f", {new} of them new"
    sentence += "." if out is None else f" (written to {out})."
    known = numbers.get("known", 0)
    beside = " that the model was not trained with" if "seen" in numbers else ""
    if metric.name in numbers and numbers[metric.name] is None:
        sentence += f" On {counted(known, 'node')} with a known label{beside} {metric.label} has no value."
    elif metric.name in numbers:
        value = shown(numbers[metric.name], metric.share)
        sentence += f" On {counted(known, 'node')} with a known label{beside} {metric.label} is {value}."
    elif "right" in numbers:
        share = numbers["right"] / known
        agree = "agrees" if numbers["right"] == 1 else "agree"
        sentence += f" Of {counted(known, 'known label')}{beside} {numbers['right']} {agree} ({share:.1%})."
    if "only_seen" in numbers:
        sentence += " The model was trained with these labels, so this score is optimistic."
    notes = list(table.notes)
    if "foreign" in numbers:
        labels = "1 label is" if numbers["foreign"] == 1 else f"{numbers['foreign']} labels are"
        notes.append(f"{labels} not among the model's classes and not scored.")
    return {
        "nodes": count,
        "new": new,
        "same_graph": data.graph.digest == file.graph_digest,
        **numbers,
        "sentence": sentence,
        "notes": notes,
        "drift": table.drift,
    }


def _encoded(table: Predictions, suffix: str) -> bytes:
    stream = BytesIO()
    (table.write_csv if suffix == ".csv" else table.write_parquet)(stream)
    return stream.getvalue()

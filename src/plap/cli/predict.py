"""``plap predict``: label the nodes of a graph with a model that was fitted before."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import torch
import typer

from plap.cli.inspect import GraphArgument, NodesOption, RootOption
from plap.errors import InputError

if TYPE_CHECKING:
    from plap.artifacts import Predictions, SavedModel
    from plap.data.dataset import GraphData


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
    """Label the nodes of a graph, also one that the model never saw; prints CSV if no file is named."""
    from plap.artifacts import load_model  # noqa: PLC0415
    from plap.cli.output import check_writable, write_atomically  # noqa: PLC0415
    from plap.data.resolve import open_graph  # noqa: PLC0415

    if out is not None:
        _check_suffix(out)
        check_writable(out, "--out")
    file = load_model(model)
    data = open_graph(graph, nodes=nodes, root=root)
    file.check_features(data.x.shape[1], data.feature_names)
    table = _predictions(file, data, device)
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


def _predictions(file: SavedModel, data: GraphData, device: str) -> Predictions:
    from plap.artifacts import Predictions  # noqa: PLC0415
    from plap.fitting.models import member_probabilities  # noqa: PLC0415
    from plap.training import RunConfig  # noqa: PLC0415

    config = RunConfig.from_dict(dict(file.config))
    if set(config.to_dict()) != set(file.config):
        raise InputError(f"{file.path}: model.json does not have the whole configuration")
    probabilities = member_probabilities(config, file.states, data.graph, data.x, file.task, device=device)
    known = file.task.recoded(data.y, data.task)
    return Predictions(
        data.node_ids,
        file.task,
        probabilities.numpy(),
        ["unlabelled"] * data.graph.num_nodes,
        None if known is None else known.numpy(),
    )


def _summary(file: SavedModel, data: GraphData, table: Predictions) -> dict[str, object]:
    """How many, and where the graph has labels how far these agree."""
    numbers, sentence = _agreement(data, table)
    if numbers and data.graph.digest == file.graph_digest:
        numbers["same_graph"] = True
        sentence += " The model was fitted on this graph, so that says little."
    count = data.graph.num_nodes
    return {"nodes": count, **numbers, "sentence": f"Labelled {count} nodes.{sentence}"}


def _agreement(data: GraphData, table: Predictions) -> tuple[dict[str, object], str]:
    """How far predictions agree with the graph's own labels, as numbers and a sentence; nothing if none."""
    known, count, task = data.known, int(data.known.sum()), table.task
    if table.known is None or not count:
        return {}, ""
    truth, said = (torch.from_numpy(values)[known] for values in (table.known, table.probabilities))
    right = task.correct(truth, said)
    if right is None:
        score = task.metric.function(truth, task.decode(said))
        sentence = f" On {count} nodes with known labels {task.metric.label} is {score:.1%}."
        return {"known": count, task.metric.name: score}, sentence
    agree = int(right.sum())
    sentence = f" Of {count} known labels {agree} agree ({agree / count:.1%})."
    return {"known": count, "right": agree}, sentence


def _encoded(table: Predictions, suffix: str) -> bytes:
    from io import BytesIO  # noqa: PLC0415

    stream = BytesIO()
    (table.write_csv if suffix == ".csv" else table.write_parquet)(stream)
    return stream.getvalue()

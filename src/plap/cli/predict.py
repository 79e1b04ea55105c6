"""``plap predict``: label the nodes of a graph with a model that was fitted before."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from plap.cli.inspect import GraphArgument, NodesOption, RootOption
from plap.errors import InputError

if TYPE_CHECKING:
    from plap.artifacts import ModelFile, Predictions
    from plap.data.graph_data import GraphData


def predict(
    model: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    graph: GraphArgument,
    nodes: NodesOption = None,
    root: RootOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File for the predictions, .csv or .parquet.")
    ] = None,
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
    table = _predictions(file, data)
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


def _predictions(file: ModelFile, data: GraphData) -> Predictions:
    from plap.artifacts import Predictions  # noqa: PLC0415
    from plap.fitting.models import member_probabilities  # noqa: PLC0415
    from plap.training import RunConfig  # noqa: PLC0415

    config = RunConfig.from_dict(dict(file.config))
    if set(config.to_dict()) != set(file.config):
        raise InputError(f"{file.path}: model.json does not have the whole configuration")
    width = len(file.classes)
    probabilities = member_probabilities(
        config, file.states, data.graph, data.x, width, multilabel=file.multilabel
    )
    ids = range(data.graph.num_nodes) if data.node_ids is None else data.node_ids
    known = (
        None if file.multilabel or data.y.ndim == 2 else _known(data, [str(name) for name in file.classes])
    )
    return Predictions(
        ids,
        file.classes,
        probabilities.numpy(),
        ["unlabelled"] * data.graph.num_nodes,
        known,
        multilabel=file.multilabel,
    )


def _known(data: GraphData, classes: list[str]) -> NDArray[np.int64]:
    """The graph's own labels as numbers of the model's classes; −1 where there is none, or none of these."""
    from plap.fitting.outcome import class_names  # noqa: PLC0415

    number = [classes.index(name) if name in classes else -1 for name in class_names(data)]
    return np.array([number[k] if k >= 0 else -1 for k in data.y.tolist()], dtype=np.int64)


def _summary(file: ModelFile, data: GraphData, table: Predictions) -> dict[str, object]:
    """How many, and where the graph has labels how many of them were right."""
    from plap.fitting.outcome import class_names  # noqa: PLC0415

    result: dict[str, object] = {"nodes": data.graph.num_nodes}
    sentence = f"Labelled {data.graph.num_nodes} nodes."
    if data.y.ndim == 1 and bool((data.y >= 0).any()) and not file.multilabel:
        names = class_names(data)
        known = [
            (names[int(k)], said) for k, said in zip(data.y, table.predicted, strict=True) if int(k) >= 0
        ]
        right = sum(name == said for name, said in known)
        result |= {"known": len(known), "right": right}
        sentence += f" Of {len(known)} known labels {right} agree ({right / len(known):.1%})."
        if data.graph.digest == file.graph_digest:
            result["same_graph"] = True
            sentence += " The model was fitted on this graph, so that says little."
    return result | {"sentence": sentence}


def _encoded(table: Predictions, suffix: str) -> bytes:
    from io import BytesIO  # noqa: PLC0415

    stream = BytesIO()
    (table.write_csv if suffix == ".csv" else table.write_parquet)(stream)
    return stream.getvalue()

"""``plap inspect``: what a graph is like and whether its edges can help, or what a fitted model learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from plap.cli.inspect_model import explain_prediction, inspect_model, is_model
from plap.cli.shared import (
    BadRowsOption,
    CategoricalOption,
    IdOption,
    IgnoreOption,
    JsonOption,
    LabelOption,
    NodesOption,
    RawOption,
    RootOption,
    SourceOption,
    TargetOption,
    TaskOption,
    UnknownOption,
    WeightOption,
    check_writable,
    write_atomically,
)
from plap.data.measures import inspect_graph
from plap.data.resolve import open_graph
from plap.data.tables.options import TableOptions
from plap.errors import InputError
from plap.reporting.terminal import show_graph


def inspect(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|OUT",
            help="A graph (a folder with tables of edges and nodes, an .npz file, a table of edges, or a "
            "benchmark), or a folder that plap fit wrote.",
        ),
    ],
    nodes: NodesOption = None,
    root: RootOption = None,
    node_id: IdOption = None,
    label: LabelOption = None,
    source: SourceOption = None,
    target: TargetOption = None,
    weight: WeightOption = None,
    ignore: IgnoreOption = None,
    categorical: CategoricalOption = None,
    raw_features: RawOption = False,
    unknown: UnknownOption = None,
    task: TaskOption = None,
    on_bad_rows: BadRowsOption = "error",
    as_json: JsonOption = False,
    png: Annotated[Path | None, typer.Option(help="Draw the distributions into this PNG file.")] = None,
    of: Annotated[
        str | None,
        typer.Option("--graph", help="With OUT: the graph, where its name alone does not lead to it."),
    ] = None,
    edges_out: Annotated[
        Path | None,
        typer.Option(help="With OUT: file for the edges, least trusted first (.csv or .parquet)."),
    ] = None,
    nodes_out: Annotated[
        Path | None,
        typer.Option(help="With OUT: file for how neighbours change each prediction (.csv or .parquet)."),
    ] = None,
    node: Annotated[
        str | None, typer.Option(help="With OUT: explain the prediction for the node with this id.")
    ] = None,
) -> None:
    """Describe a graph and say whether its edges can help, or describe what a fitted model learned."""
    if png is not None:
        check_writable(png, "--png")
    if is_model(Path(graph)) and node is not None:
        explain_prediction(Path(graph), node, of, nodes=nodes, root=root, as_json=as_json)
        return
    if is_model(Path(graph)):
        inspect_model(
            Path(graph), of, nodes=nodes, root=root, as_json=as_json, png=png, edges_out=edges_out,
            nodes_out=nodes_out,
        )  # fmt: skip
        return
    for flag, value in (
        ("--graph", of),
        ("--edges-out", edges_out),
        ("--nodes-out", nodes_out),
        ("--node", node),
    ):
        if value is not None:
            raise InputError(f"{flag} goes with a folder that plap fit wrote, and {graph} is none")
    tables = TableOptions(
        id=node_id, label=label, source=source, target=target, weight=weight, ignore=ignore or (),
        categorical=categorical or (), raw_features=raw_features, unknown=unknown,
        task=task, on_bad_rows=on_bad_rows,  # type: ignore[arg-type]
    )  # fmt: skip
    found = inspect_graph(open_graph(graph, tables, nodes=nodes, root=root))
    if png is not None:
        from plap.reporting.inspection_pictures import graph_picture  # noqa: PLC0415

        write_atomically(png, graph_picture(found), "--png")
    if as_json:
        print(json.dumps(found.to_json(), indent=2, allow_nan=False))
        return
    show_graph(found)

"""``plap inspect``: what a graph is like and whether its edges can help, or what a fitted model learned."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any

import polars
import typer

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
from plap.data.dataset import GraphData
from plap.data.measures import inspect_graph
from plap.data.resolve import open_graph
from plap.data.tables.options import TableOptions
from plap.errors import InputError
from plap.fitting.artifacts import SavedModel, load_model
from plap.fitting.fitted_graph import check_one_class, in_role, open_fitted
from plap.fitting.node_stories import Storyteller
from plap.fitting.prediction import member_configs
from plap.insight import load_members
from plap.insight.learned import Learned, what_was_learned
from plap.models import find_model
from plap.reporting.terminal import show_graph, show_learned, show_story
from plap.training import RunConfig


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
    on_bad_rows: BadRowsOption = None,
    as_json: JsonOption = False,
    png: Annotated[Path | None, typer.Option(help="Draw the distributions into this PNG file.")] = None,
    of: Annotated[
        str | None,
        typer.Option(
            "--graph", help="With OUT: the graph the model was fitted on, if it cannot be found by name."
        ),
    ] = None,
    edges_out: Annotated[
        Path | None,
        typer.Option(help="With OUT: file for the edges, least trusted first (.csv or .parquet)."),
    ] = None,
    nodes_out: Annotated[
        Path | None,
        typer.Option(
            help="With OUT: file for the effect of neighbours on each prediction (.csv or .parquet)."
        ),
    ] = None,
    node: Annotated[
        str | None, typer.Option(help="With OUT: explain the prediction for the node with this id.")
    ] = None,
) -> None:
    """Describe a graph and say whether its edges can help, or describe what a fitted model learned."""
    if png is not None:
        check_writable(png, "--png")
    of_a_model = {"--graph": of, "--edges-out": edges_out, "--nodes-out": nodes_out, "--node": node}
    of_tables = {
        "--id": node_id, "--label": label, "--source": source, "--target": target, "--weight": weight,
        "--ignore": ignore, "--categorical": categorical, "--raw-features": raw_features or None,
        "--unknown": unknown, "--task": task, "--on-bad-rows": on_bad_rows,
    }  # fmt: skip
    if is_model(Path(graph)):
        _refuse(of_tables, f"goes with a graph; {graph} is a fit, which reads tables as it did before")
        if node is not None:
            others = {"--png": png, "--edges-out": edges_out, "--nodes-out": nodes_out}
            _refuse(others, "does not go with --node")
            explain_prediction(Path(graph), node, of, nodes=nodes, root=root, as_json=as_json)
            return
        inspect_model(
            Path(graph), of, nodes=nodes, root=root, as_json=as_json, png=png, edges_out=edges_out,
            nodes_out=nodes_out,
        )  # fmt: skip
        return
    _refuse(of_a_model, f"goes with a folder that plap fit wrote, but {graph} is not one")
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


def _refuse(options: dict[str, Any], why: str) -> None:
    for flag, value in options.items():
        if value is not None:
            raise InputError(f"{flag} {why}")


_SHOWN = ("model", "p", "penalty", "gamma", "unit", "mu", "K", "hidden")

_ROWS = 10


def is_model(path: Path) -> bool:
    """Whether this is a folder that ``plap fit`` wrote."""
    return (path / "model.json").is_file()


def inspect_model(
    out: Path,
    graph: str | None,
    *,
    nodes: Path | None,
    root: Path | None,
    as_json: bool,
    png: Path | None,
    edges_out: Path | None,
    nodes_out: Path | None,
) -> None:
    """Say what a fitted model learned; write its edges, ranked by trust, and its nodes."""
    tables = {"--edges-out": edges_out, "--nodes-out": nodes_out}
    for flag, path in tables.items():
        if path is not None:
            check_table(path, flag)
    file = load_model(out)
    check_one_class(file, "inspected")
    data = open_fitted(out, file, graph, nodes=nodes, root=root)
    learned = _learned(out, file, data)
    for (flag, path), table in zip(tables.items(), (learned.edges, learned.nodes), strict=True):
        if path is not None:
            write_atomically(path, _encoded(table(), path.suffix), flag)
    if png is not None:
        from plap.reporting.inspection_pictures import learned_picture  # noqa: PLC0415

        write_atomically(png, learned_picture(learned), "--png")
    if as_json:
        doubted = learned.edges().head(_ROWS).fill_nan(None).to_dicts()
        print(json.dumps(_facts(file, data) | learned.summary() | {"least_trusted": doubted}, indent=2))
    else:
        show_learned(learned, _facts(file, data))


def explain_prediction(
    out: Path, node: str, graph: str | None, *, nodes: Path | None, root: Path | None, as_json: bool
) -> None:
    """Say how the prediction for a node came about."""
    file = load_model(out)
    data = open_fitted(out, file, graph, nodes=nodes, root=root)
    story = Storyteller.of_model(file, data).story_of(node)
    if as_json:
        print(json.dumps(asdict(story), indent=2, ensure_ascii=False))
    else:
        show_story(story, share=not file.task.numeric)


def check_table(path: Path, flag: str) -> None:
    """Refuse a table that could not be written."""
    if path.suffix not in (".csv", ".parquet"):
        raise InputError(f"{flag}: {path} must end in .csv or .parquet")
    check_writable(path, flag)


def _learned(out: Path, file: SavedModel, data: GraphData) -> Learned:
    configs = member_configs(file)
    classes = [str(name) for name in file.classes]
    members = load_members(configs, file.states, data.x.shape[1], len(classes))
    known = file.task.recoded(data.y, data.task)
    judged = in_role(out, "test") if data.graph.digest == file.graph_digest else None
    return what_was_learned(members, data, classes, known=known, judged=judged, seed=configs[0].seed)


def _facts(file: SavedModel, data: GraphData) -> dict[str, Any]:
    counts = Counter(config.with_values(seed=0) for config in member_configs(file))
    same = data.graph.digest == file.graph_digest
    return {
        "graph": data.name,
        "nodes": data.graph.num_nodes,
        "edges": data.graph.num_edges,
        "fitted_on_this_graph": same,
        "members": len(file.states),
        "config": _shown(RunConfig.from_dict(dict(file.config))),
        "configurations": [
            {"members": count, "title": find_model(config.model).title_or_name, "config": _shown(config)}
            for config, count in counts.items()
        ],
    }


def _shown(config: RunConfig) -> dict[str, Any]:
    values, kind = config.to_dict(), find_model(config.model)
    unused = () if kind.unused is None else kind.unused(config.parameters)
    return {name: values[name] for name in _SHOWN if name in values and name not in unused}


def _encoded(table: polars.DataFrame, suffix: str) -> bytes:
    if suffix == ".csv":
        return table.write_csv(float_precision=6).encode()
    stream = BytesIO()
    table.write_parquet(stream)
    return stream.getvalue()

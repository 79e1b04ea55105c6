"""``plap inspect``: what a graph is like and whether its edges can help, or what a fitted model learned."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plap.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

    from plap.data.inspection import Distribution, Inspection

GraphArgument = Annotated[
    str,
    typer.Argument(
        metavar="GRAPH",
        help="A folder with edges and nodes (.csv, .tsv, .parquet), an .npz, a file of edges, a benchmark.",
    ),
]
NodesOption = Annotated[Path | None, typer.Option(help="Table of nodes, if GRAPH is a table of edges.")]
RootOption = Annotated[
    Path | None, typer.Option(help="Data folder to look in before $PLAP_DATA and the user's cache.")
]


def inspect(
    graph: Annotated[
        str,
        typer.Argument(
            metavar="GRAPH|OUT",
            help="A graph: a folder with edges and nodes, an .npz, a file of edges, a benchmark. "
            "Or a folder that plap fit wrote.",
        ),
    ],
    nodes: NodesOption = None,
    root: RootOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    png: Annotated[Path | None, typer.Option(help="Draw the distributions into this file.")] = None,
    of: Annotated[
        str | None,
        typer.Option("--graph", help="With OUT: the graph, where its name alone does not bring it."),
    ] = None,
    edges_out: Annotated[
        Path | None, typer.Option(help="With OUT: file for the edges, least trusted first, .csv or .parquet.")
    ] = None,
    nodes_out: Annotated[
        Path | None, typer.Option(help="With OUT: file for what the neighbours do to each node.")
    ] = None,
) -> None:
    """Say what a graph is like and whether its edges can help; or what a fitted model learned about them."""
    from plap.cli.inspect_model import inspect_model, is_model  # noqa: PLC0415
    from plap.cli.output import check_writable, write_atomically  # noqa: PLC0415
    from plap.data.inspection import inspect_graph  # noqa: PLC0415
    from plap.data.resolve import open_graph  # noqa: PLC0415

    if png is not None:
        check_writable(png, "--png")
    if is_model(Path(graph)):
        inspect_model(
            Path(graph), of, nodes=nodes, root=root, as_json=as_json, png=png, edges_out=edges_out,
            nodes_out=nodes_out,
        )  # fmt: skip
        return
    for flag, value in (("--graph", of), ("--edges-out", edges_out), ("--nodes-out", nodes_out)):
        if value is not None:
            raise InputError(f"{flag} goes with a folder that plap fit wrote, and {graph} is none")
    found = inspect_graph(open_graph(graph, nodes=nodes, root=root))
    if png is not None:
        from plap.cli.inspect_picture import draw  # noqa: PLC0415

        write_atomically(png, draw(found), "--png")
    if as_json:
        print(json.dumps(found.to_json(), indent=2, allow_nan=False))
        return
    _show(found)


def _show(found: Inspection) -> None:
    from rich.console import Console  # noqa: PLC0415
    from rich.markup import escape  # noqa: PLC0415

    console = Console(highlight=False)
    console.print(f"[bold]{escape(found.name)}[/bold]  {escape(found.source)}")
    console.print(_facts(found))
    console.print(_homophily(found))
    console.print(f"[bold]{escape(found.verdict)}[/bold]")
    for change in found.changes:
        console.print(f"· {escape(change)}")


def _facts(found: Inspection) -> Table:
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    kind = "weighted" if found.weighted else "unweighted"
    where = f"largest has {found.largest_component:,} nodes"
    layout = ", kept sparse" if found.features_sparse else ""
    sizes = sorted(found.class_sizes.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name}: {size:,}" for name, size in sizes[:10]) + (", …" if len(sizes) > 10 else "")
    rows = {
        "nodes": f"{found.nodes:,}, {found.isolated:,} without edges",
        "edges": f"{found.edges:,}, undirected, {kind}",
        "components": f"{found.components:,}, the {where}",
        "neighbours": _quantiles(found.degrees, ",.0f"),
        "features": f"{found.features:,}, {found.features_filled:.2%} filled{layout}",
        "‖∇f(i)‖": _quantiles(found.gradient_norms, ".3g"),
        "labelled": f"{found.labelled:,} of {found.nodes:,} nodes",
        "classes": f"{len(sizes)} ({shown})" if sizes else "none",
    }
    for name, value in rows.items():
        table.add_row(name, escape(value))
    return table


def _quantiles(values: Distribution | None, form: str) -> str:
    if values is None:
        return "none"
    return (
        f"{values.minimum:{form}} to {values.maximum:{form}}, median {values.median:{form}}, "
        f"mean {values.mean:.3g}, half between {values.quarter:{form}} and {values.three_quarters:{form}}"
    )


def _homophily(found: Inspection) -> Table:
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(title="Homophily", title_justify="left")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("what it means")
    for name, measure in found.homophily.items():
        value = "–" if measure.value is None else f"{measure.value:.3f}"
        table.add_row(name.replace("_", " "), value, escape(measure.meaning))
    return table

"""``plap attack OUT``: how the accuracy of a fitted model falls when an adversary changes edges."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from plap.checks import check_number
from plap.cli.shared import INPUT, JsonOption, RootOption, check_writable, write_atomically
from plap.fitting.adversary import attack_fit
from plap.fitting.artifacts import check_writable as check_result_writable
from plap.fitting.artifacts import load_metrics, load_model
from plap.fitting.artifacts.folder import read_files, replace_file
from plap.fitting.fitted_graph import check_one_class, in_role, open_fitted
from plap.insight.attack import AttackCurve, AttackPoint
from plap.reporting.html_page import with_attack_section
from plap.reporting.number_text import counted, number
from plap.reporting.terminal import make_console, print_line, text_table
from plap.split_masks import HoldOut


def attack(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    budget: Annotated[
        float | None,
        typer.Option(
            help="Largest share of the edges that the adversary may change (default: 0.1, or 1 with --local)."
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help="The graph the model was fitted on, if it cannot be found by name.", rich_help_panel=INPUT
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(help="Table of nodes, if --graph is a table of edges.", rich_help_panel=INPUT),
    ] = None,
    root: RootOption = None,
    local: Annotated[
        int,
        typer.Option(
            help="Attack this many test nodes one by one; the budget is a share of their edges.", min=0
        ),
    ] = 0,
    poison: Annotated[
        bool,
        typer.Option(
            "--poison",
            help="Retrain the model on each attacked graph: the attack comes before training.",
        ),
    ] = False,
    members: Annotated[
        int, typer.Option(help="How many ensemble members are attacked together, the first ones.", min=1)
    ] = 4,
    steps: Annotated[int, typer.Option(help="Steps of each attack.", min=2)] = 60,
    seed: Annotated[int, typer.Option(help="Random seed of the attack.")] = 0,
    png: Annotated[Path | None, typer.Option(help="Draw the curve into this PNG file.")] = None,
    page: Annotated[
        bool, typer.Option(help="Add the curve to the report of the fit, OUT/report.html.")
    ] = True,
    as_json: JsonOption = False,
) -> None:
    """Measure how the accuracy on the test nodes falls when an adversary who knows the model changes edges.

    The attack uses the model's gradient with respect to the edge weights, after training; with --poison the
    model is retrained on the attacked graph. The curve is added to the report of the fit.
    """
    if budget is not None:
        check_number("budget", budget, above=0, most=1)
    if png is not None:
        check_writable(png, "--png")
    html = b""
    if page:
        check_result_writable(out, flag="OUT")
        (html,) = read_files(out, ("report.html",))
    file = load_model(out)
    check_one_class(file, "attacked")
    data = open_fitted(out, file, graph, nodes=nodes, root=root)
    metrics = load_metrics(out)
    curve = attack_fit(
        file, data, HoldOut(in_role(out, "train"), in_role(out, "val")), in_role(out, "test"), budget,
        first=metrics["settings"]["seed"] if metrics["split"].get("bagged") else None,
        local=local, poison=poison, members=members, steps=steps, seed=seed,
    )  # fmt: skip
    if png is not None:
        from plap.reporting.inspection_pictures import attack_picture  # noqa: PLC0415

        write_atomically(png, attack_picture(curve), "--png")
    if page:
        replace_file(out, "report.html", with_attack_section(html.decode(), curve).encode(), flag="OUT")
    if as_json:
        asked = {"graph": data.name, "members": min(members, len(file.states))}
        print(json.dumps(asked | asdict(curve), indent=2))
    else:
        _show(curve, data.name)
        if page:
            print_line(make_console(), f"Page: {out / 'report.html'}", wrap=False)


def _show(curve: AttackCurve, name: str) -> None:
    whose = "of each node's edges" if curve.local else "of the edges"
    points = [AttackPoint(0.0, 0, curve.clean, curve.clean), *curve.points]
    rows = [
        (f"{100 * p.budget:.3g} %", number(p.changed), f"{p.accuracy:.1%}", f"{p.random:.1%}") for p in points
    ]
    columns = (f"share {whose}", "changed edges", "accuracy under attack", "with random edges")
    when = "before" if curve.poisoning else "after"
    title = f"{name}: accuracy on {counted(curve.nodes, 'test node')}, the edges changed {when} training"
    make_console().print(text_table(columns, rows, title=title))

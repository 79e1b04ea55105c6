"""``plap attack OUT``: how the accuracy of a fitted model falls when an adversary changes edges."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from plap.cli.inspect import check_one_class, in_role, open_fitted
from plap.cli.shared import JsonOption, NodesOption, RootOption, check_writable, write_atomically
from plap.data.splits import HoldOut
from plap.errors import InputError
from plap.fitting.artifacts import check_writable as check_result_writable
from plap.fitting.artifacts import load_model
from plap.fitting.artifacts.folder import read_files, replace_file
from plap.fitting.prediction import member_configs
from plap.insight import load_members
from plap.insight.attack import AttackCurve, AttackPoint, attack_curve, retraining
from plap.reporting.html_page import with_attack_section
from plap.reporting.number_text import counted
from plap.reporting.terminal import make_console, print_line, text_table

_PARTS = (0.1, 0.25, 0.5, 1.0)
"""Budgets that are tried, as parts of the largest."""


def attack(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder that plap fit wrote.")],
    budget: Annotated[
        float, typer.Option(help="Largest share of the edges that the adversary may change.")
    ] = 0.1,
    graph: Annotated[
        str | None, typer.Option(help="The graph of the fit, where its name alone does not bring it.")
    ] = None,
    nodes: NodesOption = None,
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
            help="Train the model anew on each attacked graph: the attack comes before training.",
        ),
    ] = False,
    members: Annotated[int, typer.Option(help="Ensemble members that are attacked together.", min=1)] = 4,
    steps: Annotated[int, typer.Option(help="Steps of each attack.", min=2)] = 60,
    seed: Annotated[int, typer.Option(help="Random seed of the attack.")] = 0,
    png: Annotated[Path | None, typer.Option(help="File for a picture of the curve.")] = None,
    page: Annotated[bool, typer.Option(help="Add the curve to the page of the fit, OUT/report.html.")] = True,
    as_json: JsonOption = False,
) -> None:
    """Measure how the accuracy on the test nodes falls when an adversary who knows the model changes edges.

    The attack follows the gradient of the model in the weights of the edges, after training; with --poison
    the model is trained anew on what it left. The curve is added to the page of the fit.
    """
    if png is not None:
        check_writable(png, "--png")
    if not 0 < budget <= 1:
        raise InputError(f"--budget: {budget} must be more than 0 and at most 1")
    if poison and local:
        raise InputError("--poison is for an attack on all test nodes at once: it does not go with --local")
    html = b""
    if page:
        check_result_writable(out, flag="OUT")
        (html,) = read_files(out, ("report.html",))
    file = load_model(out)
    check_one_class(out, file, "attacked")
    data = open_fitted(out, file, graph, nodes=nodes, root=root)
    known = file.task.recoded(data.y, data.task)
    if known is None or data.graph.digest != file.graph_digest:
        raise InputError(
            f"{data.name} is not the graph that {out} was fitted on, so its test nodes are unknown"
        )
    configs = member_configs(file)[:members]
    modules = load_members(configs, file.states[:members], data.x.shape[1], len(file.classes))
    judged = in_role(out, "test") & (known >= 0)
    retrain = None
    if poison:
        sets = HoldOut(in_role(out, "train"), in_role(out, "val"))
        different = dict.fromkeys(config.with_values(seed=configs[0].seed) for config in configs)
        retrain = retraining(list(different), data.x, known, sets, len(modules), file.task)
    if local:
        first = judged.nonzero().squeeze(1)[local:]
        judged[first] = False
    curve = attack_curve(
        modules, data.x, data.graph, known, judged, [part * budget for part in _PARTS],
        local=local > 0, retrain=retrain, steps=steps, seed=seed,
    )  # fmt: skip
    if png is not None:
        from plap.reporting.inspection_pictures import attack_picture  # noqa: PLC0415

        write_atomically(png, attack_picture(curve), "--png")
    if page:
        replace_file(out, "report.html", with_attack_section(html.decode(), curve).encode(), flag="OUT")
    if as_json:
        print(json.dumps({"graph": data.name, "members": len(modules), **asdict(curve)}, indent=2))
    else:
        _show(curve, data.name)
        if page:
            print_line(make_console(), f"Page: {out / 'report.html'}", wrap=False)


def _show(curve: AttackCurve, name: str) -> None:
    whose = "of each node's edges" if curve.local else "of the edges"
    points = [AttackPoint(0.0, 0, curve.clean, curve.clean), *curve.points]
    rows = [
        (f"{100 * p.budget:.3g} %", str(p.changed), f"{p.accuracy:.1%}", f"{p.random:.1%}") for p in points
    ]
    columns = (f"share {whose}", "changed edges", "accuracy under attack", "with random edges")
    when = "before" if curve.poisoning else "after"
    title = f"{name}: accuracy on {counted(curve.nodes, 'test node')}, the edges changed {when} training"
    make_console().print(text_table(columns, rows, title=title))

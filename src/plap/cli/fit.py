"""``plap fit``: a graph and some labels in; predictions, a model and a page out."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, TextIO

import typer

from plap.cli.progress import INTERRUPTED, ends_early, open_log, show_progress, write_log
from plap.cli.shared import (
    BadRowsOption,
    CategoricalOption,
    GraphArgument,
    IdOption,
    IgnoreOption,
    JsonOption,
    LabelOption,
    NodesOption,
    OutOption,
    QuietOption,
    RawOption,
    RootOption,
    SourceOption,
    TargetOption,
    TaskOption,
    UnknownOption,
    WeightOption,
)
from plap.data.dataset import GraphData
from plap.data.metrics import METRICS
from plap.data.resolve import open_graph
from plap.data.splits import Split
from plap.data.tables.options import TableOptions
from plap.errors import InputError
from plap.fitting import FitResult, FitSettings, PieceSettings, check_learnable, choose_split
from plap.fitting import fit as fit_graph
from plap.fitting.artifacts import check_writable, estimate_size, load_metrics
from plap.fitting.pieces import first_checkpoint, remove_checkpoints
from plap.fitting.settings import MODEL
from plap.reporting.terminal import show_fit
from plap.training.devices import choose_device, world_size
from plap.training.pieces import Ranks, join_ranks

SPLIT_KINDS = ("stratified", "chien", "paper", "public", "graphs")

SPLIT, GOAL, SEARCH, FIXED = "Split", "Goal", "Search", "Fixed hyperparameters"
TRAINING, PIECES = "Training", "Training in pieces"
"""Groups of options in ``plap fit --help``, beside ``INPUT``; the others concern the output."""


@ends_early()
def fit(
    graph: GraphArgument,
    out: OutOption,
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
    split: Annotated[
        str | None,
        typer.Option(
            help="How to split the labelled nodes: stratified, chien, paper or public; graphs (a folder of "
            "graph folders); or the column of the node table that says train, val or test (default: the "
            "split or masks of the tables, if there are any, or else stratified).",
            rich_help_panel=SPLIT,
        ),
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help="Shares of the split: dense (60/20/20) or sparse (2.5/2.5/95) (default: dense).",
            rich_help_panel=SPLIT,
        ),
    ] = None,
    index: Annotated[
        int,
        typer.Option(
            help="Which of several public splits or masks to use, counted from 0.", rich_help_panel=SPLIT
        ),
    ] = 0,
    seed: Annotated[
        int, typer.Option(help="Random seed for the split, the search and training.", rich_help_panel=SPLIT)
    ] = 0,
    bagging: Annotated[
        bool,
        typer.Option(
            help="Give every ensemble member its own division into training and validation nodes, so that "
            "the model learns from all of them (only with --split stratified or chien).",
            rich_help_panel=SPLIT,
        ),
    ] = True,
    metric: Annotated[
        str | None,
        typer.Option(
            help=f"Metric for the search, early stopping and the headline: {', '.join(METRICS)} (default: "
            "depends on the data).",
            rich_help_panel=GOAL,
        ),
    ] = None,
    class_weight: Annotated[
        str,
        typer.Option(
            help="Weights of the classes in the training loss: balanced (all count the same), none, or auto "
            "(balanced where classes are imbalanced).",
            rich_help_panel=GOAL,
        ),
    ] = "auto",
    conformal: Annotated[
        float | None,
        typer.Option(
            help="Add prediction sets or intervals with this coverage, such as 0.9.", rich_help_panel=GOAL
        ),
    ] = None,
    rivals: Annotated[
        str,
        typer.Option(
            help="What to compare the model with, separated by commas: mlp, boosting, labels, majority or a "
            "network such as gcn, sage, gat, sgc, appnp or gprgnn; none for nothing.",
            rich_help_panel=GOAL,
        ),
    ] = ",".join(FitSettings.rivals),
    tune: Annotated[
        bool, typer.Option(help="Search for the hyperparameters that are not fixed.", rich_help_panel=SEARCH)
    ] = True,
    models: Annotated[
        str,
        typer.Option(
            help="Models that the search may choose from, separated by commas; auto is pgnn and, where "
            "linked nodes tend to differ in class, mlp (up to 10 million edges) and deep-pgnn (up to 600,000 "
            "edges), unless a flag such as --p fixes a hyperparameter.",
            rich_help_panel=SEARCH,
        ),
    ] = "auto",
    budget: Annotated[
        int | None,
        typer.Option(
            help="Number of epochs that the search may spend in total (default: 11,000 for each model that "
            "uses edges on small graphs, fewer on larger ones, but at least 3,000).",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    time_limit: Annotated[
        str,
        typer.Option(
            "--time",
            help="Time limit for search and training, such as 60s or 10m; none for no limit; auto is 8m "
            "(no limit when training in pieces).",
            rich_help_panel=SEARCH,
        ),
    ] = "auto",
    seeds: Annotated[
        int | None,
        typer.Option(
            help="Number of ensemble members (default: 8; 1 when training in pieces).",
            min=1,
            rich_help_panel=SEARCH,
        ),
    ] = None,
    p: Annotated[
        float | None,
        typer.Option(help="Fix the exponent p instead of searching for it.", rich_help_panel=FIXED),
    ] = None,
    penalty: Annotated[
        str,
        typer.Option(
            help="How edges are weighted by their length: power, mcp, scad, huber, welsch, geman or cauchy; "
            "auto lets validation choose among power, mcp and huber.",
            rich_help_panel=FIXED,
        ),
    ] = "auto",
    gamma: Annotated[
        float | None,
        typer.Option(
            help="Fix γ, the parameter of every penalty but the power, in units of the median edge norm of "
            "the features.",
            rich_help_panel=FIXED,
        ),
    ] = None,
    mu: Annotated[
        float | None, typer.Option(help="Fix μ, the weight of a node's own features.", rich_help_panel=FIXED)
    ] = None,
    steps: Annotated[
        int | None, typer.Option("--K", help="Fix K, the number of propagation steps.", rich_help_panel=FIXED)
    ] = None,
    lr: Annotated[float | None, typer.Option(help="Fix the learning rate.", rich_help_panel=FIXED)] = None,
    dropout: Annotated[
        float | None, typer.Option(help="Fix the dropout rate.", rich_help_panel=FIXED)
    ] = None,
    weight_decay: Annotated[
        float | None, typer.Option(help="Fix the weight decay.", rich_help_panel=FIXED)
    ] = None,
    hidden: Annotated[
        int | None,
        typer.Option(
            help="Fix the number of hidden units (default: 16, and the best candidate is tried again with "
            "64; deep networks have 64).",
            rich_help_panel=FIXED,
        ),
    ] = None,
    max_epochs: Annotated[
        int, typer.Option(help="Maximum number of epochs per run.", rich_help_panel=TRAINING)
    ] = 1000,
    patience: Annotated[
        int,
        typer.Option(help="Stop a run after this many epochs without improvement.", rich_help_panel=TRAINING),
    ] = 200,
    stop_by: Annotated[
        str,
        typer.Option(
            help="What early stopping watches on validation nodes: accuracy (that is, the metric set by "
            "--metric) or loss.",
            rich_help_panel=TRAINING,
        ),
    ] = "accuracy",
    stopping: Annotated[
        str,
        typer.Option(
            help="What resets the patience counter: progress (a better score or a lower loss), best (a "
            "better score), or published (as in the paper's code: no early stopping).",
            rich_help_panel=TRAINING,
        ),
    ] = "progress",
    device: Annotated[
        str, typer.Option(help="Where to train: auto, cpu, cuda, cuda:N or mps.", rich_help_panel=TRAINING)
    ] = "auto",
    memory_budget: Annotated[
        float | None,
        typer.Option(help="Memory that training may use beyond the data, in GiB.", rich_help_panel=TRAINING),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            help="Train in pieces: cut the graph into this many METIS parts.", rich_help_panel=PIECES
        ),
    ] = None,
    parts_per_batch: Annotated[
        int | None, typer.Option(help="Parts per piece (default: 1).", rich_help_panel=PIECES)
    ] = None,
    graphs_per_batch: Annotated[
        int | None,
        typer.Option(help="Graphs per piece, for a folder of graph folders.", rich_help_panel=PIECES),
    ] = None,
    pieces_per_step: Annotated[
        int | None,
        typer.Option(help="Pieces per optimiser step (default: one per process).", rich_help_panel=PIECES),
    ] = None,
    evaluation: Annotated[
        str,
        typer.Option(
            help="Where to evaluate: halos, whole or auto (training in pieces only).", rich_help_panel=PIECES
        ),
    ] = "auto",
    checkpoint_every: Annotated[
        int | None,
        typer.Option(
            help="Save a checkpoint every N epochs; training in pieces only (default: 10).",
            rich_help_panel=PIECES,
        ),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume", help="Resume from the checkpoints (training in pieces only).", rich_help_panel=PIECES
        ),
    ] = False,
    log: Annotated[
        Path | None, typer.Option(help="Append progress messages and the summary to this file.")
    ] = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Search for, train and evaluate a model on a partially labelled graph.

    Ctrl-C or SIGTERM ends the search and keeps the best model so far. Exit codes: 0 complete, 2 bad input,
    3 interrupted with a result, 4 interrupted without one.
    """
    pieces = _piece_settings(
        parts, parts_per_batch, graphs_per_batch, pieces_per_step, evaluation, device, checkpoint_every,
        resume, {
            "--budget": budget, "--memory-budget": memory_budget,
            "--time": None if time_limit in ("auto", "none") else time_limit,
        },
    )  # fmt: skip
    if p is not None and (penalty not in ("auto", "power") or gamma is not None):
        other = "--gamma" if penalty in ("auto", "power") else f"--penalty {penalty}"
        raise InputError(f"--p is the exponent of the power, so it does not go with {other}")
    if gamma is not None and penalty == "power":
        raise InputError("--gamma belongs to the other penalties: --penalty power has the exponent --p")
    given = {
        "p": p, "penalty": None if penalty == "auto" else penalty, "gamma": gamma, "mu": mu, "K": steps,
        "lr": lr, "dropout": dropout, "weight_decay": weight_decay,
    }  # fmt: skip
    settings = FitSettings(
        fixed={name: value for name, value in given.items() if value is not None},
        models="auto" if models == "auto" else _names(models),
        rivals=() if rivals == "none" else _names(rivals),
        search=tune and pieces is None, budget="auto" if budget is None else budget, seeds=seeds,
        bagging=bagging, hidden=hidden, pieces=pieces, metric=metric,
        class_weight=None if class_weight == "none" else class_weight, conformal=conformal,
        max_epochs=max_epochs, patience=patience, seed=seed,
        time_limit=None if time_limit == "none" else time_limit,
        stop_by=stop_by, stopping=stopping,  # type: ignore[arg-type]
        memory_budget=None if memory_budget is None else _bytes(memory_budget), device=device,
    )  # fmt: skip
    settings.config(MODEL)  # refuses what has no meaning before anything is loaded
    if pieces is None:
        choose_device(device)

    rule = split if split in SPLIT_KINDS else None
    tables = TableOptions(
        id=node_id, label=label, source=source, target=target, weight=weight,
        split=None if split is None or rule else split, ignore=ignore or (), categorical=categorical or (),
        raw_features=raw_features, unknown=unknown, index=index, encode=False,
        task=task, on_bad_rows=on_bad_rows,  # type: ignore[arg-type]
    )  # fmt: skip

    def load() -> tuple[GraphData, Split]:
        data = open_graph(graph, tables, nodes=nodes, root=root)
        check_learnable(data)
        if tables.split is not None and data.splits is None:
            raise InputError(
                f"--split must be one of {', '.join(SPLIT_KINDS)}, or a column of the table of nodes, "
                f"not {split!r}"
            )
        return data, choose_split(data, rule, preset=preset, seed=seed, index=index)

    if pieces is None:
        check_place(out)
        run(*load(), settings, out, as_json=as_json, quiet=quiet, log=log)
        return
    with join_ranks(pieces.device) as ranks:
        if ranks.first:
            check_place(out)
        run(*load(), settings, out, as_json=as_json, quiet=quiet, ranks=ranks, log=log)


def run(
    data: GraphData, split: Split, settings: FitSettings, out: Path,
    *, as_json: bool, quiet: bool, ranks: Ranks | None = None, log: Path | None = None,
) -> None:  # fmt: skip
    """Fit; the first of the processes shows progress, writes, and says what was found."""
    first = ranks is None or ranks.first
    checkpoints = _checkpoints_of(out)
    if first:
        check_place(out, data, settings)
        resume = settings.pieces is not None and settings.pieces.resume
        if resume and not first_checkpoint(checkpoints, settings).exists():
            print(
                f"plap: no checkpoint in {checkpoints}, so training starts from the beginning",
                file=sys.stderr,
            )
    with (
        open_log(log if first else None) as stream,
        show_progress(quiet=quiet or as_json or not first, log=stream) as announce,
    ):
        if stream is not None:
            write_log(stream, f"fit of {data.name} into {out}")
        result = fit_graph(
            data, split, settings=settings, announce=announce, ranks=ranks,
            checkpoints=None if settings.pieces is None else checkpoints,
        )  # fmt: skip
        if first:
            _conclude(result, out, as_json=as_json, log=stream)
    if first:
        if settings.pieces is not None and not result.interrupted:
            remove_checkpoints(checkpoints)
        if result.interrupted:
            raise typer.Exit(INTERRUPTED)


def _conclude(result: FitResult, out: Path, *, as_json: bool, log: TextIO | None) -> None:
    """Write what was found, and say it."""
    written = result.save(out)
    if log is not None:
        write_log(log, result.content.finding)
    if as_json:
        print(json.dumps(load_metrics(written), indent=1))
    else:
        show_fit(result.content, written)


def _checkpoints_of(out: Path) -> Path:
    place = Path(os.path.realpath(out))
    return place.parent / f"{place.name}.checkpoints"


def _names(text: str) -> tuple[str, ...]:
    """The names in a list that is separated by commas."""
    return tuple(name.strip() for name in text.split(","))


def _bytes(gibibytes: float) -> int:
    if not 0 < gibibytes < 2**30:
        raise InputError(f"--memory-budget must be a positive number of GiB, not {gibibytes:g}")
    return int(gibibytes * 2**30)


def check_place(out: Path, data: GraphData | None = None, settings: FitSettings | None = None) -> None:
    """Refuse an output folder that cannot be written, or that has no room for a result, before any work."""
    size = 0
    if data is not None and settings is not None:
        weights = settings.members * (data.x.shape[1] + data.num_classes) * settings.most_hidden
        size = estimate_size(data.graph.num_nodes, data.num_classes, weights)
    check_writable(out, size=size)


def _piece_settings(
    parts: int | None,
    parts_per_batch: int | None,
    graphs_per_batch: int | None,
    pieces_per_step: int | None,
    evaluation: str,
    device: str,
    checkpoint_every: int | None,
    resume: bool,
    others: Mapping[str, object],
) -> PieceSettings | None:
    """What the flags say of training in pieces, None if nothing; ``others`` are flags that go without it."""
    processes = world_size()
    if parts is None and graphs_per_batch is None:
        needing = {
            "--parts-per-batch": parts_per_batch,
            "--pieces-per-step": pieces_per_step,
            "--checkpoint-every": checkpoint_every,
            "--resume": resume or None,
            "--evaluation": None if evaluation == "auto" else evaluation,
        }
        for flag, value in needing.items():
            if value is not None:
                raise InputError(f"{flag} goes with training in pieces: add --parts or --graphs-per-batch")
        if processes > 1:
            raise InputError("several processes can only train in pieces: add --parts or --graphs-per-batch")
        return None
    if parts is not None and graphs_per_batch is not None:
        raise InputError("--parts cuts one graph and --graphs-per-batch takes graphs whole: give one of them")
    if graphs_per_batch is not None and parts_per_batch is not None:
        raise InputError("--parts-per-batch goes with --parts")
    for flag, other in others.items():
        if other is not None:
            raise InputError(f"{flag} does not go with training in pieces")
    for flag, count in (
        ("--parts", parts),
        ("--parts-per-batch", parts_per_batch),
        ("--graphs-per-batch", graphs_per_batch),
        ("--pieces-per-step", pieces_per_step),
        ("--checkpoint-every", checkpoint_every),
    ):
        if count is not None and count < 1:
            raise InputError(f"{flag} must be 1 or more, not {count}")
    return PieceSettings(
        parts=parts,
        parts_per_batch=graphs_per_batch or parts_per_batch or 1,
        pieces_per_step=pieces_per_step or processes,
        device=device,
        evaluation=evaluation,  # type: ignore[arg-type]
        checkpoint_every=checkpoint_every or 10,
        resume=resume,
    )

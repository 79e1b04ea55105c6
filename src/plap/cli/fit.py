"""``plap fit``: a graph and some labels in; predictions, a model and a page out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plap.cli.inspect import GraphArgument, NodesOption, RootOption
from plap.errors import InputError

if TYPE_CHECKING:
    from plap.data.dataset import GraphData
    from plap.data.splits import Split
    from plap.fitting.comparison import Announce, Comparison
    from plap.fitting.settings import FitSettings

OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="Folder for the results; an earlier one is replaced.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the metrics as JSON.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def fit(
    graph: GraphArgument,
    out: OutOption,
    nodes: NodesOption = None,
    root: RootOption = None,
    split: Annotated[
        str | None, typer.Option(help="stratified, chien, paper, public, or graphs for a folder of folders.")
    ] = None,
    preset: Annotated[str | None, typer.Option(help="dense (60/20/20) or sparse (2.5/2.5/95).")] = None,
    index: Annotated[int, typer.Option(help="Which of the public splits.")] = 0,
    seed: Annotated[int, typer.Option(help="Of the split, the search and the training.")] = 0,
    p: Annotated[float | None, typer.Option(help="Keep p at this value.")] = None,
    mu: Annotated[float | None, typer.Option(help="Keep μ at this value.")] = None,
    steps: Annotated[int | None, typer.Option("--K", help="Keep K at this value.")] = None,
    lr: Annotated[float | None, typer.Option(help="Keep the learning rate at this value.")] = None,
    dropout: Annotated[float | None, typer.Option(help="Keep the dropout at this value.")] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Keep the weight decay at this value.")] = None,
    hidden: Annotated[int, typer.Option(help="Hidden units.")] = 16,
    tune: Annotated[bool, typer.Option(help="Search for what is not given.")] = True,
    budget: Annotated[int | None, typer.Option(help="Epochs that the search may spend.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Members of the ensemble: 8, in pieces 1.", min=1)] = None,
    max_epochs: Annotated[int, typer.Option(help="At most so many epochs a run.")] = 1000,
    patience: Annotated[int, typer.Option(help="Epochs without improvement that end a run.")] = 200,
    stop_by: Annotated[str, typer.Option(help="accuracy or loss, on the validation nodes.")] = "accuracy",
    memory_budget: Annotated[
        float | None, typer.Option(help="GiB that training may take beside the data.")
    ] = None,
    parts: Annotated[int | None, typer.Option(help="Train in pieces: cut into so many parts.")] = None,
    parts_per_batch: Annotated[int | None, typer.Option(help="Parts a piece.")] = None,
    graphs_per_batch: Annotated[
        int | None, typer.Option(help="Train in pieces of so many graphs of a folder of folders.")
    ] = None,
    pieces_per_step: Annotated[
        int | None, typer.Option(help="Pieces a step of Adam: by default as many as there are processes.")
    ] = None,
    evaluation: Annotated[str, typer.Option(help="In pieces: on halos, on the whole graph, auto.")] = "auto",
    device: Annotated[str, typer.Option(help="In pieces: auto, cpu, cuda or cuda:N.")] = "auto",
    checkpoint_every: Annotated[int | None, typer.Option(help="In pieces: epochs a checkpoint.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="In pieces: go on from the checkpoints.")] = False,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find, train and judge a model for a graph with some labels."""
    from plap.cli.fit_in_pieces import piece_settings, run_in_pieces  # noqa: PLC0415
    from plap.data.resolve import open_graph  # noqa: PLC0415
    from plap.fitting.settings import FitSettings  # noqa: PLC0415

    pieces = piece_settings(
        parts, parts_per_batch, graphs_per_batch, pieces_per_step, evaluation, device, checkpoint_every,
        resume, {"--budget": budget, "--memory-budget": memory_budget},
    )  # fmt: skip
    given = {"p": p, "mu": mu, "K": steps, "lr": lr, "dropout": dropout, "weight_decay": weight_decay}
    settings = FitSettings(
        fixed={name: value for name, value in given.items() if value is not None},
        search=tune and pieces is None, budget="auto" if budget is None else budget,
        seeds=seeds or (8 if pieces is None else 1), hidden=hidden, pieces=pieces,
        max_epochs=max_epochs, patience=patience, stop_by=stop_by, seed=seed,  # type: ignore[arg-type]
        memory_budget=None if memory_budget is None else _bytes(memory_budget),
    )  # fmt: skip
    settings.base("pgnn").with_values(
        **settings.fixed
    )  # refuses what has no meaning before anything is loaded

    def load() -> tuple[GraphData, Split]:
        data = open_graph(graph, nodes=nodes, root=root)
        check_labels(data)
        return data, _split(data, split, preset, seed, index)

    if pieces is not None:
        run_in_pieces(load, settings, pieces, out, as_json=as_json, quiet=quiet)
        return
    check_place(out)
    run(*load(), settings, out, as_json=as_json, quiet=quiet)


def _split(data: GraphData, kind: str | None, preset: str | None, seed: int, index: int) -> Split:
    """The split that was asked for; by default that of a collection takes its graphs whole."""
    from plap.data.splits import split as make_split  # noqa: PLC0415
    from plap.data.tables.collections import split_graphs  # noqa: PLC0415

    if kind is None and data.graph_of_node is not None:
        kind = "graphs" if data.splits is None else "public"
    if kind == "graphs":
        if preset is not None:
            raise InputError("--preset goes with a split of nodes, and here whole graphs are shared out")
        return split_graphs(data, seed)
    return make_split(data, kind or "stratified", preset=preset, seed=seed, index=index)


def run(
    data: GraphData, parts: Split, settings: FitSettings, out: Path, *, as_json: bool, quiet: bool
) -> None:
    """Compare, write, and say what was found."""
    from plap.fitting.comparison import compare  # noqa: PLC0415

    check_place(out, data, settings)
    with progress_bars(quiet=quiet or as_json) as announce:
        comparison = compare(data, parts, settings, announce)
    conclude(comparison, out, as_json=as_json)


def conclude(comparison: Comparison, out: Path, *, as_json: bool) -> None:
    """Write what was found, and say it."""
    from plap.artifacts import load_metrics, write_result  # noqa: PLC0415
    from plap.fitting.outcome import make_result, page  # noqa: PLC0415
    from plap.reporting.fit_terminal import show_fit  # noqa: PLC0415

    report = page(comparison)
    written = write_result(out, make_result(comparison, report))
    if as_json:
        print(json.dumps(load_metrics(written), indent=1))
    else:
        show_fit(report, written)


def _bytes(gibibytes: float) -> int:
    if not 0 < gibibytes < 2**30:
        raise InputError(f"--memory-budget must be a positive number of GiB, not {gibibytes:g}")
    return int(gibibytes * 2**30)


def check_place(out: Path, data: GraphData | None = None, settings: FitSettings | None = None) -> None:
    """Refuse an output folder that cannot be written, or that has no room for a result, before any work."""
    from plap.artifacts import check_writable, estimate_size  # noqa: PLC0415

    size = 0
    if data is not None and settings is not None:
        weights = settings.seeds * (data.x.shape[1] + data.num_classes) * settings.hidden
        size = estimate_size(data.graph.num_nodes, data.num_classes, weights)
    check_writable(out, size=size)


def check_labels(data: GraphData) -> None:
    """Refuse a graph that cannot be learned from."""
    if not bool(data.known.any()):
        raise InputError(f"{data.name} has no labels, so there is nothing to learn from")
    if data.task.one_class_per_node and data.num_classes < 2:
        raise InputError(f"{data.name} has one class only, so there is nothing to tell apart")


@contextmanager
def progress_bars(*, quiet: bool) -> Iterator[Announce | None]:
    """A bar a phase on stderr, with the time left."""
    if quiet:
        yield None
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    columns = (TextColumn("{task.description:<18}"), BarColumn(), TextColumn("{task.fields[best]}"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:

        def announce(name: str) -> Any:
            for earlier in bars.tasks:
                bars.update(earlier.id, completed=1.0)
            task = bars.add_task(name, total=1.0, best="")

            def report(state: Any) -> None:
                bars.update(task, completed=state.done, best=f"validation {state.best_score:.1%}")

            return report

        yield announce

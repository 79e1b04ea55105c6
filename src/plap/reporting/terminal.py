"""What the terminal shows: tables and lines of text, never taken for markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from plap.reporting.fit_content import FitReport, Score, interval_text
from plap.reporting.node_sections import NodeSections, NodeStory
from plap.reporting.number_text import counted, number, shown
from plap.reporting.table_content import DatasetColumn, Mark, ResultCell, TableReport
from plap.reporting.table_texts import (
    agreement_sentence,
    causes,
    cell_text,
    explanations,
    headline,
    problems,
    summary,
)

if TYPE_CHECKING:
    from plap.data.measures import Distribution, Inspection
    from plap.insight.learned import Learned


def make_console() -> Console:
    """Standard output, without colouring whatever looks like a number."""
    return Console(highlight=False)


def text_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    left: Collection[str] = (),
) -> RichTable:
    """A table whose columns are aligned to the right, except those whose heading is in ``left``."""
    table = RichTable(title=Text(title) if title else None, title_justify="left")
    for position, heading in enumerate(headings):
        table.add_column(Text(heading), justify="left" if heading in left else "right", no_wrap=position == 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def print_line(console: Console, text: str, *, style: str = "", wrap: bool = True) -> None:
    """A line of text; one that holds a path is not wrapped, so that it can be copied."""
    console.print(Text(text, style=style), soft_wrap=not wrap)


def show_story(story: NodeStory, *, share: bool, console: Console | None = None) -> None:
    """Print how the prediction for a node would change if something about it were different."""
    console = console or make_console()
    words = NodeSections(share=share)
    known = "" if story.known is None else f", known: {story.known}"
    title = f"{story.node}: {story.predicted}{known}"

    def row(name: str, without: float, value: str = "", trust: str = "") -> tuple[str, ...]:
        return name, words.shown(without), words.effect(story, without), value, trust

    rows = [
        ("as it is", words.shown(story.prediction), "", story.predicted, ""),
        row("all edges", story.without_edges),
        row("all columns", story.average_features),
        *(row(f"edge to {n.name}", n.without, n.predicted, number(n.trust)) for n in story.neighbours),
        *(row(part.name, part.without, part.value) for part in story.features),
    ]
    headings = ("without", "probability" if share else "prediction", "effect", "value", "trust")
    console.print(text_table(headings, rows, title=title, left=("without", "value")))
    cut = "" if story.hops is None else f" Nodes more than {counted(story.hops, 'edge')} away were left out."
    neighbours, columns = counted(story.num_neighbours, "neighbour"), counted(story.num_features, "column")
    print_line(
        console,
        f"{len(story.neighbours)} of {neighbours} and {len(story.features)} of {columns}, the largest "
        f"effects first. Trust: odds of an edge, 1 is chance.{cut}",
    )


def show_fit(report: FitReport, folder: Path, console: Console | None = None) -> None:
    """Print the scores side by side, the finding, and where the files are."""
    console = console or make_console()
    unit = " %" if report.share else ""
    headings = ("method", "uses", f"{report.metric}{unit}", "95 % interval", "seconds")
    rows = (_row(score, report.share) for score in report.scores)
    console.print(text_table(headings, rows, left=("method", "uses")))
    print_line(console, report.finding)
    for note in report.dataset.notes:
        print_line(console, f"· {note}")
    print_line(console, f"Selected hyperparameters: {_listed(report.chosen)}")
    if report.runners_up:
        print_line(console, f"{report.about_runners_up}. What differs:")
        for differing in report.how_runners_up_differ:
            print_line(console, f"· {_listed(differing)}")
    place = f"Predictions, model and page are in {folder}: open {folder / 'report.html'}"
    print_line(console, place, wrap=False)


def _listed(values: Mapping[str, float | int | str]) -> str:
    return ", ".join(f"{name} = {number(value)}" for name, value in values.items())


def _row(score: Score, share: bool) -> tuple[str, ...]:
    known = score.low is not None and score.high is not None
    interval = interval_text(score.low or 0.0, score.high or 0.0, share) if known else ""
    seconds = "" if score.seconds is None else f"{score.seconds:.1f}"
    value = f"{100 * score.value:.1f}" if share else shown(score.value, share)
    return score.name, score.uses, value, interval, seconds


_MOST_CLASSES = 10
_MOST_EDGES = 10


def show_graph(found: Inspection, console: Console | None = None) -> None:
    """Print the size of a graph, its homophily, and whether its edges can help."""
    console = console or make_console()
    console.print(Text.assemble((found.name, "bold"), f"  {found.source}"))
    console.print(_graph_facts(found))
    console.print(_homophily(found))
    if found.columns:
        console.print(_columns(found.columns))
    print_line(console, found.verdict, style="bold")
    for change in found.changes:
        print_line(console, f"· {change}")


def _graph_facts(found: Inspection) -> RichTable:
    kind = "weighted" if found.weighted else "unweighted"
    layout = ", stored sparse" if found.features_sparse else ""
    sizes = sorted(found.class_sizes.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{name}: {size:,}" for name, size in sizes[:_MOST_CLASSES])
    more = ", …" if len(sizes) > _MOST_CLASSES else ""
    largest = counted(found.largest_component, "node")
    rows = {
        "nodes": f"{found.nodes:,}, {found.isolated:,} without edges",
        "edges": f"{found.edges:,}, undirected, {kind}",
        "components": f"{found.components:,}, the largest has {largest}",
        "neighbours": _quantiles(found.degrees, ",.0f"),
        "features": f"{found.features:,}, {found.features_filled:.2%} non-zero{layout}",
        "‖∇f(i)‖": _quantiles(found.gradient_norms, ".3g"),
        "labelled": f"{found.labelled:,} of {counted(found.nodes, 'node')}",
        "classes": f"{len(sizes)} ({shown}{more})" if sizes else "none",
    }
    table = RichTable(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows.items():
        table.add_row(name, Text(value))
    return table


def _columns(entries: Sequence[Mapping[str, Any]]) -> RichTable:
    """The data dictionary."""
    return text_table(
        ("column", "features", "what it became"),
        (
            (entry["name"], f"{entry['width']:,}", entry["sentence"].removeprefix(f"{entry['name']}: "))
            for entry in entries
        ),
        title="Columns",
        left=("column", "what it became"),
    )


def _quantiles(values: Distribution | None, form: str) -> str:
    if values is None:
        return "none"
    return (
        f"{values.minimum:{form}} to {values.maximum:{form}}, median {values.median:{form}}, "
        f"mean {values.mean:.3g}, half between {values.quarter:{form}} and {values.three_quarters:{form}}"
    )


def _homophily(found: Inspection) -> RichTable:
    return text_table(
        ("measure", "value", "meaning"),
        (
            (name.replace("_", " "), "–" if m.value is None else f"{m.value:.3f}", m.meaning)
            for name, m in found.homophily.items()
        ),
        title="Homophily",
        left=("measure", "meaning"),
    )


def show_learned(learned: Learned, facts: Mapping[str, Any], console: Console | None = None) -> None:
    """Print what a model learned: sentences, and the edges that it trusts least.

    Parameters
    ----------
    learned : Learned
    facts : mapping
        ``configurations`` (for each ``members``, ``title`` and ``config``, hyperparameters by name) and
        ``fitted_on_this_graph``.
    console : Console, optional
    """
    console = console or make_console()
    members = []
    for found in facts["configurations"]:
        values = {name: value for name, value in found["config"].items() if name != "model"}
        members.append(f"{found['members']} × {found['title']}, {_listed(values)}")
    console.print(Text.assemble((learned.data.name, "bold"), "  ", "; ".join(members)))
    for sentence in learned_sentences(learned, fitted_here=facts["fitted_on_this_graph"]):
        print_line(console, f"· {sentence}")
    if learned.trust is None:
        return
    rows = (
        (str(source), str(target), f"{trust:.3g}", f"{use:.3g}", one, other)
        for source, target, trust, use, one, other in learned.edges().head(_MOST_EDGES).iter_rows()
    )
    headings = ("from", "to", "trust", "relative weight", "predicted (from)", "predicted (to)")
    left = ("from", "to", "predicted (from)", "predicted (to)")
    console.print(text_table(headings, rows, title="Least trusted edges", left=left))


def learned_sentences(learned: Learned, *, fitted_here: bool) -> list[str]:
    """What was found, in words."""
    found = learned.summary()
    entropy, trust, neighbours = found["entropy"], found["trust"], found["neighbours"]
    sentences = []
    if entropy["mean"] is not None:
        effective, uniform = np.exp(entropy["mean"]), np.exp(entropy["uniform"])
        sentences.append(
            f"The weights that a node gives its neighbours have an entropy of {entropy['mean']:.2f} nats on "
            f"average, against {entropy['uniform']:.2f} if all neighbours counted the same: as if a node "
            f"listened to {effective:.1f} neighbours instead of {uniform:.1f}."
        )
    if trust is not None:
        edges = counted(trust["edges"], "edge")
        look = "looks" if trust["below_chance"] == 1 else "look"
        sentences.append(
            f"Of {edges}, {trust['below_chance']:,} {look} more like a random pair of nodes than like an "
            f"edge of this graph (trust below 1); the median trust is {trust['median']:.3g}."
        )
    if neighbours["judged"]:
        judged = counted(neighbours["judged"], "held-out node" if fitted_here else "node")
        which = judged if fitted_here else f"{judged} with a known label"
        are = "is" if neighbours["helped"] == 1 else "are"
        sentences.append(
            f"Of {which}, {neighbours['helped']:,} {are} classified correctly only because of their "
            f"neighbours and {neighbours['harmed']:,} wrongly only because of them; on average the "
            f"neighbours change the probability of the true class by "
            f"{100 * neighbours['mean_gain']:+.1f} percentage points."
        )
    if not fitted_here:
        sentences.append("The model was fitted on another graph.")
    return sentences


_STYLES: dict[Mark, str] = {"best": "bold", "near": "bold underline", "": ""}
_SIGNS: dict[Mark, str] = {"best": "*", "near": "°", "": ""}
_BORDER = 3
"""Width of a column beside its text: a space on both sides and a line."""


def show_table(report: TableReport, console: Console | None = None) -> None:
    """Print every cell with the published one dimmed below it, in as many tables as the width requires.

    Where there are no styles, as in a file, an asterisk marks the best and a ring what is near it.
    """
    console = console or make_console()
    plain = not console.is_terminal
    columns = {
        column.key: _column(report, k, column, plain=plain) for k, column in enumerate(report.datasets)
    }
    names = Text("\n".join(model.label for model in report.models))
    for group in _groups(columns, console.width - _width([names]) - 1):
        console.print(_table(report, columns, group))
    print_line(console, summary(report))
    for sentence in _legend(report, plain=plain):
        print_line(console, sentence, style="dim")
    for sentence in (*report.rules, *(f"Published table: {note}" for note in report.notes)):
        print_line(console, f"· {sentence}", style="dim")
    for sentence in causes(report):
        print_line(console, f"· {sentence}", style="dim")
    for sentence in problems(report):
        print_line(console, f"! {sentence}")


def _legend(report: TableReport, *, plain: bool) -> tuple[str, ...]:
    signs = (_SIGNS["best"], _SIGNS["near"]) if plain else ()
    return (*explanations(report, *signs), *([agreement_sentence()] if report.is_compared else []))


def _column(report: TableReport, position: int, column: DatasetColumn, *, plain: bool) -> list[Text]:
    """The heading, then one cell per model."""
    head = Text("\n".join(filter(None, [column.name, column.detail])), justify="right")
    cells = report.cells[position :: len(report.datasets)]
    return [head, *(_content(report, cell, plain=plain) for cell in cells)]


def _content(report: TableReport, cell: ResultCell, *, plain: bool) -> Text:
    text = cell_text(report, cell)
    content = Text(f"{text.symbol} " if text.symbol else "", justify="right")
    content.append(text.ours, _STYLES[text.mark]).append(_SIGNS[text.mark] if plain else "")
    content.append(f" {text.ratio}" if text.ratio else "")
    if report.has_published:
        content.append("\n" + " ".join(filter(None, [text.published, text.published_ratio])), "dim")
    return content


def _groups(columns: dict[str, list[Text]], room: int) -> list[list[str]]:
    """Datasets that fit beside each other; at least one each."""
    groups: list[list[str]] = []
    left = 0
    for dataset, texts in columns.items():
        width = _width(texts)
        if not groups or width > left:
            groups.append([])
            left = room
        groups[-1].append(dataset)
        left -= width
    return groups


def _width(texts: Sequence[Text]) -> int:
    """Of a column that holds all of them."""
    return max(line.cell_len for text in texts for line in text.split("\n", allow_blank=True)) + _BORDER


def _table(report: TableReport, columns: dict[str, list[Text]], group: Sequence[str]) -> RichTable:
    table = RichTable(title=Text(headline(report)), title_justify="left")
    table.add_column("")
    for dataset in group:
        table.add_column(columns[dataset][0], justify="right", no_wrap=True)
    last_of_family = {family[-1] for family in report.families}
    for row, model in enumerate(report.models, start=1):
        cells = (columns[dataset][row] for dataset in group)
        table.add_row(Text(model.label), *cells, end_section=model.key in last_of_family)
    return table

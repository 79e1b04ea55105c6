"""Markdown, CSV and LaTeX, each read back by something else than what wrote it."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from statistics import fmean

import pytest
from markdown_it import MarkdownIt

import outcome_samples
from plap.experiments.table_report import table_report
from plap.experiments.table_result import Cell, TableResult
from plap.reporting import table_files

HOSTILE = r"""a|b*c_d`e` <i>[f](g) #1 50% & $x$ ~{h}^\i, "j" """.strip()


def csv_text(result: TableResult) -> str:
    return table_files.csv_text(table_report(result))


def latex(result: TableResult) -> str:
    return table_files.latex(table_report(result))


def markdown(result: TableResult, picture: str | None = None) -> str:
    return table_files.markdown(table_report(result), picture)


def hostile() -> TableResult:
    """A table whose every text is made of signs."""
    result = outcome_samples.sample("ppi")
    cell = replace(
        result.cells[0], model=HOSTILE, dataset=HOSTILE, problem=HOSTILE, config={HOSTILE: HOSTILE}
    )
    return replace(
        result,
        title=HOSTILE,
        unit=HOSTILE,
        models=(HOSTILE,),
        datasets=(HOSTILE,),
        families=((HOSTILE,),),
        cells=(cell,),
        rules=(HOSTILE, f"# {HOSTILE}"),
        notes=(HOSTILE,),
    )


def rendered(text: str) -> str:
    return str(MarkdownIt("commonmark", {"html": True}).enable("table").render(text))


def table_of(html: str, which: int = 0) -> list[list[str]]:
    """Cells of one table of a page."""
    body = re.findall(r"<table>(.*?)</table>", html, re.DOTALL)[which]
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in body.split("</tr>")[:-1]]


@pytest.mark.parametrize("name", outcome_samples.OF_THE_PAPER)
def test_markdown_has_every_cell_beside_the_published_one(name: str) -> None:
    result = outcome_samples.sample(name)
    rows = table_of(rendered(markdown(result)))
    assert len(rows) == 1 + len(result.models)
    for model, row in zip(result.models, rows[1:], strict=True):
        for dataset, shown in zip(result.datasets, row[1:], strict=True):
            text = outcome_samples.text_of(result, result.cell(model, dataset))
            ours, theirs = shown.split("<br>")
            strong = {"best": "<strong>{}</strong>", "near": "<ins><strong>{}</strong></ins>", "": "{}"}
            assert ours.split(" ± ")[0].split()[0] == strong[text.mark].format(text.mean)
            assert strong[text.published_mark].format(text.published_mean) in theirs
            assert text.symbol in ours
            assert text.ratio in ours


def test_markdown_shows_signs_as_they_are() -> None:
    page = rendered(markdown(hostile()))
    escaped = HOSTILE.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    assert table_of(page)[0][1] == escaped
    assert table_of(page)[1][0] == escaped
    assert f"<h1>{escaped}</h1>" in page
    assert f"<li>{escaped}</li>" in page
    assert f"<li># {escaped}</li>" in page
    assert "<i>" not in page
    assert "<a " not in page


def test_markdown_shows_the_picture_and_the_differences() -> None:
    result = outcome_samples.sample("csbm-dense")
    page = rendered(markdown(result, "my table-curve.svg"))
    assert '<img src="my%20table-curve.svg"' in page
    rows = table_of(page, 1)[1:]
    assert len(rows) == sum(result.agreement(cell) in ("above", "below") for cell in result.cells)
    distances = [float(row[-2].replace("−", "-")) for row in rows]
    assert distances == sorted(distances, key=lambda value: -abs(value))
    assert all((row[0] == "▲") == (value > 0) for row, value in zip(rows, distances, strict=True))


def read(result: TableResult) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(csv_text(result), newline=""), strict=True))


@pytest.mark.parametrize("name", ["homophilic", "noisy-homophilic", "time-homophilic"])
def test_csv_has_all_digits_of_every_cell(name: str) -> None:
    result = outcome_samples.sample(name)
    rows = read(result)
    assert len(rows) == len(result.cells)
    for row, cell in zip(rows, result.cells, strict=True):
        assert (row["model"], row["dataset"], int(row["runs"])) == (
            cell.model,
            cell.dataset,
            len(cell.values),
        )
        assert row["mark"] == result.mark(cell)
        low, high = cell.interval or (None, None)
        for column, value in (("mean", cell.mean), ("std", cell.deviation), ("low", low), ("high", high)):
            assert row[column] == ("" if value is None else repr(value))
        assert cell.published is not None
        assert row["published_mean"] == str(cell.published.mean or "")
        assert row["published_out_of_memory"] == ("yes" if cell.published.out_of_memory else "")
        assert row["config_lr"] == ("0.01" if cell.values else "")
        assert row["config_mu"] == ("0.1" if "pgnn" in cell.model else "")
        assert row["problem"] == (cell.problem or "")
        assert (int(row["tried"]), int(row["grid"])) == (cell.tried, cell.grid)


def test_csv_of_scores_has_differences_and_of_times_ratios() -> None:
    for row, cell in zip(read(scores := outcome_samples.sample("homophilic")), scores.cells, strict=True):
        assert row["difference"] == ("" if cell.difference is None else repr(cell.difference))
        assert row["agreement"] == scores.agreement(cell).replace("unknown", "")
        assert "ratio_to_mlp" not in row
    times = outcome_samples.sample("time-homophilic")
    timed = Cell("gcn", "cora", (4.0,), totals=(1.0, 2.0), published=times.cell("gcn", "cora").published)
    times = replace(times, cells=tuple(timed if c is times.cell("gcn", "cora") else c for c in times.cells))
    row = next(row for row in read(times) if (row["model"], row["dataset"]) == ("gcn", "cora"))
    assert float(row["ratio_to_mlp"]) == 4.0 / fmean(times.cell("mlp", "cora").values)
    assert float(row["published_ratio_to_mlp"]) == pytest.approx(82.2 / 7.7)
    assert (row["run_seconds"], row["published_run_seconds"]) == ("1.5", "6.1")
    assert (row["difference"], row["agreement"]) == ("", "")


def test_csv_survives_signs_and_line_breaks() -> None:
    result = hostile()
    problem = 'two\nlines, "quoted"\r\n'
    result = replace(result, cells=(replace(result.cells[0], problem=problem),))
    (row,) = read(result)
    assert row["model"] == HOSTILE
    assert row[f"config_{HOSTILE}"] == HOSTILE
    assert row["problem"] == problem
    assert csv_text(result).endswith("\r\n")


def tabulars(text: str) -> list[list[list[str]]]:
    """Cells of every tabular, by row."""
    found = []
    for body in re.findall(r"\\begin\{tabular\}\{l(c+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        lines = [line.removesuffix(r" \\") for line in body[1].splitlines() if line.endswith(r" \\")]
        rows = [re.split(r"(?<!\\) ?& ?", line) for line in lines]
        assert {len(row) for row in rows} == {1 + len(body[0])}
        found.append(rows)
    return found


@pytest.mark.parametrize("name", outcome_samples.OF_THE_PAPER)
def test_latex_has_every_cell_beside_the_published_one(name: str) -> None:
    result = outcome_samples.sample(name)
    blocks = tabulars(latex(result))
    bodies = [block[-2 * len(result.models) :] for block in blocks]
    for position, model in enumerate(result.models):
        ours = [cell for body in bodies for cell in body[2 * position][1:]]
        theirs = [cell for body in bodies for cell in body[2 * position + 1][1:]]
        assert {body[2 * position + 1][0] for body in bodies} == {r"\quad published"}
        for dataset, mine, other in zip(result.datasets, ours, theirs, strict=True):
            text = outcome_samples.text_of(result, result.cell(model, dataset))
            assert mine == number(text.mean, text.deviation, text.mark, text.ratio)
            expected = number(
                text.published_mean, text.published_deviation, text.published_mark, text.published_ratio
            )
            assert other == rf"\scriptsize {expected}"


def number(mean: str, deviation: str, mark: str, ratio: str) -> str:
    if mean in ("OOM", "–"):
        return mean.replace("–", "--")
    strong = {"best": r"\mathbf{%s}", "near": r"\underline{\mathbf{%s}}", "": "%s"}[mark] % mean
    behind = rf" ({ratio.replace('×', '')}$\times$)" if ratio else ""
    return f"${strong}" + (rf"_{{\pm {deviation}}}$" if deviation else "$") + behind


def test_latex_breaks_wide_tables_as_the_paper_does() -> None:
    widths = {name: [len(block[0]) - 1 for block in tabulars(latex(outcome_samples.sample(name)))] for name in
              ("noisy-homophilic", "csbm-sparse", "homophilic", "ppi", "time-homophilic")}  # fmt: skip
    assert widths == {
        "noisy-homophilic": [6, 6], "csbm-sparse": [5, 4], "homophilic": [7], "ppi": [1],
        "time-homophilic": [4, 3],  # a ratio stands beside every time
    }  # fmt: skip


def test_latex_rules_off_families() -> None:
    assert latex(outcome_samples.sample("plug-in-homophilic")).count(r"\midrule") == 2
    assert latex(outcome_samples.sample("homophilic")).count(r"\midrule") == 1


def test_families_that_lost_rows_are_still_apart() -> None:
    """As after a selection of models: the families are the table's, the rows only some of theirs."""
    result = outcome_samples.sample("plug-in-homophilic")
    models = ("gcn", "gcn+pgnn-1.0", "jknet+pgnn-1.0", "jknet+pgnn-2.0")
    cells = tuple(cell for cell in result.cells if cell.model in models)
    assert latex(replace(result, models=models, cells=cells)).count(r"\midrule") == 2
    one = replace(result, models=models[:2], cells=cells[: 2 * len(result.datasets)])
    assert latex(one).count(r"\midrule") == 1
    assert "best in its column" in latex(one)


@pytest.mark.parametrize(
    "result", [hostile(), outcome_samples.sample("csbm-sparse")], ids=["hostile", "csbm"]
)
def test_latex_is_balanced_and_escaped(result: TableResult) -> None:
    text = latex(result)
    body = text.split("\n", 1)[1]
    bare = re.sub(r"\\[\\{}$&%#_]", "", body)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    assert not re.search(r"[%#~]", bare)
    outside_formulas = re.sub(r"\$[^$]*\$", "", bare)
    assert not re.search(r"[_^φ−±×≈–]", outside_formulas)
    assert body.count(r"\begin{tabular}") == body.count(r"\end{tabular}")


def test_latex_rows_do_not_begin_with_an_argument() -> None:
    result = hostile()
    for name in ("[2pt]", "*"):
        cell = replace(result.cells[0], model=name)
        text = latex(replace(result, models=(name,), families=((name,),), cells=(cell,)))
        assert not re.search(r"\\\\\s*[\[*]", text)

"""Names, numbers and sentences, which all formats share."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

import outcome_samples
from plap.data.benchmarks.registry import BENCHMARKS
from plap.experiments.published import PublishedCell
from plap.experiments.table_report import dataset_lines, dataset_name, table_report
from plap.experiments.table_result import Cell, TableResult
from plap.experiments.tables import load_table, table_names
from plap.reporting.table_content import ResultCell
from plap.reporting.table_texts import differing, explanations, problems, summary


def ratios(result: TableResult, cell: Cell) -> tuple[float | None, float | None]:
    shown: ResultCell = table_report(result).cell(cell.model, cell.dataset)
    return shown.ratio, shown.published_ratio


def changed(result: TableResult, model: str, dataset: str, **fields: object) -> TableResult:
    """The result with other fields of one cell."""
    old = result.cell(model, dataset)
    return replace(result, cells=tuple(replace(c, **fields) if c is old else c for c in result.cells))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", table_names())
def test_every_model_and_dataset_of_the_paper_has_a_name(name: str) -> None:
    table = load_table(name)
    models, datasets = [*table.labels.values()], [*map(dataset_name, table.datasets)]
    assert len(set(models)) == len(models)
    assert len(set(datasets)) == len(datasets)
    assert not set(models) & set(table.models)
    assert not set(datasets) & set(table.datasets) - {"ogbn-arxiv"}


def test_every_benchmark_has_a_name() -> None:
    names = {dataset: dataset_name(dataset) for dataset in BENCHMARKS}
    assert [dataset for dataset, name in names.items() if dataset == name] == ["ogbn-arxiv"]


@pytest.mark.parametrize(
    "name", ["my-model", "gcn+mine", "pgnn-x", "+", "", "pgnn-", "MLP", "a/b:c", "my_graph:r=0.5"]
)
def test_what_a_user_named_stays(name: str) -> None:
    assert dataset_name(name) == name


def test_names_of_the_longer_rows() -> None:
    ppi, arxiv = load_table("ppi").labels, load_table("ogbn-arxiv").labels
    assert ppi["pgnn-2.5-512"] == "pGNN p = 2.5, 512 units"
    assert (ppi["gat-1-head"], ppi["gat-4-heads"]) == ("GAT 1 head", "GAT 4 heads")
    assert arxiv["gcn+residual-8+cs-v2"] == "GCN + residual 8 + C&S v2"
    assert arxiv["pgnn-2.0+residual-6+cs"] == "pGNN 2.0 + residual 6 + C&S"
    assert load_table("plug-in-homophilic").labels["jknet+pgnn-1.0"] == "JKNet + pGNN 1.0"
    assert dataset_name("csbm:phi=-1,n=100,r=0.5") == "cSBM φ = −1, n = 100, r = 0.5"


def test_a_protocol_that_opens_another_dataset_says_so() -> None:
    assert dataset_lines("cornell-2021", "paper") == ("Cornell", "(before July 2022)")
    assert dataset_lines("cornell-2021:r=1", "sound") == ("Cornell", "r = 1")


def test_numbers_have_the_digits_of_the_paper() -> None:
    ppi = changed(outcome_samples.sample("ppi"), "gat-1-head", "ppi", values=(0.95, 0.9512))
    text = outcome_samples.text_of(ppi, ppi.cell("gat-1-head", "ppi"))
    assert (text.ours, text.published) == ("0.951 ± 0.001", "0.917 ± 0.041")
    cora = changed(outcome_samples.sample("homophilic"), "mlp", "cora", values=(50.0, 52.0))
    text = outcome_samples.text_of(cora, cora.cell("mlp", "cora"))
    assert (text.ours, text.published, text.difference) == ("51.00 ± 1.41", "43.47 ± 3.82", "+7.53")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0.0512,), "0.051"),
        ((0.512,), "0.512"),
        ((5.125, 5.125), "5.12 ± 0.00"),
        ((51.24,), "51.2"),
        ((1234.5, 1235.5), "1235 ± 1"),
        ((0.0,), "0.0"),
    ],
)
def test_times_have_three_digits_that_count(values: tuple[float, ...], expected: str) -> None:
    result = changed(outcome_samples.sample("time-homophilic"), "gcn", "cora", values=values)
    assert outcome_samples.text_of(result, result.cell("gcn", "cora")).ours == expected


def test_times_are_multiples_of_the_mlp_s() -> None:
    result = outcome_samples.sample("time-heterophilic")
    for dataset in result.datasets:
        reference, cell = result.cell("mlp", dataset), result.cell("pgnn-1.5", dataset)
        assert cell.mean
        assert reference.mean
        assert cell.published
        assert reference.published
        assert cell.published.mean is not None
        assert reference.published.mean is not None
        ours, theirs = ratios(result, cell)
        assert ours == pytest.approx(cell.mean / reference.mean)
        assert theirs == pytest.approx(float(cell.published.mean / reference.published.mean))
        assert ratios(result, reference) == (1.0, 1.0)
    text = outcome_samples.text_of(result, result.cell("gcn", "chameleon"))
    assert text.published_ratio == "10.8×"


def test_there_are_no_ratios_without_the_mlp_or_its_time() -> None:
    result = outcome_samples.sample("time-heterophilic")
    without_values = changed(result, "mlp", "texas", values=())
    assert ratios(without_values, without_values.cell("gcn", "texas"))[0] is None
    without_row = replace(result, models=result.models[1:], cells=result.cells[len(result.datasets) :])
    assert ratios(without_row, without_row.cell("gcn", "texas")) == (None, None)
    scores = outcome_samples.sample("heterophilic")
    assert ratios(scores, scores.cells[0]) == (None, None)


def test_times_of_two_machines_neither_agree_nor_differ() -> None:
    result = outcome_samples.sample("time-homophilic")
    assert {outcome_samples.text_of(result, cell).symbol for cell in result.cells} == {""}
    assert differing(table_report(result)) == ()
    assert summary(table_report(result)) == "75 of 77 cells have values."
    assert "Times on two machines cannot be compared" in " ".join(explanations(table_report(result)))


def test_missing_cells() -> None:
    result = outcome_samples.sample("homophilic")
    memory = outcome_samples.text_of(result, result.cell("sgc", "physics"))
    assert (memory.ours, memory.published, memory.agreement) == ("OOM", "OOM", "unknown")
    assert outcome_samples.text_of(result, result.cell("gat", "physics")).ours == "–"
    nothing = changed(result, "gat", "physics", problem="its files are missing", published=PublishedCell())
    text = outcome_samples.text_of(nothing, nothing.cell("gat", "physics"))
    assert (text.ours, text.published) == ("–", "")


def test_published_marks_are_the_paper_s() -> None:
    result = outcome_samples.sample("heterophilic")
    assert outcome_samples.text_of(result, result.cell("mlp", "squirrel")).published_mark == "best"
    assert outcome_samples.text_of(result, result.cell("pgnn-2.5", "chameleon")).published_mark == "near"
    assert outcome_samples.text_of(result, result.cell("gcn", "texas")).published_mark == ""


def test_problems_name_all_that_share_them() -> None:
    result = outcome_samples.sample("noisy-homophilic")
    assert problems(table_report(result)) == (
        "SGC on Physics r = 0.25, Physics r = 0.5 and Physics r = 1: out of memory: 12.4 GB were asked for.",
    )
    missing = replace(
        result,
        cells=tuple(
            Cell(c.model, c.dataset, problem="no files.") if c.dataset == "cs:r=1" else c
            for c in result.cells
        ),
    )
    assert "All models on CS r = 1: no files." in problems(table_report(missing))
    assert "JKNet on Texas: 1 run ended in NaN or infinity (including the search)." in problems(
        outcome_samples.report("heterophilic")
    )


def test_summary_counts_what_agrees() -> None:
    result = outcome_samples.sample("heterophilic")
    counts = dict.fromkeys(("agrees", "above", "below", "unknown"), 0)
    for cell in result.cells:
        counts[result.agreement(cell)] += 1
    assert min(counts.values()) > 0
    said = summary(table_report(result))
    assert f"Of {66 - counts['unknown']} cells with a published value, {counts['agrees']} agree" in said
    assert f"above it and {counts['below']} below it." in said
    one = table_report(result)
    one = replace(one, cells=tuple(cell for cell in one.cells if cell.agreement == "agrees")[:1])
    assert "Of 1 cell with a published value, 1 agrees with it, 0 are above it" in summary(one)
    own = replace(result, cells=tuple(replace(cell, published=None) for cell in result.cells))
    assert summary(table_report(own)) == "65 of 66 cells have values."


def test_the_farthest_cells_come_first() -> None:
    result = outcome_samples.sample("csbm-dense")
    found = differing(table_report(result))
    assert {cell.agreement for cell in found} == {"above", "below"}
    assert len(found) == sum(result.agreement(cell) in ("above", "below") for cell in result.cells)
    distances = [abs(cell.difference or 0) for cell in found]
    assert distances == sorted(distances, reverse=True)


def test_a_difference_has_a_minus_sign() -> None:
    result = outcome_samples.sample("homophilic")
    result = changed(result, "mlp", "cora", values=(40.0,), published=PublishedCell(Decimal("43.47")))
    assert outcome_samples.text_of(result, result.cell("mlp", "cora")).difference == "−3.47"

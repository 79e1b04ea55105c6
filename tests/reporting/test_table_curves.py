"""The curves: what is in them, and that nothing leaves the picture."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import matplotlib.image
import pytest

import outcome_samples
from headless import contrast
from plap.experiments.table_report import table_report
from plap.experiments.table_result import Cell, TableResult
from plap.reporting.palette import LineStyle, model_styles
from plap.reporting.svg_figures import mean_figure
from plap.reporting.table_content import Panel
from plap.reporting.table_files import table_files

CURVED = ["csbm-dense", "csbm-sparse", "noisy-heterophilic", "noisy-homophilic"]


def panels(result: TableResult) -> tuple[Panel, ...]:
    return table_report(result).panels


def styles_of(result: TableResult) -> tuple[LineStyle, ...]:
    return model_styles(model.highlighted for model in table_report(result).models)


def render_files(result: TableResult) -> dict[str, bytes]:
    return table_files(table_report(result))


def own(datasets: tuple[str, ...], curve: str | None = "r", full_score: float = 100.0) -> TableResult:
    """One model; the position of a dataset is its score."""
    cells = tuple(Cell("mlp", dataset, (10.0 * k, 10.0 * k + 2)) for k, dataset in enumerate(datasets))
    return TableResult(
        name="own table",
        title="Own",
        unit="accuracy in %",
        measure="score",
        models=("mlp",),
        datasets=datasets,
        families=(("mlp",),),
        cells=cells,
        protocol="sound",
        rules=(),
        curve=curve,
        full_score=full_score,
    )


def test_a_panel_for_each_dataset() -> None:
    found = panels(outcome_samples.sample("noisy-homophilic"))
    assert [panel.name for panel in found] == ["Computers", "Photo", "CS", "Physics"]
    assert {panel.places for panel in found} == {(0.25, 0.5, 1.0)}
    (csbm,) = panels(outcome_samples.sample("csbm-sparse"))
    assert csbm.places == (-1.0, -0.75, -0.5, -0.25, 0.0, 0.25, 0.5, 0.75, 1.0)


@pytest.mark.parametrize("name", CURVED)
def test_points_are_the_cells(name: str) -> None:
    result = outcome_samples.sample(name)
    shown = panels(result)
    for row, model in enumerate(result.models):
        cells = [result.cell(model, dataset) for dataset in result.datasets]
        ours = [point.mean for panel in shown for point in panel.series[row].ours]
        theirs = [point.mean for panel in shown for point in panel.series[row].published]
        assert ours == [cell.mean for cell in cells if cell.mean is not None]
        assert theirs == [
            float(c.published.mean) for c in cells if c.published and c.published.mean is not None
        ]
    for panel in shown:
        for series in panel.series:
            assert all(0 <= point.low <= point.mean <= point.high <= 100 for point in series.ours)


def test_datasets_are_put_in_order_and_without_noise_at_zero() -> None:
    (cora,) = panels(own(("cora:r=0.5", "cora", "cora:r=0.25")))
    assert [(point.at, point.mean) for point in cora.series[0].ours] == [(0, 11), (0.25, 21), (0.5, 1)]


def test_other_parameters_set_panels_apart() -> None:
    found = panels(
        own(("csbm:phi=0,n=10", "csbm:phi=1,n=10", "csbm:n=20,phi=1", "cora", "csbm:phi=x"), "phi")
    )
    assert [(panel.name, panel.places) for panel in found] == [
        ("cSBM n = 10", (0.0, 1.0)),
        ("cSBM n = 20", (1.0,)),
    ]


def test_no_parameter_no_curve() -> None:
    assert panels(own(("cora:r=0.5",), None)) == ()
    assert panels(replace(own(("cora:r=1",)), cells=(Cell("mlp", "cora:r=1"),))) == ()


@pytest.mark.parametrize("high", [100.0, 1.0])
def test_intervals_end_where_scores_do(high: float) -> None:
    result = own(("cora:r=1",), full_score=high)
    result = replace(result, cells=(Cell("mlp", "cora:r=1", (0.9 * high, high)),))
    (point,) = panels(result)[0].series[0].ours
    assert point.low == pytest.approx(0.31469 * high, rel=1e-4)
    assert point.high == high
    low = replace(result, cells=(Cell("mlp", "cora:r=1", (0.0, 0.1 * high)),))
    assert panels(low)[0].series[0].ours[0].low == 0


@pytest.mark.parametrize("name", CURVED)
def test_nothing_leaves_the_picture(name: str) -> None:
    result = outcome_samples.sample(name)
    shown = panels(result)
    styles = styles_of(result)
    for panel in shown:
        figure = mean_figure(panel, styles, large=len(shown) == 1)
        for line in figure.lines:
            places = [float(part) for part in re.findall(r"-?[\d.]+", f"{line.path} {line.dashed}")]
            assert all(figure.left < x < figure.right for x in places[::2])
            assert all(figure.top <= y <= figure.bottom for y in places[1::2])
            assert all(figure.top <= dot.high <= dot.y <= dot.low <= figure.bottom for dot in line.marks)
        assert [tick.text for tick in figure.x_ticks][-1] == "1"


def test_higher_scores_lie_higher() -> None:
    result = own(("cora:r=0", "cora:r=0.5", "cora:r=1"))
    (line,) = mean_figure(panels(result)[0], styles_of(result), large=True).lines
    assert [dot.y for dot in line.marks] == sorted((dot.y for dot in line.marks), reverse=True)
    assert "95 % confidence interval" in line.marks[0].title


def test_a_title_names_the_published_number() -> None:
    result = outcome_samples.sample("csbm-sparse")
    figure = mean_figure(panels(result)[0], styles_of(result), large=True)
    assert figure.lines[0].marks[0].title.startswith("MLP at −1: ")
    assert figure.lines[0].marks[0].title.endswith("; published 49.72")


def test_no_two_models_look_the_same() -> None:
    styles = model_styles(k % 3 == 0 for k in range(45))
    assert len({(style.light, style.marker) for style in styles}) == 45
    assert len({(style.dark, style.marker) for style in styles}) == 45


def test_colours_stand_out_on_both_pages() -> None:
    def rgb(code: str) -> str:
        return f"rgb({', '.join(str(int(code[k : k + 2], 16)) for k in (1, 3, 5))})"

    for style in styles_of(outcome_samples.sample("csbm-sparse")):
        assert contrast(rgb(style.light), rgb("#fcfcfb")) >= 3
        assert contrast(rgb(style.dark), rgb("#14181b")) >= 3


@pytest.mark.parametrize("name", ["csbm-sparse", "noisy-heterophilic"])
def test_pictures_are_whole(name: str) -> None:
    files = render_files(outcome_samples.sample(name))
    root = ElementTree.fromstring(files[f"{name}-curve.svg"])
    assert root.tag.endswith("svg")
    picture = matplotlib.image.imread(io.BytesIO(files[f"{name}-curve.png"]))
    assert picture.shape[0] > 400
    assert picture.shape[1] > 1000
    assert picture[..., :3].std() > 0.05


def test_files_of_every_kind_and_the_same_each_time() -> None:
    result = outcome_samples.sample("noisy-heterophilic")
    files = render_files(result)
    assert set(files) == {
        f"noisy-heterophilic{end}" for end in (".md", ".csv", ".tex", ".html", "-curve.svg", "-curve.png")
    }
    assert render_files(result) == files
    assert b"](noisy-heterophilic-curve.svg)" in files["noisy-heterophilic.md"]
    plain = outcome_samples.sample("heterophilic")
    assert set(render_files(plain)) == {f"heterophilic{end}" for end in (".md", ".csv", ".tex", ".html")}


def test_formulas_in_names_are_not_set_as_such() -> None:
    result = replace(own(("a$b:r=0.5", "a$b:r=1")), title="$\\broken{", unit="$x")
    assert render_files(result)["own table-curve.png"].startswith(b"\x89PNG")

"""Every picture: its data against saved data, what is drawn against its data, its files.

The saved data is what ``write_figure(name, "tests/reporting/golden", **OPTIONS[name])`` writes as NAME.csv.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import matplotlib.figure
import numpy as np
import polars as pl
import pytest
from PIL import Image
from sklearn.manifold import trustworthiness

import plap
import problems
from plap.insight import members_of, node_embeddings
from plap.reporting.figures import FIGURES, FigureOptions, PaperFigure, find_figure, write_figure
from plap.reporting.figures.figure import ALL, HOMOPHILIC, best_runs, open_case, pgnn_configs
from plap.reporting.figures.filter_responses import draw_responses
from plap.reporting.picture import plain
from plap.spectral import response_curves, response_table

TINY = "csbm:phi=0.5,n=60,f=12,seed=1"
OPTIONS: dict[str, dict[str, Any]] = {
    "entropy": {"datasets": [TINY], "quick": True, "epochs": 5},
    "training-curves": {"datasets": [TINY], "quick": True, "epochs": 5, "seeds": 2},
    "embeddings": {"datasets": [TINY], "quick": True, "epochs": 5},
    "gradient-example": {},
    "risk-bound": {"quick": True},
    "edge-trust": {"datasets": [TINY], "quick": True, "epochs": 5, "seeds": 2},
    "adaptive-attack": {"datasets": [TINY], "quick": True, "epochs": 5},
    "filters": {"datasets": [TINY]},
}
GOLDEN = Path(__file__).parent / "golden"


def golden(name: str) -> pl.DataFrame:
    return pl.read_csv(GOLDEN / f"{name}.csv")


@pytest.fixture(scope="module")
def computed() -> dict[str, pl.DataFrame]:
    return {name: FIGURES[name].compute(FigureOptions(**options)) for name, options in OPTIONS.items()}


def assert_like(found: pl.DataFrame, saved: pl.DataFrame, tolerance: float) -> None:
    """Equal but for rounding; numbers of another machine differ in their last digits."""
    assert found.columns == saved.columns
    for name in saved.columns:
        if saved[name].dtype == pl.String:
            assert found[name].to_list() == saved[name].to_list(), name
        else:
            ours, theirs = (column.cast(pl.Float64).to_numpy() for column in (found[name], saved[name]))
            np.testing.assert_allclose(ours, theirs, atol=tolerance, err_msg=name)


def test_every_figure_has_options_here() -> None:
    assert list(OPTIONS) == list(FIGURES)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [("gradient-example", 1e-12), ("risk-bound", 2e-6), ("training-curves", 1e-3), ("filters", 1e-5)],
)
def test_data_is_as_saved(name: str, tolerance: float, computed: dict[str, pl.DataFrame]) -> None:
    assert_like(computed[name], golden(name), tolerance)


def test_data_of_entropy_is_as_saved_but_for_nodes_at_the_edge_of_a_bin(
    computed: dict[str, pl.DataFrame],
) -> None:
    found, saved = computed["entropy"], golden("entropy")
    assert_like(found.drop("nodes"), saved.drop("nodes"), 2e-3)
    moved = (found["nodes"] - saved["nodes"]).abs().sum()
    assert moved <= 6
    connected = saved.filter(pl.col("model") == "uniform")["nodes"].sum()
    totals = found.group_by("model", "measure").agg(pl.col("nodes").sum() + pl.col("nothing").first())
    assert totals["nodes"].to_list() == [connected] * totals.height


def test_data_of_embeddings_is_as_saved_and_its_planes_keep_neighbours(
    computed: dict[str, pl.DataFrame],
) -> None:
    found, saved = computed["embeddings"], golden("embeddings")
    assert_like(found.drop("x", "y"), saved.drop("x", "y"), 0.2)
    assert found["node"].to_list() == saved["node"].to_list()
    options = FigureOptions(**OPTIONS["embeddings"])
    case = open_case(TINY, options)
    run = best_runs(case, [pgnn_configs(1.0, options)])
    states = node_embeddings(members_of(run, 12, 2)[0], case.data.x, case.data.graph)
    plane = found.filter(pl.col("model") == "p = 1")
    assert plane.height == 60
    rows = states[plane["node"].to_list()].numpy()
    assert trustworthiness(rows, plane.select("x", "y").to_numpy(), metric="cosine") > 0.85


def test_data_of_edge_trust_is_as_saved(computed: dict[str, pl.DataFrame]) -> None:
    found, saved = computed["edge-trust"], golden("edge-trust")
    exact = pl.col("score").is_in(["cosine", "jaccard"])
    assert_like(found.filter(exact), saved.filter(exact), 1e-6)
    assert_like(found, saved, 0.05)


def test_data_of_the_attack_is_as_saved(computed: dict[str, pl.DataFrame]) -> None:
    found, saved = computed["adaptive-attack"], golden("adaptive-attack")
    assert_like(found, saved, 0.1)
    before, after = (found.filter(pl.col("budget") == 0), found.filter(pl.col("budget") > 0))
    assert before.height == after.height == 6  # two attacks on three models
    assert bool((after["accuracy"] <= before["accuracy"]).all())


def drawn(name: str) -> tuple[matplotlib.figure.Figure, pl.DataFrame]:
    data = golden(name)
    return FIGURES[name].draw(data), data


def test_entropy_is_drawn_as_it_is() -> None:
    figure, data = drawn("entropy")
    models = [name for name in data["model"].unique(maintain_order=True) if name != "uniform"]
    assert [axes.get_title() for axes in figure.axes] == [f"{TINY}, {model}" for model in models]
    for axes, model in zip(figure.axes, models, strict=True):
        rows = data.filter((pl.col("model") == model) & (pl.col("measure") == "normalised"))
        shown = [patch.get_data() for patch in axes.patches]  # type: ignore[attr-defined]
        np.testing.assert_array_equal(shown[0].values, rows["nodes"])
        np.testing.assert_allclose(shown[0].edges[:-1], rows["low"])
        uniform = data.filter(pl.col("model") == "uniform")
        np.testing.assert_array_equal(shown[1].values, uniform["nodes"])
        assert len(shown) == (2 if model == "GAT" else 3)
        assert f"mean {rows['mean'][0]:.2f}, uniform {uniform['mean'][0]:.2f}" in axes.texts[0].get_text()


def test_training_curves_are_drawn_as_they_are() -> None:
    figure, data = drawn("training-curves")
    loss, accuracy = figure.axes
    assert loss.get_title() == f"{TINY}, μ = 0.1"
    for seed in (0, 1):
        run = data.filter(pl.col("seed") == seed)
        np.testing.assert_allclose(np.asarray(loss.lines[seed].get_ydata()), run["train_loss"])
        np.testing.assert_allclose(np.asarray(accuracy.lines[seed].get_ydata()), 100 * run["test_accuracy"])
        np.testing.assert_allclose(np.asarray(loss.lines[seed].get_xdata()), [1, 2, 3, 4, 5])


def test_embeddings_are_drawn_as_they_are() -> None:
    figure, data = drawn("embeddings")
    assert len(figure.axes) == 5
    assert [axes.get_title().split(": ")[0] for axes in figure.axes][-1] == f"{TINY}, GCN"
    for axes, model in zip(figure.axes, data["model"].unique(maintain_order=True), strict=True):
        for label, points in enumerate(axes.collections):
            rows = data.filter((pl.col("model") == model) & (pl.col("label") == label))
            np.testing.assert_allclose(
                np.asarray(points.get_offsets()), rows.select("x", "y").to_numpy(), rtol=1e-6
            )


def test_the_gradient_example_shows_its_numbers() -> None:
    figure, data = drawn("gradient-example")
    left, right = figure.axes
    nodes, edges = (data.filter(pl.col("kind") == kind) for kind in ("node", "edge"))
    written = sorted(text.get_text() for text in left.texts if text.get_text())
    assert written == sorted(f"{abs(value):g}" for value in (*nodes["value"], *edges["gradient"]))
    signs = {text.get_text().replace("−", "-") for text in right.texts}
    assert {f"{value:+g}" if value else "0" for value in nodes["divergence"]} <= signs


def test_the_gradient_example_by_hand() -> None:
    """Hubs 0 and 4 have degree 4, so they are compared as f/2 = 2 and 4 with their leaves."""
    data = golden("gradient-example")
    edges = data.filter(pl.col("kind") == "edge").sort("target", "source")
    assert edges["source"].to_list() == [1, 2, 3, 4, 5, 6, 7]
    assert edges["target"].to_list() == [0, 0, 0, 0, 4, 4, 4]
    assert edges["gradient"].to_list() == [2 - 1, 2 - 5, 2 - 2, 2 - 4, 4 - 6, 4 - 3, 4 - 4]
    divergence = data.filter(pl.col("kind") == "node")["divergence"].to_list()
    assert divergence == [-1 + 3 + 0 + 2, 2, -6, 0, -2 + 2 - 1 + 0, -4, 2, 0]


def test_the_risk_bound_is_drawn_as_it_is() -> None:
    figure, data = drawn("risk-bound")
    assert [axes.get_title() for axes in figure.axes] == ["p = 1", "p = 1.5", "p = 2", "p = 2.5"]
    for axes, p in zip(figure.axes, (1.0, 1.5, 2.0, 2.5), strict=True):
        ours = data.filter((pl.col("p") == p) & (pl.col("form") == "lipschitz"))
        np.testing.assert_allclose(np.asarray(axes.lines[0].get_ydata()), ours["risk"])
        assert bool((ours["risk"] <= ours["features"] + ours["diffusion"] + ours["noise"]).all())


def test_edge_trust_is_drawn_as_it_is() -> None:
    figure, data = drawn("edge-trust")
    for axes, rate in zip(figure.axes, (0.25, 0.5), strict=True):
        means = (
            data.filter(pl.col("rate") == rate)
            .group_by("score", maintain_order=True)
            .agg(pl.col("auc").mean())
        )
        heights = [patch.get_height() for patch in axes.patches]  # type: ignore[attr-defined]
        np.testing.assert_allclose(heights, means["auc"])


def test_the_attack_is_drawn_as_it_is() -> None:
    figure, data = drawn("adaptive-attack")
    for axes, attack in zip(figure.axes, ("all test nodes", "single nodes"), strict=True):
        rows = data.filter(pl.col("attack") == attack)
        models = rows["model"].unique(maintain_order=True).to_list()
        assert [line.get_label() for line in axes.lines[::2]] == models
        for model, line, dotted in zip(models, axes.lines[::2], axes.lines[1::2], strict=True):
            mine = rows.filter(pl.col("model") == model)
            np.testing.assert_allclose(np.asarray(line.get_ydata()), 100 * mine["accuracy"])
            np.testing.assert_allclose(np.asarray(dotted.get_ydata()), 100 * mine["random"])


def test_responses_are_drawn_as_they_are() -> None:
    figure, data = drawn("filters")
    gains, coherences = figure.axes
    models = data["model"].unique(maintain_order=True).to_list()
    lines = [line for line in gains.lines if not str(line.get_label()).startswith("_")]
    assert [line.get_label() for line in lines] == models
    assert len({line.get_color() for line in lines}) == len({line.get_marker() for line in lines}) == 6
    for line, other, model in zip(lines, coherences.lines, models, strict=True):
        rows = data.filter((pl.col("model") == model) & pl.col("gain").is_not_null())
        np.testing.assert_array_equal(np.asarray(line.get_ydata()), rows["gain"])
        np.testing.assert_array_equal(np.asarray(other.get_ydata()), rows["coherence"])
    assert gains.get_ylabel()
    assert coherences.get_xlabel()
    assert [text.get_text() for text in figure.legends[0].get_texts()] == models


@pytest.mark.parametrize("ending", ["", ".png"])
def test_responses_of_one_s_own(tmp_path: Path, ending: str) -> None:
    curves = response_curves(problems.features(20, 4), problems.grid(4, 5))
    files = draw_responses(curves, tmp_path / "new" / f"fig.1{ending}", title="A grid of 4 × 5")
    assert [path.name for path in files] == ["fig.1.png", "fig.1.svg", "fig.1.csv"]
    assert sorted(files) == sorted((tmp_path / "new").iterdir())
    assert files[2].read_text() == response_table(curves)
    again = draw_responses(curves, tmp_path / "again", title="A grid of 4 × 5")
    assert again[1].read_bytes() == files[1].read_bytes()


def test_responses_that_cannot_be_drawn_are_refused(tmp_path: Path) -> None:
    curves = response_curves(problems.features(5), problems.path(5))
    with pytest.raises(plap.InputError, match="must map names to responses"):
        draw_responses(curves["p = 2"], tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(plap.InputError, match="from 1 to 7 responses, not 0"):
        draw_responses({}, tmp_path / "x")
    with pytest.raises(plap.InputError, match="from 1 to 7 responses, not 8"):
        draw_responses({f"p = {k}": curves["p = 2"] for k in range(8)}, tmp_path / "x")
    (tmp_path / "file").write_text("")
    with pytest.raises(plap.InputError, match="cannot be created"):
        draw_responses(curves, tmp_path / "file" / "x")


@pytest.mark.parametrize("name", FIGURES)
def test_files_are_whole(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PaperFigure, "compute", lambda *_: golden(name))
    written = write_figure(name, tmp_path / "new" / "folder")
    assert [path.name for path in written] == [f"{name}.png", f"{name}.svg", f"{name}.csv"]
    assert sorted(written) == sorted((tmp_path / "new" / "folder").iterdir())
    png, svg, table = (path.read_bytes() for path in written)
    assert png.startswith(b"\x89PNG")
    assert png.endswith(b"IEND\xaeB`\x82")
    assert Image.open(written[0]).mode == "P"  # a palette: small enough for a page
    assert ET.fromstring(svg).tag.endswith("svg")
    assert pl.read_csv(table).equals(golden(name), null_equal=True)


def test_files_are_the_same_again(tmp_path: Path) -> None:
    first, again = (write_figure("gradient-example", tmp_path / name) for name in ("first", "again"))
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]


def test_a_user_graph_and_names_that_look_like_formulas() -> None:
    assert plain("$x^{$") == r"\$x^{\$"
    data = golden("training-curves").with_columns(pl.lit("$x^{$").alias("dataset"))
    FIGURES["training-curves"].draw(data).canvas.draw()


def test_the_papers_sets_are_all_there() -> None:
    assert len(ALL) == 13
    options = FigureOptions()
    assert open_case(TINY, options).split.rates == (0.6, 0.2, 0.2)
    assert set(HOMOPHILIC) < set(ALL)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"seeds": 0}, "seeds must be an integer of 1 or more"),
        ({"epochs": 2.5}, "epochs must be an integer of 1 or more"),
        ({"datasets": ["no-such-set"]}, "no-such-set"),
    ],
)
def test_mistakes(arguments: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        write_figure("entropy", tmp_path, **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    with pytest.raises(plap.InputError, match="file cannot be created"):
        write_figure("entropy", tmp_path / "file")
    with pytest.raises(plap.InputError, match="did you mean entropy"):
        find_figure("entropi")
    with pytest.raises(plap.InputError, match="there are entropy, training-curves"):
        find_figure("xyz")

"""The model beside its rivals: interruptions, the paired test, and that test labels stay unseen."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

import plap
from plap.data import GraphData, Split, csbm, split
from plap.data.tables import TableOptions
from plap.data.tables.assembly import STRUCTURAL_NAMES
from plap.errors import InputError
from plap.fitting import FitResult, FitSettings, Method, fit
from plap.fitting.artifacts import load_metrics, load_model
from plap.fitting.prediction import agreement, predict_nodes, read_like

QUICK = FitSettings(search=False, seeds=2, max_epochs=15, fixed={"p": 2.5})


@pytest.fixture(scope="module")
def data() -> GraphData:
    return csbm(phi=-0.8, n=240, f=20, d=8.0, seed=3)


@pytest.fixture(scope="module")
def parts(data: GraphData) -> Split:
    return split(data, seed=1)


def interrupting(phase: str) -> Any:
    """Announces phases; presses Ctrl-C at the second epoch of one, or at its beginning if it has none."""

    def announce(name: str) -> Any:
        if name == phase == "label propagation":
            raise KeyboardInterrupt
        epochs = []

        def report(state: Any) -> None:
            epochs.append(state.epoch)
            if name == phase and len(epochs) == 2:
                signal.raise_signal(signal.SIGINT)

        return report

    return announce


def test_a_result_says_how_good_it_is_instead_of_printing_tensors(data: GraphData, parts: Split) -> None:
    found = fit(data, parts, settings=replace(QUICK, rivals=()))
    assert repr(found).startswith(f"FitResult(GraphData('{data.name}', 240 nodes, ")
    assert f"\nOn {parts.sizes[2]} held-out nodes, pGNN reaches an accuracy of " in repr(found)
    assert repr(found.predictions) == "Predictions(240 nodes, multiclass; .frame() is a table)"
    assert repr(parts) == "Split('stratified', seed=1, 144 training, 48 validation and 48 test nodes)"
    assert all("tensor(" not in repr(value) for value in (found, found.predictions, parts, data))


@pytest.mark.parametrize(
    ("phase", "left"),
    [
        ("pGNN", ["pGNN"]),
        ("MLP", ["pGNN"]),
        ("label propagation", ["pGNN", "MLP", "gradient boosting"]),
        ("", ["pGNN", "MLP", "gradient boosting", "label propagation", "majority class"]),
    ],
)
def test_ctrl_c_keeps_what_was_finished(data: GraphData, parts: Split, phase: str, left: list[str]) -> None:
    found = fit(data, parts, settings=QUICK, announce=interrupting(phase))
    assert [method.name for method in found.methods] == left
    assert found.interrupted == bool(phase)


def test_test_labels_change_nothing_but_the_scores(data: GraphData, parts: Split) -> None:
    settings = replace(QUICK, search=True, budget=200)
    poisoned = replace(data, y=torch.where(parts.test, 1 - data.y, data.y))
    honest, other = (fit(each, parts, settings=settings) for each in (data, poisoned))
    for one, two in zip(honest.methods, other.methods, strict=True):
        assert torch.equal(one.probabilities, two.probabilities)
        assert one.scores["accuracy"] == pytest.approx(1 - two.scores["accuracy"])


def test_a_rival_differs_only_beyond_chance(data: GraphData, parts: Split) -> None:
    def method(wrong: int) -> Method:
        said = data.y.clone()
        test = parts.test.nonzero().squeeze(1)
        said[test[:wrong]] = 1 - said[test[:wrong]]
        return Method("", "", torch.nn.functional.one_hot(said, 2).float(), {}, None, 0.0)

    found = FitResult(data, parts, QUICK, (method(0),))
    assert [found.differs(method(wrong)) for wrong in (0, 1, 5, 6, 20)] == [False, False, False, True, True]


def test_divergence_is_not_called_an_interruption(data: GraphData, parts: Split) -> None:
    wild = replace(QUICK, fixed={"p": 2.5, "lr": 1e38})
    with pytest.raises(InputError, match="a learning rate of 1e\\+38 diverges"):
        fit(data, parts, settings=wild)


def test_several_labels_per_node_have_micro_f1(data: GraphData, parts: Split) -> None:
    both = torch.nn.functional.one_hot(data.y, 2).float()
    found = fit(replace(data, y=both), parts, settings=QUICK)
    assert [method.name for method in found.methods] == ["pGNN", "MLP", "majority class"]
    assert list(found.model.scores) == ["micro_f1", "macro_f1", "roc_auc", "average_precision"]
    assert found.differs(found.methods[1]) in (True, False)


def test_a_result_is_what_the_command_writes(data: GraphData, parts: Split, tmp_path: Path) -> None:
    result = fit(data, parts, settings=QUICK)
    folder = result.save(tmp_path / "out")
    assert load_metrics(folder)["methods"][0]["scores"] == result.metrics["methods"][0]["scores"]
    assert load_metrics(folder)["metric"] == "accuracy"
    result.report(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_bytes() == (folder / "report.html").read_bytes()
    again = predict_nodes(load_model(folder), data)
    torch.testing.assert_close(again.probabilities, result.predict(data).probabilities)
    assert again.predicted == result.predictions.predicted


def test_a_folder_that_cannot_be_written_is_named(data: GraphData, parts: Split, tmp_path: Path) -> None:
    result = fit(data, parts, settings=replace(QUICK, rivals=()))
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=rf"^folder: {tmp_path} is not empty and holds no result of plap"):
        result.save(tmp_path)


def test_a_name_and_options_are_enough() -> None:
    result = fit("csbm:phi=-0.8,n=80,f=4,d=4", search=False, seeds=1, max_epochs=2, rivals=())
    assert result.metrics["graph"].startswith("csbm:phi=-0.8,n=80,f=4")


def test_settings_and_options_exclude_each_other(data: GraphData) -> None:
    with pytest.raises(InputError, match="give settings or seeds, not both"):
        fit(data, settings=QUICK, seeds=3)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"rivals": ("mpl",)}, r"rivals must be one of .*boosting.*, not 'mpl' \(did you mean 'mlp'\?\)"),
        ({"models": ("pgnn", "pgn")}, "model must be one of"),
        ({"models": "gcn"}, "models may be pgnn, mlp, deep-pgnn, not gcn; rivals compares with gcn"),
        ({"models": "mlp"}, "models must include pgnn; rivals compares with mlp"),
        ({"seeds": 0}, "seeds must be an integer of 1 or more"),
        ({"seeds": "a"}, "seeds must be an integer of 1 or more"),
        ({"budget": "x", "search": False}, "budget must be auto or a positive number of epochs, not 'x'"),
        ({"split": "public"}, "split must be a plap.data.Split, such as"),
    ],
)
def test_mistakes_are_found_before_anything_is_trained(
    data: GraphData, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], sentence: str
) -> None:
    monkeypatch.setattr("plap.fitting.pipeline.fit_model", lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError, match=sentence):
        fit(data, **options)


def test_a_split_of_another_graph_is_refused(data: GraphData) -> None:
    other = csbm(phi=0.5, n=30, f=4, seed=1)
    with pytest.raises(InputError, match="the split is of 30 nodes, but the graph has"):
        fit(data, split(other))


def test_one_rival_may_be_a_word(data: GraphData, parts: Split) -> None:
    result = fit(data, parts, search=False, seeds=1, max_epochs=2, rivals="majority")
    assert [method.name for method in result.methods] == ["pGNN", "majority class"]
    assert FitSettings(models="pgnn").models == ("pgnn",)  # type: ignore[arg-type]


def test_the_default_type_of_numbers_does_not_matter(data: GraphData, parts: Split, tmp_path: Path) -> None:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        result = fit(data, parts, models=("pgnn",), budget=50, seeds=1, max_epochs=2)
        result.save(tmp_path / "out")
        again = result.predict(data)
    finally:
        torch.set_default_dtype(before)
    assert len(result.methods) == 5
    assert again.probabilities.shape == result.methods[0].probabilities.shape


def test_a_saved_model_is_scored_on_its_labels(data: GraphData, parts: Split, tmp_path: Path) -> None:
    fit(data, parts, search=False, seeds=1, max_epochs=2, rivals=()).save(tmp_path / "out")
    model = plap.PGNNClassifier.load(tmp_path / "out")
    assert 0 <= model.score(data.y, data.graph, data.x) <= 1
    predicted = model.predict(data.graph, data.x)
    assert predicted.dtype == np.int64
    right = (predicted == data.y.numpy()).mean()
    assert model.score(data.y, data.graph, data.x) == right
    assert model.score(data.y.numpy().astype(str), data.graph, data.x) == right


def folder(path: Path, labels: list[str], header: str = "id,label,x") -> Path:
    path.mkdir(exist_ok=True)
    rows = [f"{k},{label},{k % 5}.5" for k, label in enumerate(labels)]
    (path / "nodes.csv").write_text("\n".join([header, *rows]))
    (path / "edges.csv").write_text(
        "source,target\n" + "\n".join(f"{k},{k + 1}" for k in range(len(rows) - 1))
    )
    return path


@pytest.mark.parametrize(
    ("fitted", "given", "known", "foreign"),
    [
        ("01", ["0.0", "1.0", ""], 27, 0),
        (["False", "True"], ["true", "false"], 40, 0),
        ("ab", ["a", "b", "Wurst", "N/A"], 20, 10),
        ("ab", ["u", "v"], 0, 40),
    ],
)
def test_labels_of_a_prediction_are_matched_or_left_out(
    tmp_path: Path, fitted: Any, given: list[str], known: int, foreign: int
) -> None:
    first = folder(tmp_path / "fit", [fitted[k % 2] for k in range(40)])
    fit(str(first), search=False, seeds=1, max_epochs=2, rivals=()).save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    data = read_like(model, str(folder(tmp_path / "new", [given[k % len(given)] for k in range(40)])))
    found = agreement(predict_nodes(model, data), data)
    assert (found.get("known", 0), found.get("foreign", 0)) == (known, foreign)
    assert ("right" in found) == (known > 0)


def test_numbers_stay_numbers_in_a_prediction(tmp_path: Path) -> None:
    first = folder(tmp_path / "fit", [f"{k}.25" for k in range(40)])
    fit(str(first), search=False, seeds=1, max_epochs=2, rivals=()).save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    data = read_like(model, str(folder(tmp_path / "new", ["1", "2", "N/A", ""])))
    assert data.task.numeric
    assert agreement(predict_nodes(model, data), data)["known"] == 2


def test_a_column_beside_the_label_stays_a_feature_in_a_prediction(tmp_path: Path) -> None:
    first = folder(tmp_path / "fit", [f"{'ab'[k % 2]},{'uv'[k % 2]}" for k in range(40)], "id,label,class,x")
    fit(str(first), search=False, seeds=1, max_epochs=2, rivals=()).save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    new = folder(tmp_path / "new", ["uv"[k % 2] for k in range(10)], "id,class,x")
    data = read_like(model, str(new))
    assert data.x.shape[1] == model.num_features
    assert agreement(predict_nodes(model, data), data) == {}


def test_a_split_that_became_a_feature_is_one_in_a_prediction_too(tmp_path: Path) -> None:
    first = folder(tmp_path / "fit", [f"{'ab'[k % 2]},{k % 3 + 1}" for k in range(40)], "id,label,split,x")
    data = plap.data.tables.load_folder(first, TableOptions(categorical=["split"], encode=False))
    fit(data, search=False, seeds=1, max_epochs=2, rivals=()).save(tmp_path / "out")
    model = load_model(tmp_path / "out")
    assert read_like(model, str(first)).x.shape[1] == model.num_features > 1


def test_whoever_interrupts_is_not_told_of_a_limit(data: GraphData, parts: Split) -> None:
    told: list[Any] = []

    def report(state: Any) -> None:
        told.append(state)
        if len(told) == 1:
            signal.raise_signal(signal.SIGINT)

    result = fit(data, parts, announce=lambda name: report, budget=500, rivals=())
    assert result.interrupted
    assert not any("default limit" in note for note in result.notes)


def test_a_model_that_was_hardly_trained_is_said_to_be(data: GraphData, parts: Split) -> None:
    result = fit(data, parts, time_limit=1e-9, rivals=("mlp",))
    assert any("pGNN was trained for only one epoch" in note for note in result.notes)
    assert any("MLP was trained for only one epoch" in note for note in result.notes)
    assert not any("so its scores mean little" in note for note in fit(data, parts, settings=QUICK).notes)


def test_options_that_there_are_not_are_named() -> None:
    with pytest.raises(plap.InputError, match=r"fit has no option 'p': fixed=\{'p': 1.5\} fixes that value"):
        plap.fit("csbm:phi=0.5,n=50,f=4", p=1.5)
    with pytest.raises(plap.InputError, match=r"fit has no option 'seed_' \(did you mean"):
        plap.fit("csbm:phi=0.5,n=50,f=4", seed_=1)


def test_a_page_that_cannot_be_written(tmp_path: Path) -> None:
    result = plap.fit("csbm:phi=0.5,n=60,f=4", search=False, seeds=1, max_epochs=2, rivals=())
    for path in (tmp_path / "nowhere" / "page.html", tmp_path):
        with pytest.raises(plap.InputError, match="cannot be written"):
            result.report(path)
    assert list(tmp_path.iterdir()) == []


def _tables(folder: Path, nodes: int = 60, **columns: list[Any]) -> Path:
    """A ring of nodes with a table that has these columns beside ids and labels."""
    folder.mkdir()
    names = [f"n{k}" for k in range(nodes)]
    found = {"id": names, "label": ["a" if k % 3 else "b" for k in range(nodes)], **columns}
    pl.DataFrame(found).write_csv(folder / "nodes.csv")
    ring = pl.DataFrame({"source": names, "target": [*names[1:], names[0]]})
    ring.write_csv(folder / "edges.csv")
    return folder


def test_a_metric_without_a_value_on_the_test_nodes_loses_nothing(tmp_path: Path) -> None:
    """As in a year without fraud: there is no column importance, and everything else is there."""
    nodes = 60
    table = _tables(
        tmp_path / "graph",
        label=["yes" if k < 4 else "no" for k in range(nodes)],
        size=list(range(nodes)),
        split=["train" if k < 40 and k % 2 == 0 else "val" if k < 40 else "test" for k in range(nodes)],
    )
    result = fit(table, settings=replace(QUICK, rivals=(), metric="roc_auc"))
    out = result.save(tmp_path / "out")
    assert "roc_auc" not in load_metrics(out)["methods"][0]["scores"]
    (row,) = [row for row in result.content.columns if row.name == "size"]
    assert row.importance is None


def test_a_score_without_a_value_is_not_zero(tmp_path: Path) -> None:
    result = fit(
        _tables(tmp_path / "graph", size=list(range(60))),
        settings=replace(QUICK, rivals=(), metric="roc_auc"),
    )
    model = result.saved_model
    other = _tables(tmp_path / "other", label=["a"] * 60, size=list(range(60)))
    data = read_like(model, other)
    assert agreement(predict_nodes(model, data), data)["roc_auc"] is None


def test_training_nodes_of_one_class_are_refused(tmp_path: Path) -> None:
    parts = ["train" if k % 3 else "val" if k % 2 else "test" for k in range(60)]
    with pytest.raises(InputError, match="all training nodes are of class 'a'"):
        fit(_tables(tmp_path / "graph", size=list(range(60)), split=parts), settings=QUICK)


@pytest.mark.parametrize("cell", ["constant", "name"])
def test_a_table_without_a_usable_column_has_structural_features(tmp_path: Path, cell: str) -> None:
    cells = ["same" if cell == "constant" else f"word{k}" for k in range(60)]
    folder = _tables(tmp_path / "graph", what=cells)
    result = fit(folder, settings=replace(QUICK, rivals=()))
    result.save(tmp_path / "out")
    assert {part.name for part in result.explain("n3").features} <= set(STRUCTURAL_NAMES)
    assert result.predict(folder).predicted == result.predictions.predicted


def test_a_model_of_the_edges_alone_remembers_how_tables_were_read(tmp_path: Path) -> None:
    folder = _tables(tmp_path / "graph")
    names = {"id": "Kunde", "label": "Klasse"}
    pl.read_csv(folder / "nodes.csv").rename(names).write_csv(folder / "nodes.csv", separator=";")
    edges = pl.read_csv(folder / "edges.csv").with_columns(Anzahl=pl.lit("0,5"))
    edges.write_csv(folder / "edges.csv", separator=";")
    options = TableOptions(id="Kunde", label="Klasse", weight="Anzahl", encode=False)
    result = fit(plap.data.load_folder(folder, options), settings=replace(QUICK, rivals=()))
    model = load_model(result.save(tmp_path / "out"))
    nodes = pl.read_csv(folder / "nodes.csv", separator=";").with_columns(Alter=pl.lit(None))
    nodes.write_csv(folder / "nodes.csv", separator=";")  # a column that the model never uses
    found = predict_nodes(model, read_like(model, folder))
    assert found.predicted == result.predictions.predicted


def test_raw_features_are_found_by_name(tmp_path: Path) -> None:
    size, age = list(range(60)), [k % 7 for k in range(60)]
    folder = _tables(tmp_path / "graph", size=size, age=age)
    raw = TableOptions(raw_features=True, encode=False)
    result = fit(plap.data.load_folder(folder, raw), settings=replace(QUICK, rivals=()))
    other = _tables(tmp_path / "other", age=age, more=size, size=size)
    assert result.predict(other).predicted == result.predictions.predicted


def test_predictions_in_python_have_roles_and_new_nodes(tmp_path: Path) -> None:
    result = fit(_tables(tmp_path / "graph", size=list(range(60))), settings=replace(QUICK, rivals=()))
    found = result.predict(_tables(tmp_path / "other", nodes=62, size=list(range(62)))).frame()
    assert found["new"].to_list() == [False] * 60 + [True] * 2
    assert found["role"].to_list()[:60] == result.predictions.frame()["role"].to_list()


def test_autocast_around_a_fit_changes_nothing(data: GraphData, parts: Split) -> None:
    """Nor does it change what is measured on the features before training, such as the unit of a penalty."""
    settings = FitSettings(budget=60, seeds=1, max_epochs=10, rivals=(), fixed={"penalty": "mcp"})
    expected = fit(data, parts, settings=settings)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = fit(data, parts, settings=settings)
    assert found.fitted.config == expected.fitted.config
    assert torch.equal(found.model.probabilities, expected.model.probabilities)

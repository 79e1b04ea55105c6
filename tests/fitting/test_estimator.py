from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import plap
from plap.fitting.artifacts import Predictions, ResultFiles, write_result


def quick(**changed: Any) -> plap.PGNNClassifier:
    return plap.PGNNClassifier(
        **({"p": 2.5, "tune": None, "seeds": 2, "max_epochs": 60, "lr": 0.05} | changed)
    )


@pytest.fixture(scope="module")
def data() -> plap.data.GraphData:
    return plap.data.csbm(phi=-0.8, n=300, f=30, d=10.0, seed=2)


def labels_of(data: plap.data.GraphData) -> list[str | None]:
    names = ["blue" if value else "amber" for value in data.y.tolist()]
    return [name if k < 200 else None for k, name in enumerate(names)]


def test_learns_and_scores_on_labels_it_never_saw(data: plap.data.GraphData) -> None:
    model = quick().fit(data.graph, data.x, labels_of(data))
    truth = ["blue" if value else "amber" for value in data.y.tolist()]
    held = [None] * 200 + truth[200:]
    assert model.classes_.tolist() == ["amber", "blue"]
    assert model.score(held) > 0.8
    assert 0.5 < model.validation_score_ <= 1
    probabilities = model.predict_proba()
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert model.predict()[5] == model.classes_[probabilities[5].argmax()]


def test_predicts_for_a_graph_it_never_saw(data: plap.data.GraphData) -> None:
    model = quick().fit(data.graph, data.x, labels_of(data))
    np.testing.assert_allclose(model.predict_proba(data.graph, data.x), model.predict_proba(), atol=1e-5)
    other = plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=3)
    assert model.predict(
        other, data.x[:3] if data.x.layout == torch.strided else data.x.to_dense()[:3]
    ).shape == (3,)
    with pytest.raises(ValueError, match="X has 29 features, but the model was fitted with 30"):
        model.predict(other, np.zeros((3, 29)))
    with pytest.raises(ValueError, match="graph and X must be given together"):
        model.predict(other)


@pytest.mark.parametrize("form", ["tensor", "numpy", "scipy", "list"])
def test_takes_features_of_any_form(data: plap.data.GraphData, form: str) -> None:
    dense = data.x.to_dense()
    given: Any = {
        "tensor": dense,
        "numpy": dense.double().numpy(),
        "scipy": scipy.sparse.csr_array(dense.numpy()),
        "list": dense.tolist(),
    }[form]
    few = quick(max_epochs=3)
    expected = quick(max_epochs=3).fit(data.graph, dense, labels_of(data)).predict_proba()
    np.testing.assert_allclose(
        few.fit(data.graph, given, labels_of(data)).predict_proba(), expected, atol=1e-5
    )


def test_follows_scikit_learn() -> None:
    model = quick(mu=0.3)
    twin = clone(model)
    assert twin is not model
    assert twin.get_params() == model.get_params()
    assert model.set_params(K=6).K == 6
    with pytest.raises(NotFittedError):
        model.predict()


def test_fixed_parameters_stay_fixed_in_the_search(data: plap.data.GraphData) -> None:
    model = quick(tune="auto", budget=600, p=1.5, mu=0.2).fit(data.graph, data.x, labels_of(data))
    assert {trial.config.parameters.p for trial in model.trials_} == {1.5}
    assert {trial.config.parameters.mu for trial in model.trials_} == {0.2}
    assert len({trial.config.parameters.dropout for trial in model.trials_}) == 2


def test_same_seed_same_result(data: plap.data.GraphData) -> None:
    first, second = (quick(max_epochs=10).fit(data.graph, data.x, labels_of(data)) for _ in range(2))
    np.testing.assert_array_equal(first.predict_proba(), second.predict_proba())
    third = quick(max_epochs=10, seed=5).fit(data.graph, data.x, labels_of(data))
    assert not np.array_equal(first.predict_proba(), third.predict_proba())


def test_survives_the_disk(data: plap.data.GraphData, tmp_path: Any) -> None:
    model = quick(max_epochs=5).fit(data.graph, data.x, labels_of(data))
    saved = model.to_saved_model()
    table = Predictions(range(300), saved.task, model.predict_proba(), ["unlabelled"] * 300)
    write_result(tmp_path / "out", ResultFiles(table, saved, {}, "<p>page</p>"))
    loaded = plap.PGNNClassifier.load(tmp_path / "out")
    assert loaded.classes_.tolist() == model.classes_.tolist()
    np.testing.assert_allclose(loaded.predict_proba(data.graph, data.x), model.predict_proba(), atol=1e-6)


@pytest.mark.parametrize("names", [("10", "9"), (10, 9), (True, False)])
def test_labels_keep_their_type_on_the_disk(data: plap.data.GraphData, tmp_path: Any, names: Any) -> None:
    y = [names[value] for value in data.y.tolist()]
    model = quick(max_epochs=3).fit(data.graph, data.x, y)
    table = Predictions(range(300), model.to_saved_model().task, model.predict_proba(), ["unlabelled"] * 300)
    write_result(tmp_path / "out", ResultFiles(table, model.to_saved_model(), {}, "<p>page</p>"))
    loaded = plap.PGNNClassifier.load(tmp_path / "out")
    assert loaded.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(loaded.predict(data.graph, data.x), model.predict())
    assert loaded.score(y, data.graph, data.x) == model.score(y)


@pytest.mark.parametrize(
    ("changed", "arguments", "sentence"),
    [
        ({"p": 0.5}, {}, "p must be a number of at least 1"),
        ({"tune": "always"}, {}, "tune must be 'auto' or None"),
        ({"validation": 1.5}, {}, "the share for validation must lie between 0 and 1"),
        ({}, {"y": [None] * 300}, "y has no known label"),
        ({}, {"y": ["a", "b"]}, "y has 2 labels but graph has 300 nodes"),
        ({}, {"X": np.zeros((4, 2))}, r"X must have shape \[300, F\], not \[4, 2\]"),
        ({}, {"X": [["a"]]}, "X must hold numbers"),
        ({}, {"train": np.ones(300, dtype=bool)}, "train and val must be given together"),
        (
            {},
            {"train": np.ones(300, dtype=bool), "val": np.ones(300, dtype=bool)},
            "train and val must not share a node",
        ),
        ({}, {"train": np.ones(3), "val": np.ones(3)}, "train must be a boolean array"),
    ],
)
def test_refuses_by_name(
    data: plap.data.GraphData, changed: dict[str, Any], arguments: dict[str, Any], sentence: str
) -> None:
    given: dict[str, Any] = {"X": data.x, "y": labels_of(data)} | arguments
    with pytest.raises(ValueError, match=sentence):
        quick(**changed).fit(data.graph, given.pop("X"), given.pop("y"), **given)

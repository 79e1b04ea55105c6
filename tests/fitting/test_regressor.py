"""The regressor: numbers in, numbers out, by scikit-learn's conventions; and the classifier's metric."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError

import plap
from plap.errors import InputError
from plap.fitting import FitSettings, fit
from rare_graph import number_graph, rare_graph

DATA = number_graph(200)
QUICK: dict[str, Any] = {"tune": None, "seeds": 1, "max_epochs": 40, "p": 2.0}


@pytest.fixture(scope="module")
def model() -> plap.PGNNRegressor:
    return plap.PGNNRegressor(**QUICK).fit(DATA.graph, DATA.x, DATA.y)


def test_it_predicts_in_the_unit_of_the_labels(model: plap.PGNNRegressor) -> None:
    said = model.predict()
    assert said.shape == (200,)
    assert 800 < said.mean() < 1200
    assert model.score(DATA.y) > 0.3
    np.testing.assert_allclose(model.predict(DATA.graph, DATA.x), said, rtol=1e-4)
    lower, upper = model.predict_interval().T
    assert ((lower < said) & (said < upper)).all()
    assert np.isfinite(model.validation_score_)


def test_it_follows_scikit_learn(model: plap.PGNNRegressor) -> None:
    assert is_regressor(model)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.predict()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(), model.predict())


def test_it_is_loaded_from_a_folder(tmp_path: Path) -> None:
    settings = FitSettings(fixed={"p": 2.0}, search=False, seeds=1, max_epochs=10, rivals=())
    result = fit(DATA, settings=settings)
    out = result.save(tmp_path / "out")
    loaded = plap.PGNNRegressor.load(out)
    expected = result.predictions.frame()["predicted"].to_numpy()
    np.testing.assert_allclose(loaded.predict(DATA.graph, DATA.x), expected, rtol=1e-4)
    with pytest.raises(InputError, match="holds a model for regression data, not for classes"):
        plap.PGNNClassifier.load(out)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a"] * 200, "y must hold numbers"),
        (np.full(200, np.nan), "y has no known number"),
        (np.where(np.arange(200) == 7, np.inf, 1.0), r"y\[7\] is not finite"),
        (np.zeros((200, 2)), "one number for each node"),
        (np.zeros(3), "y has 3 labels but graph has 200 nodes"),
    ],
)
def test_labels_that_are_no_numbers(y: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        plap.PGNNRegressor(**QUICK).fit(DATA.graph, DATA.x, y)


def test_a_classifier_goes_by_its_metric_and_weights() -> None:
    data = rare_graph(300)
    names = np.array(["fair", "fraud"])[data.y]
    model = plap.PGNNClassifier(**QUICK, metric="average_precision", class_weight={"fraud": 20.0})
    model.fit(data.graph, data.x, names)
    task = model.task_.settings()
    assert task["metric_name"] == "average_precision"
    assert task["class_weights"][1] == pytest.approx(20 * task["class_weights"][0])
    assert set(model.predict()) == {"fair", "fraud"}
    found = model.predict_proba()[:, 1] >= task["threshold"]
    assert ((model.predict() == "fraud") == found).all()
    file = model.to_saved_model()
    assert file.classes == ("fair", "fraud")

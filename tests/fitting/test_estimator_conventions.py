"""Both classifiers are scikit-learn's estimators, and importing plap does not import scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.utils.validation import check_is_fitted

import plap
from rare_graph import number_graph, rare_graph

PATH = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
LABELS = ["a", "a", None, "b", "b", "b"]
QUICK: dict[str, Any] = {"p": 1.2, "tune": None, "seeds": 1, "max_epochs": 2, "validation": 0.5}


def pgnn(**changes: Any) -> plap.PGNNClassifier:
    return plap.PGNNClassifier(**(QUICK | changes))


def fitted(model: Any) -> Any:
    if isinstance(model, plap.PGNNClassifier):
        return model.fit(PATH, np.eye(6), LABELS)
    return model.fit(PATH, LABELS)


both = pytest.mark.parametrize(
    "model", [pgnn(), plap.PLaplacianLabelPropagation(p=1.2)], ids=lambda model: type(model).__name__
)


@both
def test_parameters(model: Any) -> None:
    model = clone(model)
    assert model.get_params()["p"] == 1.2
    assert model.set_params(mu=0.5) is model
    assert (model.mu, model.get_params()["mu"]) == (0.5, 0.5)
    with pytest.raises(ValueError, match="Invalid parameter 'nu'"):
        model.set_params(nu=1)


def test_repr_shows_what_is_not_the_default() -> None:
    assert repr(plap.PLaplacianLabelPropagation(p=1.2, mu=1.0)) == "PLaplacianLabelPropagation(p=1.2)"
    assert repr(plap.PGNNClassifier(mu=0.5)) == "PGNNClassifier(mu=0.5)"


@both
def test_clone_has_the_parameters_and_nothing_that_was_learned(model: Any) -> None:
    twin = clone(fitted(clone(model)))
    assert twin.get_params() == model.get_params()
    assert is_classifier(twin)
    with pytest.raises(NotFittedError):
        check_is_fitted(twin)
    with pytest.raises(NotFittedError, match=f"{type(model).__name__} instance is not fitted yet"):
        twin.predict()


@both
def test_pickled_and_back_it_predicts_the_same(model: Any) -> None:
    before = fitted(clone(model))
    after = pickle.loads(pickle.dumps(before))
    assert after.get_params() == before.get_params()
    check_is_fitted(after)
    np.testing.assert_array_equal(after.predict_proba(), before.predict_proba())
    np.testing.assert_array_equal(after.predict(), before.predict())


def test_minus_one_and_one_are_two_classes() -> None:
    signs = pgnn().fit(PATH, np.eye(6), [1, 1, 1, -1, -1, -1])
    assert signs.classes_.tolist() == [-1, 1]
    marked = pgnn(unknown=9).fit(PATH, np.eye(6), [1, 1, 9, 2, 2, 9])
    assert marked.classes_.tolist() == [1, 2]
    assert 0 <= marked.score([9, 9, 9, 9, 9, 1]) <= 1


RARE = rare_graph(120, share=0.3)
TABLE = pd.DataFrame(
    {
        "age": np.where(np.arange(120) % 9, 40 + 5 * RARE.x[:, 0].numpy(), np.nan),
        "city": np.where(RARE.x[:, 1].numpy() > 0, "Bern", "Wien"),
        "joined": pd.date_range("2020-01-01", periods=120),
    },
    index=pd.Index(range(1000, 1120), name="customer"),
)


def test_the_columns_of_a_table_are_found_by_name() -> None:
    model = pgnn(max_epochs=20).fit(RARE.graph, TABLE, RARE.y)
    assert model.feature_names_in_.tolist() == ["age", "city", "joined"]
    assert model.n_features_in_ == 3
    assert model.columns_ is not None
    assert "age is missing" in model.columns_.feature_names
    before = model.predict_proba(RARE.graph, TABLE)
    np.testing.assert_allclose(before, model.predict_proba(), atol=1e-5)
    shuffled = pl.from_pandas(TABLE[["joined", "age", "city"]])
    np.testing.assert_array_equal(model.predict_proba(RARE.graph, shuffled), before)
    with pytest.warns(
        UserWarning, match="1 column is ignored, because the model was trained without: 'note'"
    ):
        further = model.predict_proba(RARE.graph, TABLE.assign(note=1))
    np.testing.assert_array_equal(further, before)
    with pytest.warns(UserWarning, match=r"^X: drift in age: .* \(stability index"):
        model.predict_proba(RARE.graph, TABLE.assign(age=TABLE["age"] * 12))
    with pytest.raises(plap.InputError, match="the table has no column 'city', which the model needs"):
        model.predict(RARE.graph, TABLE[["age", "joined"]])
    with pytest.raises(plap.InputError, match="so X must be one with its columns 'age', 'city', 'joined'"):
        model.predict(RARE.graph, TABLE[["age"]].to_numpy())
    with pytest.raises(plap.InputError, match="one row for each of the 120 nodes, not 7"):
        model.predict(RARE.graph, TABLE.head(7))
    model.fit(RARE.graph, RARE.x, RARE.y)
    assert not hasattr(model, "feature_names_in_")


def test_a_model_of_a_table_is_saved_with_its_columns() -> None:
    model = pgnn(max_epochs=20).fit(RARE.graph, TABLE, RARE.y)
    loaded = plap.PGNNClassifier._loaded(model.to_saved_model())
    loaded.classes_ = model.classes_
    assert sorted(loaded.feature_names_in_) == ["age", "city", "joined"]
    shuffled = TABLE[["joined", "city", "age"]]
    np.testing.assert_allclose(
        loaded.predict_proba(RARE.graph, shuffled), model.predict_proba(RARE.graph, TABLE), atol=1e-6
    )


def test_a_table_without_any_feature_is_refused() -> None:
    with pytest.raises(plap.InputError, match="no column of X can be a feature"):
        pgnn().fit(RARE.graph, pd.DataFrame({"same": [1] * 120}), RARE.y)


def test_the_tools_of_scikit_learn_share_out_nodes() -> None:
    nodes, y = np.arange(120), RARE.y.numpy()
    bound = plap.OnGraph(pgnn(max_epochs=30), RARE.graph, TABLE)
    assert is_classifier(bound)
    folds = plap.data.folds(y, 3, seed=1)
    said = cross_val_predict(bound, nodes, y, cv=folds, method="predict_proba")
    assert said.shape == (120, 2)
    _, held_out = folds[0]
    alone = clone(bound).fit(folds[0][0], y[folds[0][0]]).predict_proba(held_out)
    np.testing.assert_allclose(said[held_out], alone, atol=1e-6)
    found = GridSearchCV(bound, {"estimator__mu": [0.1, 1.0]}, cv=folds).fit(nodes, y)
    assert found.best_params_["estimator__mu"] in (0.1, 1.0)
    data = number_graph(100)
    known = np.flatnonzero(~np.isnan(data.y.numpy()))
    regressor = plap.OnGraph(plap.PGNNRegressor(**QUICK), data.graph, data.x)
    assert cross_val_score(regressor, known, data.y.numpy()[known], cv=2).shape == (2,)
    with pytest.raises(plap.InputError, match="between 0 and 99"):
        regressor.fit([0, 100], [1.0, 2.0])
    with pytest.raises(plap.InputError, match=r"two labels for node 3: 'a' and 'b'"):
        bound.fit([3, 4, 3], ["a", "b", "b"])
    with pytest.raises(NotFittedError):
        regressor.predict([0])
    twice = [*known, *known[:3], 0, 0]  # a sample drawn with replacement, and a number that is unknown
    regressor.fit(twice, [*data.y.numpy()[[*known, *known[:3]]], np.nan, np.nan])


def test_importing_plap_imports_none_of_the_slow_packages() -> None:
    code = (
        "import sys, plap, plap.data.labels, plap.reporting;"
        "slow = {'sklearn', 'polars', 'jinja2', 'matplotlib', 'safetensors'} & set(sys.modules);"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

"""Both classifiers are scikit-learn's estimators, and importing plap does not import scikit-learn."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

import plap

PATH = plap.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)])
LABELS = ["a", "a", None, "b", "b", "b"]
QUICK = {"p": 1.2, "tune": None, "seeds": 1, "max_epochs": 2, "validation": 0.5}


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


def test_importing_plap_imports_none_of_the_slow_packages() -> None:
    code = (
        "import sys, plap, plap.data.labels, plap.reporting;"
        "slow = {'sklearn', 'polars', 'jinja2', 'matplotlib', 'safetensors'} & set(sys.modules);"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

from __future__ import annotations

import subprocess
import sys

import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from plap.errors import InputError
from plap.label_propagation import PLaplacianLabelPropagation
from plap.params import Estimator


def test_get_and_set() -> None:
    model = PLaplacianLabelPropagation(p=1.2)
    assert model.get_params() == {"p": 1.2, "mu": 1.0, "tol": 1e-5, "max_iter": 2000}
    assert model.set_params(mu=0.5) is model
    assert model.mu == 0.5
    assert repr(model) == "PLaplacianLabelPropagation(mu=0.5, p=1.2)"
    with pytest.raises(InputError, match="no parameter 'nu'"):
        model.set_params(p=3.0, nu=1)
    assert model.p == 1.2


def test_scikit_learn_clones_it_and_knows_what_it_is() -> None:
    model = PLaplacianLabelPropagation(p=2.5)
    copy = clone(model)
    assert copy is not model
    assert copy.get_params() == model.get_params()
    assert is_classifier(model)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)


def test_not_fitted_error_is_scikit_learns() -> None:
    class Nothing(Estimator):
        pass

    with pytest.raises(NotFittedError, match="Nothing is not fitted"):
        Nothing().check_fitted()


def test_importing_plap_imports_none_of_the_slow_packages() -> None:
    code = (
        "import sys, plap, plap.labels, plap.label_propagation, plap.artifacts, plap.reporting;"
        "slow = {'sklearn', 'polars', 'jinja2', 'matplotlib', 'safetensors'} & set(sys.modules);"
        "sys.exit(f'imported {slow}' if slow else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

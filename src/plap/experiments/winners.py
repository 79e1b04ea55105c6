"""The configuration that won each cell of the paper's tables that this project ran, to start from."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from plap.checks import did_you_mean
from plap.errors import InputError
from plap.training import RunConfig

Winners = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""By table, dataset and model: the configuration's values, those that are not defaults."""


def best(table: str, dataset: str, model: str) -> RunConfig:
    """The configuration with the best validation score in the search of a cell, as its final runs had it.

    Only cells whose runs this project published are known. How much was searched differs from cell to cell;
    the documentation's page of reproduced tables says it.

    Parameters
    ----------
    table : str
        Name of a table, see ``plap reproduce --list``.
    dataset, model : str
        A column and a row of it.

    Examples
    --------
    >>> import plap
    >>> config = plap.experiments.best("plug-in-heterophilic", "texas", "jknet+pgnn-2.0")
    >>> config.parameters.p
    2.0
    >>> plap.experiments.best("plug-in-heterophilic", "texas", "jknet+pgnn-3.0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    plap.errors.InputError: plug-in-heterophilic, texas: no runs of 'jknet+pgnn-3.0' were published: ...
    """
    found = _read()
    if table not in found:
        raise InputError(f"no runs of table {table!r} were published: {did_you_mean(table, sorted(found))}")
    datasets = found[table]
    if dataset not in datasets:
        hint = did_you_mean(dataset, list(datasets))
        raise InputError(f"{table}: no runs on {dataset!r} were published: {hint}")
    models = datasets[dataset]
    if model not in models:
        hint = did_you_mean(model, list(models))
        raise InputError(f"{table}, {dataset}: no runs of {model!r} were published: {hint}")
    return RunConfig.from_dict(models[model])


@cache
def _read() -> Winners:
    found: Winners = json.loads((files("plap.experiments") / "best.json").read_text(encoding="utf-8"))
    return found

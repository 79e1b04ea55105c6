"""A row of a table: a model, the values of its fields, and what a reader calls it.

``rows.toml`` defines rows that any table may name, and every model of :mod:`plap.models` is a row under its
own name; a table defines others in its ``[rows]``:

.. code-block:: toml

    [rows]
    "pgnn-1.7" = { model = "pgnn", p = 1.7 }
    three-hop = { file = "two_hop.py", hops = 3, label = "three hops" }
    some-mu = { model = "pgnn", p = 1.7, mu = [0.1, 1.0], label = "two mu" }  # a list is searched
    others = { label = "a model that others published" }  # not run: only its published number is shown
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from plap.checks import check_flag, did_you_mean
from plap.errors import InputError
from plap.experiments.model_files import UserModelFile, load_model_file
from plap.models import Grid, find_model, model_names
from plap.training import RunConfig
from plap.training.space import grid_configs

GridName = Literal["full", "small"]
_ABOUT_THE_ROW = ("model", "file", "label", "correct_and_smooth")


@dataclass(frozen=True)
class Row:
    """A row as its table defines it."""

    key: str
    """Name of the row in TOML files and in ``only``."""
    label: str
    """What a reader calls it."""
    model: str | None = None
    """A name of :func:`plap.models.model_names`."""
    file: Path | None = None
    """A Python file that defines the model instead."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the model's parameters or of training that are not searched."""
    searched: Grid = field(default_factory=dict)
    """Fields whose values the row names itself, in place of those of the model's grid."""
    correct_and_smooth: bool = False
    """Whether predictions are corrected and smoothed with the training labels before they are scored."""

    @property
    def is_run(self) -> bool:
        """Whether there is a model to train; if not, only the published value is shown."""
        return self.model is not None or self.file is not None

    @property
    def is_p_laplacian(self) -> bool:
        """Whether the model has the exponent p of the p-Laplacian."""
        return self.model is not None and "p" in find_model(self.model).fields


@dataclass(frozen=True)
class Candidates:
    """The configurations that a row's search chooses from."""

    base: RunConfig
    grid: Grid = field(default_factory=dict)
    small: Grid = field(default_factory=dict)
    """Values for a shorter search; fields without such values keep those of the grid."""

    def with_small(self, values: Grid) -> Candidates:
        """The same with other values in the small grid, where the grid has such a field."""
        return replace(self, small={**self.small, **{k: v for k, v in values.items() if k in self.grid}})

    def configs(self, name: GridName = "full") -> list[RunConfig]:
        """All configurations of a grid, in its order.

        Examples
        --------
        >>> found = find_candidates(find_row("pgnn-1.5"))
        >>> len(found.configs()), len(found.configs("small"))
        (180, 8)
        """
        return grid_configs(self.base, {**self.grid, **self.small} if name == "small" else self.grid)


def find_row(key: str, own: Mapping[str, Row] | None = None) -> Row:
    """The row of that key: one of ``own``, one of ``rows.toml``, or a model by its name.

    Examples
    --------
    >>> find_row("gcn+pgnn-1.5").fixed, find_row("pgnn-1.5").label
    ({'p': 1.5}, 'pGNN p = 1.5')
    >>> find_row("gprgn")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    plap.errors.InputError: there is no row named 'gprgn': did you mean gprgnn or ...
    """
    for known in (own or {}, _shared_rows()):
        if key in known:
            return known[key]
    if key in model_names():
        return parse_row(key, {"model": key})
    known_keys = [*(own or {}), *_shared_rows(), *model_names()]
    hint = did_you_mean(key, known_keys, f"there are {', '.join(model_names())}, pgnn-1.5")
    raise InputError(
        f"there is no row named {key!r}: {hint} (define a row of your own in the table's [rows])"
    )


def parse_row(key: str, raw: Mapping[str, Any], folder: Path | None = None) -> Row:
    """A row as TOML has it.

    Parameters
    ----------
    key : str
    raw : mapping
        ``model`` (a name), ``file`` (a path) or neither; ``label``, ``correct_and_smooth``; all else is a
        field of the model's parameters or of training.
    folder : path, optional
        Where to look for ``file``.
    """
    for name in ("model", "file", "label"):
        if not isinstance(raw.get(name, ""), str):
            raise InputError(f"{name} must be text, not {raw[name]!r}")
    if "model" in raw and "file" in raw:
        raise InputError("a row has a model or a file, not both")
    own = {name: value for name, value in raw.items() if name not in _ABOUT_THE_ROW}
    searched = {name: tuple(value) for name, value in own.items() if isinstance(value, list)}
    fixed = {name: value for name, value in own.items() if name not in searched}
    smoothed = check_flag("correct_and_smooth", raw.get("correct_and_smooth", False))
    if "model" in raw:
        config = RunConfig(raw["model"], **fixed)
        label = find_model(raw["model"]).label_of(config.parameters)
        for name, values in searched.items():
            if not values:
                raise InputError(f"{name} must have a value to search, not {list(values)!r}")
            for value in values:
                config.with_values(**{name: value})  # refuses what has no meaning
    elif "file" not in raw and (own or smoothed):
        raise InputError("a row without a model or a file has a label and nothing else")
    else:
        label = key
    return Row(
        key=key,
        label=raw.get("label", f"{label} + C&S" if smoothed else label),
        model=raw.get("model"),
        file=Path(folder or ".") / raw["file"] if "file" in raw else None,
        fixed=fixed,
        searched=searched,
        correct_and_smooth=smoothed,
    )


def find_candidates(row: Row, file: UserModelFile | None = None) -> Candidates:
    """What a row's search chooses from: the model's own grid, without the fields that the row fixes.

    Parameters
    ----------
    row : Row
    file : UserModelFile, optional
        The content of ``row.file``.
    """
    fixed: dict[str, Any] = dict(row.fixed)
    if file is not None:
        loaded = load_model_file(file)
        kind, fixed = loaded.kind, dict(loaded.fixed) | fixed
    elif row.model is not None:
        kind = find_model(row.model)
    else:
        raise InputError(f"the row {row.key!r} has no model to run")
    grid, small = (
        {name: values for name, values in which.items() if name not in row.fixed and name not in row.searched}
        for which in (kind.grid, kind.small)
    )
    return Candidates(RunConfig(kind.name, **fixed), {**grid, **row.searched}, small)


@cache
def _shared_rows() -> dict[str, Row]:
    text = (files("plap.experiments") / "rows.toml").read_text(encoding="utf-8")
    return {key: parse_row(key, raw) for key, raw in tomllib.loads(text).items()}

"""Rows of the tables: what each name stands for, and which configurations the paper searched."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from plap.errors import InputError
from plap.training import RunConfig

Grid = Mapping[str, tuple[Any, ...]]
GridName = Literal["full", "small"]
_WEIGHT_DECAY = (0.0, 5e-4)
_P = r"pgnn-(?P<p>\d+(?:\.\d+)?)"


@dataclass(frozen=True)
class ModelSpec:
    """A row: the fields that never change, and the values that the others may take."""

    base: RunConfig
    grid: Grid = field(default_factory=dict)
    """The appendix "Hyperparameter Settings", or a user's own."""
    small: Grid = field(default_factory=dict)
    """Values for a shorter search, in place of the grid's; the grid's where it has none."""
    correct_and_smooth: bool = False
    """Whether predictions are corrected and smoothed with the training labels before they are scored."""

    def with_small(self, values: Grid) -> ModelSpec:
        """The same row with other values in its small grid, where its grid has such a field."""
        return replace(self, small={**self.small, **{k: v for k, v in values.items() if k in self.grid}})

    def configs(self, name: GridName = "full") -> list[RunConfig]:
        """All configurations of a grid, in its order.

        Examples
        --------
        >>> spec = find_model_spec("pgnn-1.5")
        >>> len(spec.configs()), len(spec.configs("small"))
        (180, 8)
        """
        grid = dict(self.grid) | (dict(self.small) if name == "small" else {})
        return [
            replace(self.base, **dict(zip(grid, values, strict=True)))
            for values in itertools.product(*grid.values())
        ]


def _spec(base: dict[str, Any], grid: Grid, small: Grid) -> ModelSpec:
    return ModelSpec(RunConfig(**base), {**grid, "weight_decay": _WEIGHT_DECAY}, small)


_STANDARD: Grid = {"lr": (0.001, 0.01), "dropout": (0.0, 0.5)}
_TELEPORT: Grid = {"alpha": (0.1, 0.5, 0.7, 1.0)}
_PGNN: Grid = {
    "lr": (0.001, 0.01, 0.05),
    "dropout": (0.0, 0.5),
    "mu": (0.01, 0.1, 0.2, 1.0, 10.0),
    "K": (4, 6, 8),
}
_PGNN_SMALL: Grid = {"lr": (0.01,), "mu": (0.01, 0.1, 1.0, 10.0), "K": (4,), "weight_decay": (5e-4,)}
_ONE_RATE: Grid = {"lr": (0.01,)}
_HYBRID: Grid = {"mu": _PGNN["mu"], "K": _PGNN["K"]}

_SPECS: dict[str, ModelSpec] = {
    "mlp": _spec({"model": "mlp"}, _STANDARD, _ONE_RATE),
    "gcn": _spec({"model": "gcn"}, _STANDARD, _ONE_RATE),
    # The paper also lists a dropout for SGC, which has no hidden units that could be dropped.
    "sgc": _spec({"model": "sgc", "K": 2}, {"lr": (0.2, 0.01)}, {}),
    "gat": _spec(
        {"model": "gat", "hidden": 8, "heads": 8},
        {"lr": (0.001, 0.005), "dropout": (0.0, 0.6)},
        {"lr": (0.005,), "weight_decay": (5e-4,)},
    ),
    "jknet": _spec(
        {"model": "jknet", "K": 10},
        {**_STANDARD, **_TELEPORT},
        {"lr": (0.01,), "alpha": (0.1, 0.5), "weight_decay": (5e-4,)},
    ),
    "appnp": _spec(
        {"model": "appnp", "K": 10},
        {**_STANDARD, **_TELEPORT},
        {"lr": (0.01,), "alpha": (0.1, 0.5, 1.0), "weight_decay": (5e-4,)},
    ),
    "gprgnn": _spec(
        {"model": "gprgnn", "K": 10},
        {
            "lr": (0.001, 0.01, 0.05),
            "dropout": (0.0, 0.5),
            "alpha": (0.0, 0.1, 0.2, 0.5, 0.7, 0.9, 1.0),
            "dprate": (0.0, 0.5, 0.7),
        },
        {"lr": (0.01,), "alpha": (0.1, 0.5, 0.9), "dprate": (0.5,), "weight_decay": (5e-4,)},
    ),
}
# The paper gives no grid for the hybrids: GCN's and JKNet's own, with pGNN's μ and K.
_GCN_HYBRID: Grid = {**_STANDARD, **_HYBRID}
_JKNET_HYBRID: Grid = {**_STANDARD, **_TELEPORT, **_HYBRID}
_JKNET_HYBRID_SMALL: Grid = {**_PGNN_SMALL, "mu": (0.1, 1.0), "alpha": (0.1, 1.0)}
# Nor one for PPI and ogbn-arxiv, where it says how the models are made and nothing of their training.
_DEEP: Grid = {"lr": (0.005, 0.01), "dropout": (0.0, 0.5)}
_DEEP_SMALL: Grid = {"lr": (0.01,), "weight_decay": (0.0,)}
_PPI = {"model": "deep-pgnn", "mu": 0.01, "K": 1, "mlp_layers": 1}
_ARXIV = {"model": "deep-pgnn", "hidden": 256, "mu": 0.5, "K": 2}

_PATTERNS: tuple[tuple[str, dict[str, Any], Grid, Grid], ...] = (
    (_P, {"model": "pgnn"}, _PGNN, _PGNN_SMALL),
    (rf"gcn\+{_P}", {"model": "gcn+pgnn"}, _GCN_HYBRID, _PGNN_SMALL),
    (rf"jknet\+{_P}", {"model": "jknet+pgnn"}, _JKNET_HYBRID, _JKNET_HYBRID_SMALL),
    (rf"{_P}-(?P<hidden>\d+)", _PPI, _DEEP, _DEEP_SMALL),
    (r"gat-(?P<heads>\d+)-heads?", {"model": "deep-gat", "hidden": 256}, _DEEP, _DEEP_SMALL),
    (rf"arxiv/{_P}", {**_ARXIV, "layers": 3}, _DEEP, _DEEP_SMALL),
    (rf"arxiv/{_P}\+residual-(?P<layers>\d+)", {**_ARXIV, "residual": True}, _DEEP, _DEEP_SMALL),
)
_NUMBERS: dict[str, Callable[[str], float]] = {"p": float, "hidden": int, "heads": int, "layers": int}
_CORRECT_AND_SMOOTH = "+cs"


def find_model_spec(name: str) -> ModelSpec:
    """The row of that name, such as ``mlp``, ``pgnn-1.5`` or ``gcn+pgnn-2.0``.

    ``pgnn-1.5-256`` is the deep model of the appendix for PPI, ``arxiv/pgnn-1.5`` and
    ``arxiv/pgnn-1.5+residual-6`` are those for ogbn-arxiv; ``+cs`` adds correct and smooth.

    Examples
    --------
    >>> find_model_spec("gcn+pgnn-1.5").base.p
    1.5
    >>> find_model_spec("gprgn")
    Traceback (most recent call last):
    plap.errors.InputError: there is no model named 'gprgn': did you mean gprgnn?
    """
    if name in _SPECS:
        return _SPECS[name]
    trained = name.removesuffix(_CORRECT_AND_SMOOTH)
    for pattern, fixed, grid, small in _PATTERNS:
        found = re.fullmatch(pattern, trained)
        if found:
            values = {key: _NUMBERS[key](text) for key, text in found.groupdict().items()}
            spec = _spec({**fixed, **values}, grid, small)
            return replace(spec, correct_and_smooth=trained != name)
    close = difflib.get_close_matches(name, [*_SPECS, "pgnn-1.5", "gcn+pgnn-1.5"], n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(_SPECS)}, pgnn-P"
    raise InputError(f"there is no model named {name!r}: {hint}")

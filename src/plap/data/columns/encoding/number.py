"""Numbers to one standardised feature, and one that marks missing values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from plap.data.columns.description import Description
from plap.data.columns.reading.cells import Cells

CLIP = 10.0
"""Standardised values are limited to this many standard deviations."""
QUANTILE_TAIL = 5.0
"""A tail is heavy if the 99 % quantile is more than this many half interquartile ranges away: 2 for a
uniform distribution, 3.5 for a normal, 5.6 for an exponential one, 9.6 for a log-normal one with σ = 1."""
EXTREME_TAIL = 20.0
"""A tail is also heavy if the extreme is more than this many half interquartile ranges away."""
KNOTS = 129
SHAPES = ("linear", "log", "quantile")


@dataclass(frozen=True)
class NumberEncoder:
    r"""Standardises :math:`t(x)`, which depends on the tails of the training values.

    .. math::
        t(x) = x / u \quad\text{(linear)}, \qquad
        t(x) = \operatorname{sign}(x) \log(1 + |x| / u) \quad\text{(log)}, \qquad
        t(x) = \Phi^{-1}(\hat F(x)) \quad\text{(quantile)}.

    The result is :math:`(t(x) - \text{centre}) / \text{scale}`, limited to ±10; missing values get the
    median. ``varies`` is False where all training values are equal: only the indicator remains.
    """

    shape: str
    unit: float
    knots: tuple[float, ...]
    centre: float
    scale: float
    median: float
    varies: bool
    indicator: bool
    tail: str
    unmarked: ClassVar[str] = "filled with the training median"

    @classmethod
    def fit(cls, cells: Cells[NDArray[np.float64]], *, linear: bool = False) -> NumberEncoder:
        """Learn from training values; ``linear`` leaves the tails as they are."""
        values = cells.values[~np.isnan(cells.values)]
        indicator = 0 < values.size < cells.values.size
        if values.size == 0 or values.min() == values.max():
            median = float(values[0]) if values.size else 0.0
            return cls("linear", 1.0, (), 0.0, 1.0, median, False, indicator, "")
        median = float(np.quantile(values, 0.5, method="lower"))
        tail = "" if linear else heavy_tail(values)
        shape, unit = "linear", _power_of_two(float(np.abs(values).max()))
        knots: tuple[float, ...] = ()
        if tail:
            shape, unit = "log", _small(values)
            if heavy_tail(_transform(values, shape, unit, ())):
                shape, unit, knots = "quantile", 1.0, _knots(values)
        transformed = _transform(values, shape, unit, knots)
        centre, scale = float(transformed.mean()), float(transformed.std())
        varies = scale > 0
        return cls(shape, unit, knots, centre, scale or 1.0, median, varies, indicator, tail)

    def feature_names(self, column: str) -> list[str]:
        """Return one name per feature."""
        return [column] * self.varies + [f"{column} is missing"] * self.indicator

    def write(self, cells: Cells[NDArray[np.float64]], out: NDArray[np.float32]) -> int:
        """Write features [rows, width]; no number can be unseen."""
        missing = np.isnan(cells.values)
        if self.varies:
            filled = np.where(missing, self.median, cells.values)
            moved = _transform(filled, self.shape, self.unit, self.knots) - self.centre
            with np.errstate(over="ignore"):
                out[:, 0] = np.clip(moved / self.scale, -CLIP, CLIP)
        if self.indicator:
            out[:, -1] = missing
        return 0

    def describe(self) -> str:
        """Say what became of the numbers."""
        if not self.varies:
            return "all training values are equal, only what is missing is marked" if self.indicator else ""
        how = {"linear": "", "log": "log-scaled and ", "quantile": "mapped to normal quantiles and "}
        return f"{self.tail}{', ' if self.tail else ''}{how[self.shape]}standardised"

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {
            "shape": self.shape, "unit": self.unit, "knots": list(self.knots), "centre": self.centre,
            "scale": self.scale, "median": self.median, "varies": self.varies, "indicator": self.indicator,
            "tail": self.tail,
        }  # fmt: skip

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return nothing: all is in the JSON."""
        return {}

    @classmethod
    def from_json(cls, entries: Description, tensors: dict[str, NDArray[Any]]) -> NumberEncoder:
        """Return the encoder that ``to_json`` described."""
        shape, knots = entries.text("shape", SHAPES), entries.numbers("knots")
        if (shape == "quantile") != (len(knots) > 1) or list(knots) != sorted(knots):
            entries.fail("knots")
        return cls(
            shape, entries.positive("unit"), knots, entries.number("centre"), entries.positive("scale"),
            entries.number("median"), entries.flag("varies"), entries.flag("indicator"), entries.text("tail"),
        )  # fmt: skip


def heavy_tail(values: NDArray[np.float64]) -> str:
    """Say which tail of a sample is heavy: "heavy right tail", "heavy left tail", both, or nothing.

    Distances from the median are counted in half interquartile ranges. Where more than half of the values
    are equal, that range is 0 and the median distance of the others takes its place.

    Examples
    --------
    >>> heavy_tail(np.linspace(0, 1, 100)), heavy_tail(np.exp(np.linspace(-4, 4, 100)))
    ('', 'heavy right tail')
    """
    if values.size < 5:
        return ""
    scaled = values / _power_of_two(float(np.abs(values).max()))
    low, first, median, third, high = np.quantile(scaled, (0.01, 0.25, 0.5, 0.75, 0.99))
    half = max(third - median, median - first)
    away = np.abs(scaled - median)
    others = float(np.median(away[away > 0])) if (away > 0).any() else 0.0
    heavy = []
    for name, unit, far, extreme in (
        ("left", median - first, median - low, median - scaled.min()),
        ("right", third - median, high - median, scaled.max() - median),
    ):
        spread = unit or half or others
        if spread > 0 and (
            (values.size >= 50 and far > QUANTILE_TAIL * spread) or extreme > EXTREME_TAIL * spread
        ):
            heavy.append(name)
    return f"heavy {' and '.join(heavy)} tail{'s' * (len(heavy) > 1)}" if heavy else ""


def _transform(
    values: NDArray[np.float64], shape: str, unit: float, knots: tuple[float, ...]
) -> NDArray[np.float64]:
    if shape == "quantile":
        from scipy.special import ndtri  # noqa: PLC0415

        heights = ndtri((np.arange(len(knots)) + 0.5) / len(knots))
        points, first, counts = np.unique(np.array(knots), return_index=True, return_counts=True)
        middles = np.add.reduceat(heights, first) / counts
        return np.interp(values, points, middles)
    with np.errstate(over="ignore"):
        scaled = np.clip(values / unit, -1e300, 1e300)
    return np.sign(scaled) * np.log1p(np.abs(scaled)) if shape == "log" else scaled


def _power_of_two(largest: float) -> float:
    """A unit in which squares of the values can neither overflow nor vanish; dividing by it is exact."""
    return math.ldexp(1.0, max(math.frexp(largest)[1] - 1, -1000)) if largest > 0 else 1.0


def _small(values: NDArray[np.float64]) -> float:
    """The unit of the log rule: small for almost all values, so that their ratios count."""
    return max(float(np.quantile(np.abs(values[values != 0]), 0.05, method="lower")), 1e-300)


def _knots(values: NDArray[np.float64]) -> tuple[float, ...]:
    count = min(KNOTS, values.size)
    at = (np.arange(count) + 0.5) / count
    return tuple(np.quantile(values, at, method="lower").tolist())

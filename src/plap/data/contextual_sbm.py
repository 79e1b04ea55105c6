"""The contextual stochastic block model: a graph whose edges may agree or disagree with its labels."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from plap.data.dataset_name import DatasetName
from plap.data.graph_data import GraphData, Provenance
from plap.data.pairs import sample_distinct, unrank_pairs
from plap.data.seeds import generator
from plap.errors import InputError
from plap.graph import Graph

_KEYS: dict[str, Callable[[str], float]] = {
    "phi": float,
    "n": int,
    "f": int,
    "d": float,
    "epsilon": float,
    "seed": int,
}


def csbm(
    *, phi: float, n: int = 5000, f: int = 2000, d: float = 5.0, epsilon: float = 3.25, seed: int = 0
) -> GraphData:
    r"""Sample a contextual stochastic block model (Deshpande et al. 2018) with Chien et al.'s parameters.

    Two classes :math:`v_i = \pm 1` of n/2 nodes each, in random order, and

    .. math::
        \Pr[i \sim j] &= (d + v_i v_j \lambda \sqrt{d}) / n, &
        \lambda &= \sqrt{1 + \epsilon}\, \sin(\phi \pi / 2), \\
        x_i &= \sqrt{\mu / n}\, v_i u + z_i / \sqrt{f}, &
        \mu &= \sqrt{(n / f)(1 + \epsilon)}\, \cos(\phi \pi / 2)

    with :math:`u \sim N(0, I_f / f)` and :math:`z_i \sim N(0, I_f)`. All parameters with the same
    :math:`\lambda^2 + \mu^2 f / n = 1 + \epsilon` are equally hard; at :math:`\phi = 0` only the features
    tell the classes apart, at 1 only the (homophilic) edges, at -1 only the (heterophilic) edges.

    The number of edges of each pair of classes is drawn from its binomial distribution and then as many
    different pairs, which is the model exactly and takes time linear in the edges.

    Parameters
    ----------
    phi : float in [-1, 1]
        How much of the information lies in the edges, and whether they join like or unlike nodes.
    n, f : int
        Nodes (even: the classes are of equal size) and features.
    d : float
        Expected degree.
    epsilon : float >= 0
        How far above the limit of what can be told apart at all.
    seed : int

    Returns
    -------
    GraphData
        ``y`` is 1 where v = +1 and 0 where v = -1; ``x`` is dense [n, f].

    Examples
    --------
    >>> data = csbm(phi=-0.5, n=1000, f=20)
    >>> data.y.bincount()
    tensor([500, 500])
    >>> data.name
    'csbm:phi=-0.5,n=1000,f=20,d=5.0,epsilon=3.25,seed=0'
    """
    _check(phi, n, f, d, epsilon)
    phi, d, epsilon = float(phi), float(d), float(epsilon)
    strength = math.sqrt(1 + epsilon) * math.sin(phi * math.pi / 2)
    mu = math.sqrt(n / f * (1 + epsilon)) * math.cos(phi * math.pi / 2)
    within, between = (d + sign * strength * math.sqrt(d) for sign in (1, -1))
    if not (0 <= within <= n and 0 <= between <= n):
        raise InputError(
            f"csbm: with d = {d}, epsilon = {epsilon}, phi = {phi} and n = {n} an edge would have the "
            f"probability {within / n:.3g} within and {between / n:.3g} between the classes"
        )
    rng = generator(seed)
    order = rng.permutation(n)
    edges = _edges(rng, order, within / n, between / n)
    label = np.full(n, -1, dtype=np.float32)
    label[order[: n // 2]] = 1
    text = f"csbm:phi={phi},n={n},f={f},d={d},epsilon={epsilon},seed={seed}"
    return GraphData(
        name=text,
        graph=Graph.from_edge_index(torch.from_numpy(np.concatenate([edges, edges[::-1]], 1)), num_nodes=n),
        x=torch.from_numpy(_features(rng, label, f, mu)),
        y=torch.from_numpy((label > 0).astype(np.int64)),
        provenance=Provenance(text),
    )


def _edges(rng: np.random.Generator, order: np.ndarray, within: float, between: float) -> np.ndarray:
    """Every edge once, [2, E]; the first half of ``order`` is one class, the second the other."""
    half = order.size // 2
    groups = order[:half], order[half:]
    pairs = half * (half - 1) // 2
    blocks = []
    for group in groups:
        i, j = unrank_pairs(sample_distinct(rng, pairs, int(rng.binomial(pairs, within))))
        blocks.append(np.stack([group[i], group[j]]))
    cross = sample_distinct(rng, half * half, int(rng.binomial(half * half, between)))
    blocks.append(np.stack([groups[0][cross // half], groups[1][cross % half]]))
    return np.concatenate(blocks, axis=1)


def _features(rng: np.random.Generator, label: np.ndarray, f: int, mu: float) -> np.ndarray:
    n = label.size
    u = rng.standard_normal(f, dtype=np.float32) / math.sqrt(f)
    x = rng.standard_normal((n, f), dtype=np.float32)
    x /= math.sqrt(f)
    x += (math.sqrt(mu / n) * label)[:, None] * u
    return x


def _check(phi: float, n: int, f: int, d: float, epsilon: float) -> None:
    for name, count, least in (("n", n, 2), ("f", f, 1)):
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < least:
            raise InputError(f"csbm: {name} must be an integer of {least} or more, not {count!r}")
    if n % 2:
        raise InputError(f"csbm: n must be even, because both classes are of equal size; it is {n}")
    for name, value in (("phi", phi), ("d", d), ("epsilon", epsilon)):
        number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
        if not (number and math.isfinite(value)):
            raise InputError(f"csbm: {name} must be a finite number, not {value!r}")
    if not -1 <= phi <= 1:
        raise InputError(f"csbm: phi must be in [-1, 1], not {phi}")
    if d <= 0 or epsilon < 0:
        raise InputError(f"csbm: d must be positive and epsilon at least 0, not {d} and {epsilon}")


def csbm_of(name: DatasetName) -> GraphData:
    """Make the cSBM that a name such as ``csbm:phi=-0.5,n=1000`` describes.

    Examples
    --------
    >>> csbm_of(DatasetName.parse("csbm:phi=1, n=10, f=3, d=2, epsilon=0.5")).graph.num_nodes
    10
    """
    arguments: dict[str, Any] = {}
    for key, value in name.parameters:
        if key not in _KEYS:
            close = difflib.get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"it takes {', '.join(_KEYS)}"
            raise InputError(f"csbm has no parameter {key!r}: {hint}")
        if key in arguments:
            raise InputError(f"csbm: {key} is given twice")
        try:
            arguments[key] = _KEYS[key](value)
        except ValueError:
            kind = "an integer" if _KEYS[key] is int else "a number"
            raise InputError(f"csbm: {key} must be {kind}, not {value!r}") from None
    if "phi" not in arguments:
        raise InputError("csbm needs phi, for example csbm:phi=-0.5")
    return csbm(**arguments)

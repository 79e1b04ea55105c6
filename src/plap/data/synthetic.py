"""Graphs made up by chance: the contextual stochastic block model, and edges replaced by random ones."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from plap.data.dataset import DatasetName, GraphData, Provenance
from plap.data.sampling import generator, rank_pairs, sample_absent_pairs, sample_distinct, unrank_pairs
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


class PerturbedGraph(NamedTuple):
    """A graph some of whose edges are random, and which."""

    graph: Graph
    random: Tensor
    """Boolean [entries], aligned with ``graph.indices`` and the columns of ``graph.edge_index``: both
    entries of a random edge are marked."""


def perturb_edges(graph: Graph, rate: float, seed: int = 0) -> PerturbedGraph:
    """Replace a share of the edges by random ones: r = random / all, and as many edges as before.

    Of E edges, k = ⌊r·E + ½⌋ chosen uniformly are removed, and k node pairs chosen uniformly among all
    pairs that were not joined are joined instead; every node is eligible, r = 1 replaces every edge. A
    random edge takes the weight of an edge that was removed, so the weights are the same as before.
    Self-loops, if the graph kept any, stay and are not counted. The time is near linear in the edges.

    The published code differs: its random edges are directed, may be self-loops and never touch the last
    node, and it removes fewer edges than it adds.

    Parameters
    ----------
    graph : Graph
    rate : float in [0, 1]
        The paper has 0.25, 0.5 and 1.
    seed : int

    Examples
    --------
    >>> import plap
    >>> ring = plap.Graph.from_edges([(k, (k + 1) % 8) for k in range(8)])
    >>> noisy, random = perturb_edges(ring, 0.25)
    >>> noisy.num_edges, int(random.sum()) // 2
    (8, 2)
    """
    if isinstance(rate, bool) or not isinstance(rate, int | float | np.number) or not 0 <= rate <= 1:
        raise InputError(f"rate must be a number in [0, 1], not {rate!r}")
    receiver, source = graph.receivers().cpu().numpy(), graph.indices.cpu().numpy().astype(np.int64)
    upper, loops = graph.edges_once().cpu().numpy(), np.flatnonzero(source == receiver)
    rank = rank_pairs(source[upper], receiver[upper])
    count = math.floor(rate * upper.size + 0.5)
    absent = graph.num_nodes * (graph.num_nodes - 1) // 2 - upper.size
    if count > absent:
        raise InputError(
            f"the graph is too dense for a noise rate of {rate}: {count} random edges are wanted, "
            f"but only {absent} pairs of nodes are not joined"
        )
    rng = generator(seed)
    removed = sample_distinct(rng, upper.size, count)
    added = sample_absent_pairs(rng, graph.num_nodes, rank, count)
    kept = np.delete(np.arange(upper.size), removed)
    first, second = unrank_pairs(np.concatenate([rank[kept], added]))
    weight = graph.weight[torch.from_numpy(upper[np.concatenate([kept, rng.permutation(removed)])])]
    loop = torch.from_numpy(receiver[loops])
    ends = torch.from_numpy(np.stack([first, second]))
    noisy = Graph.from_edge_index(
        torch.cat([ends, ends.flip(0), torch.stack([loop, loop])], dim=1),
        torch.cat([weight, weight, graph.weight[torch.from_numpy(loops)]]),
        graph.num_nodes,
        self_loops="keep",
    )
    return PerturbedGraph(noisy.to(graph.device), _marked(noisy, added).to(graph.device))


def _marked(graph: Graph, ranks: np.ndarray) -> Tensor:
    """Whether each entry of ``graph`` belongs to one of the pairs ``ranks`` (ascending)."""
    receiver, source = graph.receivers().cpu().numpy(), graph.indices.cpu().numpy().astype(np.int64)
    low, high = np.minimum(receiver, source), np.maximum(receiver, source)
    if ranks.size == 0:
        return torch.zeros(graph.num_entries, dtype=torch.bool)
    rank = rank_pairs(low, high)
    nearest = ranks[np.minimum(np.searchsorted(ranks, rank), ranks.size - 1)]
    return torch.from_numpy((nearest == rank) & (low < high))

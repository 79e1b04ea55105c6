"""Edge trust against simpler scores, on edges that are known to be random."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.metrics import roc_auc_score
from torch import Tensor

from plap.checks import check_integer
from plap.data import GraphData, Split, perturb_edges, split
from plap.data.sampling import rank_pairs
from plap.errors import InputError
from plap.insight.members import learned_weights, members_of, relative_weights
from plap.insight.trust import attention_trust, edge_trust, feature_cosine, neighbour_jaccard
from plap.training import RunConfig, accuracy, train_runs

SCORES = {
    "trust": "edge trust",
    "weights": "learned weights",
    "cosine": "feature cosine",
    "jaccard": "Jaccard index",
    "attention": "GAT attention",
}
"""Names of the scores in pictures."""


@dataclass(frozen=True)
class TrustComparison:
    """ROC-AUC of each score for separating original edges from random ones: 1 is perfect, 0.5 is chance."""

    dataset: str
    rate: float
    seed: int
    auc: dict[str, float]
    """By the names of :data:`SCORES`."""
    accuracy: dict[str, float]
    """Test accuracy of the models behind the scores: ``pgnn`` (mean over its members) and ``gat``."""


def compare_trust(
    data: GraphData,
    rate: float,
    *,
    preset: str = "sparse",
    members: int = 4,
    config: RunConfig | None = None,
    gat: RunConfig | None = None,
    seed: int = 0,
) -> TrustComparison:
    """Replace a share of the edges by random ones, train on the noisy graph, and see which scores find them.

    Parameters
    ----------
    data : GraphData
        With one class per node.
    rate : float
        Share of random edges, as in :func:`plap.data.perturb_edges`.
    preset : {"sparse", "dense"}
        How many labels are used for training.
    members : int
        Number of pGNNs whose evidence is averaged.
    config, gat : RunConfig, optional
        The models to train; by default pGNN with p = 1.5, μ = 0.1, K = 4, and the paper's GAT (8 × 8 units).
    seed : int
        Random seed for the noise, the split and training.

    Examples
    --------
    >>> import plap
    >>> data = plap.data.csbm(phi=0.8, n=200, f=20, d=8.0, seed=1)
    >>> few = RunConfig(max_epochs=5)
    >>> found = compare_trust(data, 0.25, members=1, config=few, gat=RunConfig(model="gat", max_epochs=5))
    >>> 0 <= found.auc["trust"] <= 1
    True
    """
    _check_data("data", data)
    check_integer("members", members, 1)
    noisy = perturb_edges(data.graph, rate, seed)
    once = noisy.graph.edges_once()
    attacked = replace(data, graph=noisy.graph)
    return _compared(
        attacked, ~noisy.random[once], split(data, preset=preset, seed=seed), rate, members,
        config or RunConfig(p=1.5, max_epochs=200, patience=100), gat, seed,
    )  # fmt: skip


def compare_trust_under_attack(
    clean: GraphData,
    attacked: GraphData,
    *,
    members: int = 4,
    config: RunConfig | None = None,
    gat: RunConfig | None = None,
    seed: int = 0,
) -> TrustComparison:
    """Train on a graph that was attacked, on its own split, and see which scores find the added edges.

    Parameters
    ----------
    clean, attacked : GraphData
        The same nodes before and after, such as ``cora-metattack:rate=0`` and ``cora-metattack:rate=0.25``.
    members, gat, seed :
        As for :func:`compare_trust`.
    config : RunConfig, optional
        By default pGNN with MCP, γ = 3, μ = 0.15, K = 5.

    Examples
    --------
    With the files of the attacked graphs at hand::

        clean, attacked = (plap.data.load(f"cora-metattack:rate={rate}") for rate in (0, 0.25))
        found = plap.insight.compare_trust_under_attack(clean, attacked)
    """
    _check_data("clean", clean)
    _check_data("attacked", attacked)
    check_integer("members", members, 1)
    if clean.graph.num_nodes != attacked.graph.num_nodes:
        raise InputError("clean and attacked must have the same nodes")
    first, second = attacked.graph.edge_index[:, attacked.graph.edges_once()].numpy()
    before = clean.graph.edge_index[:, clean.graph.edges_once()].numpy()
    known = rank_pairs(before.min(0), before.max(0))
    original = np.isin(rank_pairs(np.minimum(first, second), np.maximum(first, second)), known)
    default = RunConfig(
        penalty="mcp", gamma=3.0, mu=0.15, K=5, detach_weights=True, max_epochs=200, patience=100
    )
    return _compared(
        attacked, torch.from_numpy(original), split(attacked, "public"), float((~original).mean()), members,
        config or default, gat, seed,
    )  # fmt: skip


def _check_data(name: str, data: object) -> None:
    if not isinstance(data, GraphData):
        raise InputError(f"{name} must be a plap.data.GraphData, not {type(data).__name__}")


def _compared(
    data: GraphData, original: Tensor, parts: Split, rate: float, members: int, config: RunConfig,
    gat: RunConfig | None, seed: int,
) -> TrustComparison:  # fmt: skip
    """Every score of the edges of ``data``; ``original`` says which of them are to be trusted."""
    graph = data.graph
    gat = gat or RunConfig(model="gat", hidden=8, lr=0.005, dropout=0.6, max_epochs=200, patience=100)
    configs = [config.with_values(seed=seed + k) for k in range(members)]
    configs.append(gat.with_values(seed=seed))
    runs = train_runs(graph, data.x, data.y, configs, parts, num_classes=data.num_classes)
    *modules, attentive = members_of(runs, data.x.shape[1], data.num_classes)
    once = graph.edges_once()
    pairs = graph.edge_index[:, once]
    use = [relative_weights(learned_weights(module, data.x, graph), graph) for module in modules]
    scores: dict[str, ArrayLike] = {
        "trust": edge_trust(modules, data.x, graph, seed=seed)[once],
        "weights": torch.stack(use).mean(0)[once],
        "cosine": feature_cosine(data.x, pairs),
        "jaccard": neighbour_jaccard(graph, pairs),
        "attention": attention_trust(attentive, data.x, graph)[once],
    }
    test = [accuracy(data.y[parts.test], run.logits[parts.test].argmax(1)) for run in runs]
    return TrustComparison(
        data.name,
        rate,
        seed,
        {name: float(roc_auc_score(original, score)) for name, score in scores.items()},
        {"pgnn": sum(test[:-1]) / members, "gat": test[-1]},
    )

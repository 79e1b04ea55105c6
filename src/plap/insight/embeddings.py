"""Embeddings of the nodes by a trained model, and their projection to a plane."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.models import model_of, models_with
from plap.nn.linear import Features


def node_embeddings(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """The input of the last linear map of a trained module for each node, [N, hidden].

    pGNN: F(K) of Eq. 16. GCN: the hidden units after the second averaging.

    Examples
    --------
    >>> import torch, plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> node_embeddings(plap.nn.PGNN(3, 16, 2), torch.eye(3), graph).shape
    torch.Size([3, 16])
    """
    kind = model_of(module)
    if kind is None or kind.embeddings is None:
        raise InputError(
            f"embeddings are taken from {models_with('embeddings')}, not from {type(module).__name__}"
        )
    with evaluating(module):
        return kind.embeddings(module, x, graph)


def tsne(
    states: Tensor, *, seed: int = 0, perplexity: float = 30.0, steps: int = 1000
) -> NDArray[np.float32]:
    """Two coordinates per row by t-SNE (van der Maaten and Hinton, 2008), the same at every call.

    Parameters
    ----------
    states : Tensor, shape [N, C], N of 4 or more
        Each row is scaled to length 1 first, so that rows of similar direction are neighbours.
    seed : int
    perplexity : float
        Reduced to a third of the number of rows if it is larger.
    steps : int, at least 250
        Steps of the descent.

    Examples
    --------
    >>> tsne(torch.eye(6)).shape
    (6, 2)
    """
    if states.ndim != 2 or states.shape[0] < 4:
        raise InputError(f"t-SNE needs a matrix of at least 4 rows, not one of shape {list(states.shape)}")
    rows = torch.nn.functional.normalize(states.detach().double(), dim=1).numpy()
    most = max(1.0, (rows.shape[0] - 1) / 3)
    model = TSNE(
        perplexity=min(perplexity, most), init=_first_plane(rows, seed), random_state=seed, n_jobs=1,
        max_iter=steps,
    )  # fmt: skip
    plane: NDArray[np.float32] = model.fit_transform(rows)
    return plane


def _first_plane(rows: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
    """Two small principal components with a tiny jitter; scikit-learn's own are NaN for equal rows."""
    components = min(2, rows.shape[1])
    plane = np.random.default_rng(seed).normal(0, 1e-6, (rows.shape[0], 2))
    if rows.std(axis=0).max() > 0:
        found = PCA(components, svd_solver="full").fit_transform(rows)
        plane[:, :components] += 1e-4 * found / found[:, 0].std()
    return plane.astype(np.float32)

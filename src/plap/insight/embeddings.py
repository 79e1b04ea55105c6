"""Where a trained model puts the nodes, and that as a plane to look at."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import relu

from plap.errors import InputError
from plap.graph import Graph
from plap.insight.members import evaluating
from plap.nn import PGNN
from plap.nn.adjacency import adjacency_tensor, graph_convolution
from plap.nn.baselines import GCN
from plap.nn.linear import Features, sparse_product
from plap.propagation import propagate


def node_embeddings(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """What the last linear map of a trained module sees of each node, [N, hidden].

    pGNN: F(K) of Eq. 17. GCN: the hidden units after the second averaging.

    Examples
    --------
    >>> import torch, plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> node_embeddings(plap.nn.PGNN(3, 16, 2), torch.eye(3), graph).shape
    torch.Size([3, 16])
    """
    with evaluating(module):
        if isinstance(module, PGNN):
            conv = module.conv
            return propagate(
                module.embed(x),
                graph,
                mu=conv.mu,
                K=conv.K,
                penalty=conv.penalty,
                omega=conv.omega,
                eps=conv.eps,
            )
        if isinstance(module, GCN):
            A = adjacency_tensor(graph)
            return sparse_product(A, relu(graph_convolution(A, x, module.lin1)))
    raise InputError(f"embeddings are taken from PGNN and GCN, not from {type(module).__name__}")


def tsne(states: Tensor, *, seed: int = 0, perplexity: float = 30.0) -> NDArray[np.float32]:
    """Two coordinates a row by t-SNE (van der Maaten and Hinton, 2008), the same at every call.

    Parameters
    ----------
    states : Tensor, shape [N, C], N of 4 or more
        Each row is scaled to length 1 first, so that neighbours are those of equal direction.
    seed : int
    perplexity : float
        At most a third of the rows are taken for neighbours, whatever this says.
    """
    from sklearn.manifold import TSNE  # noqa: PLC0415

    if states.ndim != 2 or states.shape[0] < 4:
        raise InputError(f"t-SNE needs a matrix of at least 4 rows, not one of shape {list(states.shape)}")
    rows = torch.nn.functional.normalize(states.detach().double(), dim=1).numpy()
    most = max(1.0, (rows.shape[0] - 1) / 3)
    model = TSNE(perplexity=min(perplexity, most), init=_first_plane(rows, seed), random_state=seed, n_jobs=1)
    plane: NDArray[np.float32] = model.fit_transform(rows)
    return plane


def _first_plane(rows: NDArray[np.float64], seed: int) -> NDArray[np.float32]:
    """The first principal components, small, and a smaller jitter: equal rows make scikit-learn's NaN."""
    from sklearn.decomposition import PCA  # noqa: PLC0415

    components = min(2, rows.shape[1])
    plane = np.random.default_rng(seed).normal(0, 1e-6, (rows.shape[0], 2))
    if rows.std(axis=0).max() > 0:
        found = PCA(components, svd_solver="full").fit_transform(rows)
        plane[:, :components] += 1e-4 * found / found[:, 0].std()
    return plane.astype(np.float32)

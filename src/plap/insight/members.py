"""The modules of a trained model and what they hold: weights of edges, their entropy, embeddings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from torch import Tensor

from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.models import model_of, models_with
from plap.nn.linear import Features
from plap.training import RunConfig, RunResult, build_module


def load_members(
    config: RunConfig | Sequence[RunConfig],
    states: Sequence[Mapping[str, Tensor]],
    features: int,
    classes: int,
) -> list[torch.nn.Module]:
    """One module per set of weights, in evaluation mode.

    Parameters
    ----------
    config : RunConfig, or one per member
    states : sequence of state dictionaries
        One per member of the ensemble.
    features, classes : int

    Examples
    --------
    >>> import plap
    >>> config = RunConfig(hidden=4)
    >>> (member,) = load_members(config, [plap.nn.PGNN(3, 4, 2).state_dict()], features=3, classes=2)
    >>> member.training
    False
    """
    configs = [config] * len(states) if isinstance(config, RunConfig) else config
    members = []
    for each, state in zip(configs, states, strict=True):
        module = build_module(each, features, classes)
        try:
            module.load_state_dict(dict(state))
        except RuntimeError:
            raise InputError("the weights of the model do not match its configuration") from None
        members.append(module.eval())
    return members


def members_of(runs: Sequence[RunResult], features: int, classes: int) -> list[torch.nn.Module]:
    """The modules of finished runs; runs that did not complete an epoch are left out."""
    trained = [run for run in runs if run.best_epoch > 0]
    return [load_members(run.config, [run.state], features, classes)[0] for run in trained]


def as_members(members: Any, name: str = "members") -> list[torch.nn.Module]:
    """The modules of an ensemble as a list; a single module is an ensemble of one.

    ``name`` is what an error calls them.

    Examples
    --------
    >>> len(as_members(torch.nn.Linear(2, 3)))
    1
    >>> as_members([])
    Traceback (most recent call last):
    plap.errors.InputError: members must contain at least one trained model
    >>> as_members(["pgnn"])
    Traceback (most recent call last):
    plap.errors.InputError: members must be torch.nn.Module objects, or a single one, not str
    """
    if isinstance(members, torch.nn.Module) and not isinstance(members, torch.nn.ModuleList):
        return [members]
    found = list(members) if isinstance(members, Iterable) and not isinstance(members, str) else [members]
    for member in found:
        if not isinstance(member, torch.nn.Module):
            kind = type(member).__name__
            raise InputError(f"{name} must be torch.nn.Module objects, or a single one, not {kind}")
    if not found:
        raise InputError(f"{name} must contain at least one trained model")
    return found


def check_features(x: Any, graph: Any) -> None:
    """Refuse a graph that is none, and features that are not a matrix with one row per node.

    Examples
    --------
    >>> check_features(torch.eye(3).numpy(), Graph.from_edges([(0, 1)]))
    Traceback (most recent call last):
    plap.errors.InputError: x must be a tensor or a SciPy sparse matrix, not ndarray
    """
    nodes = check_graph(graph).num_nodes
    if not isinstance(x, Tensor) and not scipy.sparse.issparse(x):
        raise InputError(f"x must be a tensor or a SciPy sparse matrix, not {type(x).__name__}")
    if x.ndim != 2:
        raise InputError(f"x must have shape [N, F], not {list(x.shape)}")
    if x.shape[0] != nodes:
        raise InputError(f"x has {x.shape[0]} rows but graph has {nodes} nodes")


@contextmanager
def evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Turn dropout and gradients off; afterwards the module and all in it are in their previous modes."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for part, training in before:
            part.training = training


def learned_weights(module: torch.nn.Module, x: Features, graph: Graph) -> Tensor:
    """The weight of each stored entry in a trained module.

    pGNN: α D^-1/2 M D^-1/2 of the last step (Eq. 12-14). GAT: the attention of the first layer, one column
    per head, without the attention of a node to itself.

    Parameters
    ----------
    module : PGNN, GAT, or that of a model with :attr:`plap.models.ModelKind.edge_weights`
    x : Tensor or sparse matrix, shape [N, F]
    graph : Graph

    Returns
    -------
    Tensor, shape [entries] or [entries, heads]
        In the order of ``graph.edge_index``.

    Examples
    --------
    >>> import torch, plap
    >>> graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> learned_weights(plap.nn.PGNN(3, 4, 2, p=2, mu=1), torch.eye(3), graph)
    tensor([0.3536, 0.3536, 0.3536, 0.3536])
    """
    kind = model_of(module)
    if kind is None or kind.edge_weights is None:
        raise InputError(
            f"edge weights are defined for {models_with('edge_weights')}, not for {type(module).__name__}"
        )
    check_features(x, graph)
    with evaluating(module):
        return kind.edge_weights(module, x, graph)


def relative_weights(weight: Tensor, graph: Graph) -> Tensor:
    """pGNN's weights [entries] relative to the receiver's average edge, the mean of both directions.

    An average edge of its two ends has weight 1. The factor D_j^-1/2 of the sender is left out, since the
    model does not choose it.

    Examples
    --------
    >>> import torch, plap
    >>> star = plap.Graph.from_edges([(0, 1), (0, 2)])
    >>> relative_weights(torch.tensor([3.0, 1.0, 1.0, 1.0]), star)
    tensor([1.2500, 0.7500, 1.2500, 0.7500])
    """
    if not isinstance(weight, Tensor) or weight.shape != (check_graph(graph).num_entries,):
        kind = list(weight.shape) if isinstance(weight, Tensor) else type(weight).__name__
        raise InputError(f"weight must be a tensor of shape [{graph.num_entries}], not {kind}")
    receivers = graph.receivers()
    count = torch.bincount(receivers, minlength=graph.num_nodes)
    weight = weight.double() * graph.degree.sqrt()[graph.indices.long()]
    mean = torch.zeros(graph.num_nodes, dtype=torch.float64).index_add(0, receivers, weight)
    mean = mean / count.clamp(min=1)
    relative = weight / mean.clamp(min=torch.finfo(torch.float64).tiny)[receivers]
    return ((relative + relative[graph.reverse_entries()]) / 2).float()


def weight_entropy(weight: Tensor, graph: Graph, *, normalize: bool = True) -> Tensor:
    r"""Entropy of the weights that each node gives to its neighbours, in nats.

    .. math:: H_i = -\sum_{j \in N_i} a_{ij} \log a_{ij}, \qquad a_{ij} = A_{ij} / \sum_{j'} A_{ij'}

    It is 0 if all weight is on one neighbour, and the logarithm of the number of neighbours if all count the
    same. The paper uses A instead of a; but A does not sum to 1 (on a regular graph it sums to 1 − β), so a
    node that mostly keeps its own features has a low "entropy" however it distributes the rest.

    Parameters
    ----------
    weight : Tensor, shape [entries] or [entries, heads], not negative
        In the order of ``graph.edge_index``.
    graph : Graph
    normalize : bool
        False: use A instead of a, as the paper does.

    Returns
    -------
    Tensor, float64, shape [N] or [N, heads]
        NaN for nodes without edges and for nodes whose weights are all 0.

    Examples
    --------
    >>> import torch, plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> weight_entropy(torch.tensor([1.0, 0.5, 0.5, 1.0]), path)
    tensor([0.0000, 0.6931, 0.0000], dtype=torch.float64)
    """
    if weight.ndim not in (1, 2) or weight.shape[0] != graph.num_entries:
        raise InputError(f"weight must have shape [{graph.num_entries}], not {list(weight.shape)}")
    if not bool((weight >= 0).all()):
        raise InputError("weight must not be negative")
    weight = weight.detach().double()
    receivers = graph.receivers()
    empty = torch.zeros(graph.num_nodes, *weight.shape[1:], dtype=torch.float64)
    total = empty.index_add(0, receivers, weight)
    share = weight / total[receivers].clamp(min=torch.finfo(torch.float64).tiny) if normalize else weight
    entropy = empty.index_add(0, receivers, -torch.xlogy(share, share))
    return torch.where(total > 0, entropy, torch.nan)


def uniform_entropy(graph: Graph) -> Tensor:
    """Logarithm of each node's number of neighbours, the maximum of :func:`weight_entropy`; [N].

    Examples
    --------
    >>> import plap
    >>> uniform_entropy(plap.Graph.from_edges([(0, 1), (1, 2)], num_nodes=4))
    tensor([0.0000, 0.6931, 0.0000,    nan], dtype=torch.float64)
    """
    return weight_entropy(torch.ones(graph.num_entries), graph)


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
    check_features(x, graph)
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
    if rows.std(axis=0).max() > 1e-9 * np.abs(rows).max():  # less is rounding: rows that should be equal
        found = PCA(components, svd_solver="full").fit_transform(rows)
        plane[:, :components] += 1e-4 * found / found[:, 0].std()
    return plane.astype(np.float32)

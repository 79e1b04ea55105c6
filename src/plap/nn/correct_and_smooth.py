"""Correct & Smooth after any classifier."""

from __future__ import annotations

import warnings

import torch
from torch import Tensor

from plap.checks import check_flag, check_integer, check_number
from plap.errors import InputError
from plap.graph import Graph, check_graph
from plap.sparse import csr_tensor
from plap.split_masks import SplitLike


@torch.no_grad()
def correct_and_smooth(
    probabilities: Tensor,
    graph: Graph,
    y: Tensor,
    split: SplitLike,
    *,
    use_validation: bool = False,
    correction_layers: int = 50,
    correction_alpha: float = 0.9,
    smoothing_layers: int = 50,
    smoothing_alpha: float = 0.8,
    autoscale: bool = True,
    scale: float = 1.0,
) -> Tensor:
    r"""Spread a classifier's known errors over the edges, then the known labels and its predictions.

    Huang et al. (`ICLR 2021 <https://arxiv.org/abs/2010.13993>`_), as PyG's ``CorrectAndSmooth`` computes it,
    with :math:`S = D^{-1/2} W D^{-1/2}` of the weighted graph, :math:`E_0 = Y - Z` at known nodes and 0
    elsewhere:

    .. math::
        E \leftarrow \alpha_1 S E + (1 - \alpha_1) E_0, \quad
        \hat Z = Z + \gamma E; \qquad
        \hat Z \leftarrow \alpha_2 S \hat Z + (1 - \alpha_2) \hat Z_0

    where :math:`\hat Z_0` is Y at known nodes and Ẑ elsewhere. It assumes that neighbours tend to be of one
    class: on a heterophilic graph it makes predictions worse.

    Parameters
    ----------
    probabilities : Tensor, shape [N, C]
        From any classifier: rows that sum to 1, not logits.
    graph : Graph
        On the device of ``probabilities``.
    y : Tensor, shape [N], integer
        Classes; -1 where unknown. Only the labels of known nodes are read.
    split : with boolean masks ``train`` and ``val`` of shape [N]
    use_validation : bool
        Whether validation labels count as known too. A score on the validation nodes is meaningless then, and
        one on the test nodes compares only with methods that were given them as well.
    correction_layers, smoothing_layers : int
        Steps of the two recursions.
    correction_alpha, smoothing_alpha : float in [0, 1]
        How far errors and labels travel. At 1 nothing holds them where they came from, and on a graph that
        mixes fast all nodes get the same correction, which can undo the classifier's work altogether.
    autoscale : bool
        Choose γ for each node so that its correction is as large as the mean error at known nodes.
    scale : float
        γ, without ``autoscale``.

    Returns
    -------
    Tensor, shape [N, C]
        Rows that sum to 1: PyG's result divided by its row sums, which keeps each row's order. A row that is
        all zeros there keeps the classifier's probabilities.

    Examples
    --------
    >>> import torch, plap
    >>> path = plap.Graph.from_edges([(0, 1), (1, 2)])
    >>> unsure = torch.full((3, 2), 0.5)
    >>> known = plap.data.Split("public", *torch.eye(3, dtype=torch.bool))
    >>> correct_and_smooth(unsure, path, torch.tensor([1, -1, -1]), known).argmax(1)
    tensor([1, 1, 1])
    """
    check_flag("use_validation", use_validation)
    check_flag("autoscale", autoscale)
    known = _known(probabilities, graph, y, split, use_validation)
    for name, layers in (("correction_layers", correction_layers), ("smoothing_layers", smoothing_layers)):
        check_integer(name, layers, 0)
    for name, alpha in (("correction_alpha", correction_alpha), ("smoothing_alpha", smoothing_alpha)):
        check_number(name, alpha, least=0, most=1)
    from torch_geometric.nn.models import CorrectAndSmooth  # noqa: PLC0415  (slow to import)

    steps = CorrectAndSmooth(
        correction_layers, correction_alpha, smoothing_layers, smoothing_alpha, autoscale, scale
    )
    labels = y[known].long()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse (CSR tensor support|invariant checks)")
        W = _weight_matrix(graph, probabilities.dtype)
        corrected = steps.correct(probabilities, labels, known, W)
        # PyG divides 0 by 0 where a classifier makes no error at all
        corrected = torch.where(torch.isfinite(corrected), corrected, probabilities)
        smoothed = steps.smooth(corrected, labels, known, W)
    return _normalised(smoothed, probabilities)


def _weight_matrix(graph: Graph, dtype: torch.dtype) -> Tensor:
    """W as a torch CSR matrix, which PyG normalises itself and multiplies without an array of messages.

    With an ``edge_index`` and weights it would do neither.
    """
    n = graph.num_nodes
    return csr_tensor(graph.indptr, graph.indices, graph.weight.detach().to(dtype), (n, n))


def _normalised(rows: Tensor, otherwise: Tensor) -> Tensor:
    """Rows divided by their sums; those of ``otherwise`` where there is nothing to divide."""
    mass = rows.clamp(min=0)
    total = mass.sum(1, keepdim=True)
    reached = total > torch.finfo(rows.dtype).tiny
    return torch.where(reached, mass / torch.where(reached, total, 1), otherwise)


def _known(probabilities: Tensor, graph: Graph, y: Tensor, split: SplitLike, use_validation: bool) -> Tensor:
    """Mask of the nodes whose labels are used, after everything was checked."""
    n = check_graph(graph).num_nodes
    if not isinstance(probabilities, Tensor) or not probabilities.is_floating_point():
        raise InputError("probabilities must be a tensor of floats")
    if probabilities.ndim != 2 or probabilities.shape[0] != n:
        raise InputError(f"probabilities must have shape [{n}, C], not {list(probabilities.shape)}")
    off = (probabilities.sum(1) - 1).abs() > 1e-3
    if not bool((probabilities >= 0).all()) or bool(off.any()):
        raise InputError(
            "probabilities must be non-negative rows that sum to 1; apply softmax to logits first"
        )
    if not isinstance(y, Tensor) or y.shape != (n,) or y.is_floating_point() or y.dtype == torch.bool:
        raise InputError(f"y must be a tensor of integers of shape [{n}], one class per node")
    for name in ("train", "val"):
        mask = getattr(split, name, None)
        if not isinstance(mask, Tensor):
            kind = type(split).__name__
            raise InputError(f"split must have masks train and val as a plap.data.Split has, not be a {kind}")
        if mask.dtype != torch.bool or mask.shape != (n,):
            raise InputError(f"split.{name} must be boolean of shape [{n}], not {list(mask.shape)}")
    chosen = split.train | split.val if use_validation else split.train
    known = chosen & (y >= 0)
    if not bool(known.any()):
        raise InputError("no node that may be used has a known label")
    largest = int(y[known].max())
    if largest >= probabilities.shape[1]:
        columns = probabilities.shape[1]
        raise InputError(f"y contains the class {largest}, but probabilities has {columns} columns")
    return known

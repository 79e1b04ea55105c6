"""Stacks of p-Laplacian layers, as the paper's appendix uses them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, LayerNorm, Module, ModuleList
from torch.nn.functional import relu

from plap.checks import check_integer
from plap.errors import InputError
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import FeatureLinear, Features, dropout
from plap.nn.plaplacian_conv import PLaplacianConv

Norm = Literal["batch", "layer"] | None

_NORMS: dict[Norm, Callable[[int], Module]] = {"batch": BatchNorm1d, "layer": LayerNorm, None: Identity}


class DeepPGNN(torch.nn.Module):
    r"""Several :class:`PLaplacianConv` in a row, with normalisation, residuals and an MLP in front.

    .. math::
        H^{(0)} &= g(X \Theta_0 + b_0) \quad \text{(with an MLP in front; otherwise X)}, \\
        H^{(l)} &= g(\mathrm{conv}_l(H^{(l-1)})) \; [+ \, H^{(l-1)}], \quad l < L, \\
        Z &= \mathrm{conv}_L(H^{(L-1)}), \qquad g = \mathrm{dropout} \circ \mathrm{ReLU} \circ \mathrm{norm}

    The result is the logits Z. :meth:`for_ppi`, :meth:`for_arxiv` and :meth:`for_arxiv_residual` make the
    models of the appendix.

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    num_layers : int
        L, the number of p-Laplacian layers.
    p, mu, K, and further keywords :
        Of every layer, as in :class:`PLaplacianConv`.
    dropout : float
        Share of the hidden units that is dropped in training, after every layer but the last.
    norm : {"batch", "layer", None}
    residual : bool
        Add its input to the output of each layer that maps hidden units to hidden units: all but the last,
        and without an MLP in front all but the first too.
    mlp_layers : int
        Linear layers in front. With none, the first p-Laplacian layer propagates the features themselves,
        and sparse features are converted to dense ones.

    Attributes
    ----------
    hops : int
        How many edges away a node can be and still matter: the steps of all layers together.

    Shapes: x [N, in], dense or sparse (torch CSR or COO, or SciPy); result [N, out].

    Examples
    --------
    >>> import torch, plap
    >>> model = plap.nn.DeepPGNN(5, 16, 3, num_layers=4, K=2, residual=True, mlp_layers=1)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    >>> model.hops
    8
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        p: float | None = None,
        mu: float = 0.1,
        K: int = 4,
        dropout: float = 0.5,
        norm: Norm = "batch",
        residual: bool = False,
        mlp_layers: int = 0,
        **options: Any,
    ) -> None:
        super().__init__()
        _check(num_layers, mlp_layers, norm)
        self.dropout, self.residual, self.hops = dropout, residual, num_layers * K
        front = [in_channels, *[hidden_channels] * mlp_layers]
        widths = [front[-1], *[hidden_channels] * (num_layers - 1), out_channels]
        self.mlp = ModuleList(FeatureLinear(*pair) for pair in pairwise(front))
        self.convs = ModuleList(PLaplacianConv(*pair, p, mu, K, **options) for pair in pairwise(widths))
        self.norms = ModuleList(_NORMS[norm](hidden_channels) for _ in range(mlp_layers + num_layers - 1))
        self._graph = GraphArgument(options.get("cached", True))

    @classmethod
    def for_ppi(cls, p: float, hidden_channels: int = 256, **changes: Any) -> DeepPGNN:
        """Appendix, PPI: a linear layer and three p-Laplacian ones of 256 or 512 units, μ = 0.01, K = 1.

        What the paper does not specify (normalisation, dropout) has the defaults of this class, here and in
        the other two.
        """
        paper = {"num_layers": 3, "mu": 0.01, "K": 1, "mlp_layers": 1}
        sizes = {"in_channels": 50, "hidden_channels": hidden_channels, "out_channels": 121}
        return cls(**{**sizes, **paper, "p": p, **changes})

    @classmethod
    def for_arxiv(cls, p: float, **changes: Any) -> DeepPGNN:
        """Appendix, ogbn-arxiv: three layers of 256 units, μ = 0.5, K = 2."""
        paper = {"num_layers": 3, "mu": 0.5, "K": 2}
        sizes = {"in_channels": 128, "hidden_channels": 256, "out_channels": 40}
        return cls(**{**sizes, **paper, "p": p, **changes})

    @classmethod
    def for_arxiv_residual(cls, p: float, **changes: Any) -> DeepPGNN:
        """Appendix, ogbn-arxiv "+ residual (6 layers)"; the paper follows it by Correct & Smooth."""
        return cls.for_arxiv(p, **{"num_layers": 6, "residual": True, **changes})

    def reset_parameters(self) -> None:
        """Reinitialise all weights and the statistics of the normalisation."""
        for module in (*self.mlp, *self.convs, *self.norms):
            if not isinstance(module, Identity):
                module.reset_parameters()

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        graph = self._graph(edge_index, edge_weight, x.shape[0])
        norms = iter(self.norms)
        hidden = x
        for linear in self.mlp:
            hidden = self._activate(linear(hidden), next(norms))
        for conv in self.convs[:-1]:
            result = self._activate(conv(hidden, graph), next(norms))
            hidden = result + hidden if self.residual and hidden is not x else result
        logits: Tensor = self.convs[-1](hidden, graph)
        return logits

    def _activate(self, hidden: Tensor, norm: Module) -> Tensor:
        return dropout(relu(norm(hidden)), self.dropout, self.training)


def _check(num_layers: int, mlp_layers: int, norm: Norm) -> None:
    check_integer("num_layers", num_layers, 1)
    check_integer("mlp_layers", mlp_layers, 0)
    if norm not in _NORMS:
        raise InputError(f"norm must be 'batch', 'layer' or None, not {norm!r}")

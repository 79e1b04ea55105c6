"""The paper's model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import relu

from plap.nn.graph_argument import GraphLike
from plap.nn.linear import FeatureLinear, Features, dropout
from plap.nn.plaplacian_conv import AggregationWeights, PLaplacianConv


class PGNN(torch.nn.Module):
    r"""The pGNN of Fu, Zhao and Bian (Eq. 15-17): linear, ReLU, dropout, propagate, linear.

    .. math::
        F^{(0)} = \mathrm{ReLU}(X \Theta^{(1)}), \quad
        F^{(k+1)} = \alpha^{(k)} D^{-1/2} M^{(k)} D^{-1/2} F^{(k)} + \beta^{(k)} F^{(0)}, \quad
        Z = F^{(K)} \Theta^{(2)}

    The result is the logits Z, as with PyG's models: train with ``torch.nn.functional.cross_entropy``.

    Shapes: x [N, in], dense or sparse (torch CSR or COO, or SciPy; multiplied as sparse); result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    p, mu, K, and further keywords :
        As in :class:`PLaplacianConv`.
    dropout : float
        Share of the hidden units that is dropped in training.

    Examples
    --------
    >>> import torch, plap
    >>> model = plap.nn.PGNN(5, 16, 3, p=1.5, mu=0.1, K=4, dropout=0.5)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        p: float | None = None,
        mu: float = 0.1,
        K: int = 4,
        dropout: float = 0.5,
        **options: Any,
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.lin = FeatureLinear(in_channels, hidden_channels)
        self.conv = PLaplacianConv(hidden_channels, out_channels, p, mu, K, **options)

    def reset_parameters(self) -> None:
        """Reinitialise all weights."""
        self.lin.reset_parameters()
        self.conv.reset_parameters()

    def embed(self, x: Features) -> Tensor:
        """F(0): what is propagated, [N, hidden]."""
        return dropout(relu(self.lin(x)), self.dropout, self.training)

    def forward(
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = None,
        *,
        return_aggregation_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AggregationWeights]:
        """The logits, [N, out]; see :class:`PLaplacianConv` for ``return_aggregation_weights``."""
        hidden = self.embed(x)
        result: Tensor | tuple[Tensor, AggregationWeights] = self.conv(
            hidden, edge_index, edge_weight, return_aggregation_weights=return_aggregation_weights
        )
        return result

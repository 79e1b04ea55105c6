"""p-Laplacian message passing as a layer, which takes the edge masks of PyG's explainers."""

from __future__ import annotations

import math
from typing import Literal, overload

import torch
from torch import Tensor
from torch.nn import Linear, Parameter
from torch.nn.functional import softplus
from torch_geometric.nn import MessagePassing

from plap.checks import check_flag, check_integer, check_number
from plap.errors import InputError
from plap.graph import Graph
from plap.kernels.backend import Backend
from plap.kernels.registry import find_backend
from plap.memory import MemoryBudget, parse_budget
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import SHORT, Features, check_sizes, node_count, wide
from plap.penalties import Penalty, Power
from plap.propagation import aggregation_weights, in_absolute_units, propagate

_DEFAULT_P = 1.5

AggregationWeights = tuple[Tensor, Tensor]


class PLaplacianConv(MessagePassing):  # type: ignore[misc]  # PyG has no type annotations for mypy
    r"""p-Laplacian message passing, then a linear map.

    From `"p-Laplacian Based Graph Neural Networks" <https://proceedings.mlr.press/v162/fu22e.html>`_
    (Fu, Zhao, Bian, ICML 2022), Eq. 14:

    .. math::
        F^{(0)} = X, \quad
        F^{(k+1)} = \alpha^{(k)} D^{-1/2} M^{(k)} D^{-1/2} F^{(k)} + \beta^{(k)} X, \quad
        X' = F^{(K)} \Theta + b

    Sparse x is converted to dense, because propagation fills it up; 16-bit x is propagated in float32.

    The layer is one of PyG's ``MessagePassing`` layers so that ``torch_geometric.explain.Explainer`` finds it
    and sets its edge masks, which become edge weights (``plap.nn.plaplacian_conv``). It does not
    use their ``propagate`` and ``message``.

    Shapes: x [N, in] or [R, N, in]; ``edge_index`` [2, E], ``EdgeIndex``, a sparse [N, N] matrix or a
    :class:`plap.Graph`; ``edge_weight`` [E]; result [N, out] or [R, N, out].

    Parameters
    ----------
    in_channels, out_channels : int
    p : float, at least 1
        p < 2 trusts edges between similar nodes, p > 2 edges between different ones; 1.5 unless given.
    mu : float, positive
        How strongly the result is tied to the input.
    K : int
        Number of steps. A few undamped steps keep both ends of the spectrum; many keep only the low end.
    bias : bool
    concat : bool
        Map [X, F(K)], the input beside what came of it, instead of F(K) alone.
    cached : bool
        Remember the graph made of an ``edge_index`` for as long as that tensor is neither changed nor freed.
        Changes that PyTorch does not count go unseen: those through ``edge_index.data``, and those through a
        NumPy array that shares its memory (``torch.from_numpy``). The same holds for ``edge_weight``.
    penalty : Penalty, optional
        Another penalty than the power (:mod:`plap.penalties`), in place of p; its parameter is a number, or a
        quantile of the edge norms of the layer's input (:class:`plap.penalties.Quantile`).
    detach_weights : bool
        Treat ψ(‖∇F‖²) as a constant in the backward pass.
    unit : float or "auto"
        The length in which γ and μ are given, as in :func:`plap.propagate`. With "auto" it is the median edge
        norm of the layer's input and changes with it: the layer then commutes with the scale of the features.
    learn_p, learn_mu, learn_gamma : bool
        Train p = 1 + 2 σ(·) (so it starts and stays between 1 and 3), μ = softplus(·), and the parameter of
        ``penalty``, γ = softplus(·) above the least that it may be, with the rest.
    omega, eps, backend, memory_budget :
        As in :func:`plap.propagate`.

    Examples
    --------
    >>> import torch, plap
    >>> conv = plap.nn.PLaplacianConv(16, 7, p=1.5, mu=0.1, K=4)
    >>> conv
    PLaplacianConv(16, 7, p=1.5, mu=0.1, K=4)
    >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    >>> conv(torch.randn(3, 16), edge_index).shape
    torch.Size([3, 7])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        p: float | None = None,
        mu: float = 0.1,
        K: int = 4,
        *,
        bias: bool = True,
        concat: bool = False,
        cached: bool = True,
        penalty: Penalty | None = None,
        detach_weights: bool = False,
        unit: float | Literal["auto"] = 1.0,
        learn_p: bool = False,
        learn_mu: bool = False,
        learn_gamma: bool = False,
        omega: float = 1.0,
        eps: float | None = None,
        backend: str | Backend = "auto",
        memory_budget: MemoryBudget = None,
    ) -> None:
        super().__init__(aggr=None)
        check_sizes(in_channels=in_channels, out_channels=out_channels)
        if penalty is not None and p is not None:
            raise InputError("p and penalty cannot both be given: p=1.5 is short for penalty=Power(1.5)")
        p = _DEFAULT_P if p is None else check_number("p", p, least=1)
        mu = check_number("mu", mu, above=0)
        K = check_integer("K", K, 1)
        check_number("omega", omega, above=0, below=2)
        find_backend(backend)
        flags = {
            "bias": bias, "concat": concat, "cached": cached, "detach_weights": detach_weights,
            "learn_p": learn_p, "learn_mu": learn_mu, "learn_gamma": learn_gamma,
        }  # fmt: skip
        for name, flag in flags.items():
            check_flag(name, flag)
        if detach_weights and (learn_p or learn_gamma):
            raise InputError(
                f"learn_{'p' if learn_p else 'gamma'} needs the gradient of the edge weights, which "
                "detach_weights leaves out"
            )
        if learn_p and not 1 < p < 3:
            raise InputError(f"p must lie between 1 and 3 to be learned, not {p!r}")
        if penalty is not None:
            measured = isinstance(penalty, Penalty) and penalty.quantile is not None
            if measured and learn_gamma:
                raise InputError(f"learn_gamma needs a number to start from, not {penalty!r}")
            if not isinstance(penalty, Penalty) or (not measured and isinstance(penalty.parameter, Tensor)):
                raise InputError(f"penalty must be a penalty of a number such as MCP(3.0), not {penalty!r}")
            if learn_gamma and not float(penalty.parameter) > _floor(penalty):
                raise InputError(
                    f"{penalty.parameter_name} must be greater than {_floor(penalty):g} to be learned, "
                    f"not {penalty.parameter!r}"
                )
            if learn_p:
                raise InputError(
                    "learn_p needs the power penalty; with penalty, learn_gamma trains its parameter"
                )
        elif learn_gamma:
            raise InputError("learn_gamma needs penalty")
        self.in_channels, self.out_channels, self.concat = in_channels, out_channels, concat
        self.K, self.omega, self.eps, self.backend = K, omega, eps, backend
        self.memory_budget, self.detach_weights = parse_budget(memory_budget), detach_weights
        self.unit = unit
        self._penalty = penalty
        self._start = (p, mu)
        self._raw_p = Parameter(torch.empty(())) if learn_p else None
        self._raw_mu = Parameter(torch.empty(())) if learn_mu else None
        self._raw_gamma = Parameter(torch.empty(())) if learn_gamma else None
        self._graph = GraphArgument(cached)
        self.lin = Linear((1 + concat) * in_channels, out_channels, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reinitialise the linear map, and set learned p, mu and gamma back to their initial values."""
        self.lin.reset_parameters()
        p, mu = self._start
        with torch.no_grad():
            if self._raw_p is not None:
                self._raw_p.fill_(torch.logit(torch.tensor((p - 1) / 2, dtype=torch.float64)))
            if self._raw_mu is not None:
                self._raw_mu.fill_(_before_softplus(mu))
            if self._raw_gamma is not None and self._penalty is not None:
                above = float(self._penalty.parameter) - _floor(self._penalty)
                self._raw_gamma.fill_(_before_softplus(above))

    @property
    def p(self) -> float | Tensor:
        """The exponent, a tensor if it is learned; another penalty has none."""
        if self._penalty is not None:
            if not isinstance(self._penalty, Power):
                raise AttributeError(f"{type(self._penalty).__name__} has no p")
            return self.penalty.parameter
        return self._start[0] if self._raw_p is None else 1 + 2 * self._raw_p.sigmoid()

    @property
    def mu(self) -> float | Tensor:
        """The weight of the input, a tensor if it is learned."""
        return self._start[1] if self._raw_mu is None else softplus(self._raw_mu)

    @property
    def penalty(self) -> Penalty:
        """How edges are weighed: a power unless another penalty was given."""
        if self._penalty is None:
            return Power(self.p)
        if self._raw_gamma is None:
            return self._penalty
        return self._penalty.at(_floor(self._penalty) + softplus(self._raw_gamma))

    @property
    def measures_lengths(self) -> bool:
        """Whether γ or the unit depends on the features and edges that the layer is given."""
        return self.unit == "auto" or self.penalty.quantile is not None

    def at_scale_of(self, x: Tensor, graph: Graph) -> tuple[Penalty, float | Tensor]:
        """The penalty and μ that x is propagated with, as numbers in the unit of x."""
        penalty, mu = in_absolute_units(self.penalty, self.mu, self.unit, x, graph)
        assert mu is not None
        return penalty, mu

    @property
    def edge_mask(self) -> Tensor:
        """The mask that an explainer has set, from 0 to 1 for each edge of its ``edge_index``."""
        mask: Tensor = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        return mask

    @overload
    def forward(
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = ...,
        *,
        return_aggregation_weights: Literal[False] = ...,
    ) -> Tensor: ...

    @overload
    def forward(
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = ...,
        *,
        return_aggregation_weights: Literal[True],
    ) -> tuple[Tensor, AggregationWeights]: ...

    def forward(
        self,
        x: Features,
        edge_index: GraphLike,
        edge_weight: Tensor | None = None,
        *,
        return_aggregation_weights: bool = False,
    ) -> Tensor | tuple[Tensor, AggregationWeights]:
        """Propagate x and map it; if asked, with (edge_index, α D^-1/2 M D^-1/2) of the last step."""
        check_flag("return_aggregation_weights", return_aggregation_weights)
        x = _dense(x, self.lin.weight.dtype)
        graph = self._graph(edge_index, edge_weight, x.shape[-2])
        penalty, mu = self.at_scale_of(x, graph)
        if self.explain:
            graph = masked_graph(graph, edge_index, self.edge_mask)

        def steps(K: int) -> Tensor:
            return propagate(
                x, graph, mu=mu, K=K, penalty=penalty, detach_weights=self.detach_weights, omega=self.omega,
                eps=self.eps, backend=self.backend, memory_budget=self.memory_budget,
            )  # fmt: skip

        propagated = steps(self.K)
        mapped = torch.cat([x, propagated], -1) if self.concat else propagated
        if self.lin.weight.dtype in SHORT:
            mapped = mapped.to(self.lin.weight.dtype)
        out: Tensor = self.lin(mapped)
        if not return_aggregation_weights:
            return out
        before = steps(self.K - 1) if self.K > 1 else x
        return out, (
            graph.edge_index,
            aggregation_weights(before, graph, mu=mu, penalty=penalty, eps=self.eps),
        )

    def __repr__(self) -> str:
        with torch.no_grad():
            if self._penalty is None:
                how = f"p={float(self.p):g}" + (" learned" if self._raw_p is not None else "")
            else:
                how = f"penalty={self.penalty!r}" + (" learned" if self._raw_gamma is not None else "")
            mu = f"{float(self.mu):g}" + (" learned" if self._raw_mu is not None else "")
        rest = ", concat=True" if self.concat else ""
        return f"PLaplacianConv({self.in_channels}, {self.out_channels}, {how}, mu={mu}, K={self.K}{rest})"


def _floor(penalty: Penalty) -> float:
    """What the parameter of a penalty stays above."""
    return 0.0 if penalty.least is None else penalty.least


def _before_softplus(value: float) -> float:
    """What softplus maps to ``value``."""
    return value + math.log(-math.expm1(-value))


def _dense(x: Features, dtype: torch.dtype) -> Tensor:
    """x as a dense tensor of at least 32 bits; SciPy's matrices in the layer's own type."""
    node_count(x)
    if not isinstance(x, Tensor):
        return wide(torch.from_numpy(x.toarray()).to(dtype))
    if x.layout != torch.strided:
        x = x.to_dense()
    return wide(x)


_LEAST = 1e-12
"""What stands for a weight of 0, so that an edge that is masked out still has a gradient."""


def masked_graph(graph: Graph, edge_index: Graph | Tensor, mask: Tensor) -> Graph:
    r"""The graph with each edge kept as far as its mask says; what is taken from it goes to its two ends.

    An edge of weight w and mask m gets the weight w m, and each of its ends a self-loop of weight w (1 − m).
    Degrees stay as they are, so a mask weakens an edge as such and not only in comparison with the other
    edges of its nodes: masks of 1 give the graph, and masks of 0 a graph on which every node keeps its own
    features. The operator itself does not change if all weights are multiplied by a number, so without the
    loops masks that are all equal would have no effect.

    Parameters
    ----------
    graph : Graph
        What :meth:`plap.Graph.from_edge_index` makes of ``edge_index``, without self-loops.
    edge_index : Tensor, shape [2, E]
    mask : Tensor, shape [E]
        From 0 to 1; where both directions of an edge are given, their mean counts.

    Examples
    --------
    >>> edges = torch.tensor([[0, 1], [1, 2]])
    >>> path = Graph.from_edge_index(edges)
    >>> masked_graph(path, edges, torch.tensor([0.25, 1.0])).to_scipy().toarray().round(6)
    array([[0.75, 0.25, 0.  ],
           [0.25, 0.75, 1.  ],
           [0.  , 1.  , 0.  ]], dtype=float32)
    """
    return weakened(graph, entry_mask(graph, edge_index, mask))


def entry_mask(graph: Graph, edge_index: Graph | Tensor, mask: Tensor) -> Tensor:
    """The mask of each stored entry of the graph that ``edge_index`` made, [entries].

    Examples
    --------
    >>> edges = torch.tensor([[0, 1], [1, 2]])
    >>> entry_mask(Graph.from_edge_index(edges), edges, torch.tensor([0.25, 1.0]))
    tensor([0.2500, 0.2500, 1.0000, 1.0000])
    """
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise InputError("an explanation needs the edges as an edge_index of shape [2, E]")
    if mask.shape != (edge_index.shape[1],):
        raise InputError(f"the edge mask has shape {list(mask.shape)} for {edge_index.shape[1]} edges")
    least = mask.clamp(min=_LEAST)
    return Graph.from_edge_index(edge_index, least, graph.num_nodes, symmetrize="mean").weight


def weakened(graph: Graph, mask: Tensor) -> Graph:
    """The graph with each stored entry kept as far as ``mask`` [entries] says; see :func:`masked_graph`.

    Both entries of an edge must have the same mask, and a self-loop the mask 1.

    Examples
    --------
    >>> path = Graph.from_edges([(0, 1), (1, 2)])
    >>> weakened(path, torch.tensor([1.0, 1.0, 0.5, 0.5])).degree.round(decimals=6)
    tensor([1., 2., 1.], dtype=torch.float64)
    """
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    kept = graph.weight * mask.clamp(min=_LEAST)
    taken = torch.zeros_like(nodes, dtype=kept.dtype).index_add(0, graph.receivers(), graph.weight - kept)
    return Graph.from_edge_index(
        torch.cat([graph.edge_index, nodes.expand(2, -1)], 1),
        torch.cat([kept, taken]).clamp(min=_LEAST),
        graph.num_nodes,
        symmetrize="sum",
        self_loops="keep",
    )

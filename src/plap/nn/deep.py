"""Deep p-Laplacian networks: the stacks of the paper's appendix, and what later work adds to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import BatchNorm1d, Identity, LayerNorm, Linear, Module, ModuleList
from torch.nn.functional import relu

from plap.checks import check_choice, check_flag, check_integer
from plap.errors import InputError
from plap.nn.graph_argument import GraphArgument, GraphLike
from plap.nn.linear import FeatureLinear, Features, check_hidden, check_sizes, dropout, node_count
from plap.nn.plaplacian_conv import PLaplacianConv

Norm = Literal["batch", "layer"] | None
Output = Literal["layer", "linear", "max", "cat"]

_NORMS: dict[Norm, Callable[[int], Module]] = {"batch": BatchNorm1d, "layer": LayerNorm, None: Identity}
_LEARNED = ("_raw_p", "_raw_mu", "_raw_gamma")


class DeepPGNN(torch.nn.Module):
    r"""Several :class:`PLaplacianConv` in a row, with normalisation, residuals and an MLP in front.

    .. math::
        H^{(0)} &= g(X \Theta_0 + b_0) \quad \text{(with an MLP in front; otherwise X)}, \\
        H^{(l)} &= g(\mathrm{conv}_l(H^{(l-1)})) \; [+ \, H^{(l-1)}], \quad l < L, \\
        Z &= \mathrm{conv}_L(H^{(L-1)}), \qquad g = \mathrm{dropout} \circ \mathrm{ReLU} \circ \mathrm{norm}

    With ``prenorm`` the normalisation stands in front of each convolution instead of behind it. With another
    ``output`` than "layer" all L layers are hidden ones, and a linear map makes the logits of what they give.

    The result is the logits Z. Special cases are the paper's :class:`PGNN` (``num_layers=1, mlp_layers=1,
    norm=None``) and, with p = 2, K = 1 and a small μ, a stack of graph convolutions without self-loops.
    :meth:`for_ppi`, :meth:`for_arxiv` and :meth:`for_arxiv_residual` make the models of the appendix.

    Shapes: x [N, in], dense or sparse (torch CSR or COO, or SciPy); result [N, out].

    Parameters
    ----------
    in_channels, hidden_channels, out_channels : int
    num_layers : int
        L, the number of p-Laplacian layers.
    p, mu, K : number, or a sequence of L numbers
        Of every layer, or of each.
    penalty, concat, learn_p, learn_mu, learn_gamma, and further keywords :
        Of every layer, as in :class:`PLaplacianConv`; ``penalty`` may be a sequence of L penalties.
    dropout : float
        Share of the hidden units that is dropped in training, after every layer but the last.
    norm : {"batch", "layer", None}
    residual : bool
        Add its input to the output of each layer that maps hidden units to hidden units: all but the last,
        and without an MLP in front all but the first too.
    mlp_layers : int
        Linear layers in front. With none, the first p-Laplacian layer propagates the features themselves,
        and sparse features are converted to dense ones.
    prenorm : bool
        Normalise what a layer is given instead of what it gives; features are not normalised.
    output : {"layer", "linear", "max", "cat"}
        What makes the logits: the last p-Laplacian layer; a linear map of the last layer's output; or one of
        the outputs of all layers, their maximum or side by side (jumping knowledge, Xu et al., 2018).
    tied : bool
        Learned p, mu and gamma are the same in all layers.

    Attributes
    ----------
    hops : int
        How many edges away a node can be and still matter: the steps of all layers together.

    Examples
    --------
    >>> import torch, plap
    >>> model = plap.nn.DeepPGNN(5, 16, 3, num_layers=4, K=2, residual=True, mlp_layers=1)
    >>> model(torch.randn(4, 5), torch.tensor([[0, 1, 2], [1, 2, 3]])).shape
    torch.Size([4, 3])
    >>> model.hops
    8
    >>> plap.nn.DeepPGNN(5, 16, 3, num_layers=2, p=(1.5, 2.5), K=1, concat=True, output="linear").convs[1]
    PLaplacianConv(16, 16, p=2.5, mu=0.1, K=1, concat=True)
    """

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 3,
        p: float | Sequence[float] | None = None,
        mu: float | Sequence[float] = 0.1,
        K: int | Sequence[int] = 4,
        dropout: float = 0.5,
        norm: Norm = "batch",
        residual: bool = False,
        mlp_layers: int = 0,
        *,
        prenorm: bool = False,
        output: Output = "layer",
        tied: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        check_sizes(in_channels=in_channels, hidden_channels=hidden_channels, out_channels=out_channels)
        _check(num_layers, mlp_layers, norm, output)
        self.dropout, self.output = dropout, output
        self.residual, self.prenorm = check_flag("residual", residual), check_flag("prenorm", prenorm)
        each = {"p": p, "mu": mu, "K": K, "penalty": options.pop("penalty", None)}
        layers = [
            dict(zip(each, values, strict=True))
            for values in zip(*(_each(name, value, num_layers) for name, value in each.items()), strict=True)
        ]
        front = [in_channels, *[hidden_channels] * mlp_layers]
        last = out_channels if output == "layer" else hidden_channels
        widths = [front[-1], *[hidden_channels] * (num_layers - 1), last]
        self.mlp = ModuleList(FeatureLinear(*pair) for pair in pairwise(front))
        self.convs = ModuleList(
            PLaplacianConv(inputs, outputs, **layer, **options)
            for (inputs, outputs), layer in zip(pairwise(widths), layers, strict=True)
        )
        self.hops = sum(layer["K"] for layer in layers)
        if check_flag("tied", tied):
            for name, values in each.items():
                if isinstance(values, Sequence) and any(value != values[0] for value in values):
                    raise InputError(f"tied layers share {name}, so it must be one value, not {values!r}")
            _tie(self.convs)
        jumped = hidden_channels * (num_layers if output == "cat" else 1)
        self.lin = None if output == "layer" else Linear(jumped, out_channels)
        hidden_layers = num_layers - (output == "layer")
        if prenorm:
            made = [None if mlp_layers == 0 else norm, *[norm] * (num_layers - 1)]
            self.norms = ModuleList(_NORMS[each](hidden_channels) for each in made)
            if self.lin is not None:
                self.norms.append(_NORMS[norm](jumped))
        else:
            self.norms = ModuleList(_NORMS[norm](hidden_channels) for _ in range(mlp_layers + hidden_layers))
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
        for module in (*self.mlp, *self.convs, *self.norms, *([] if self.lin is None else [self.lin])):
            if not isinstance(module, Identity):
                module.reset_parameters()

    def forward(self, x: Features, edge_index: GraphLike, edge_weight: Tensor | None = None) -> Tensor:
        """The logits, [N, out]."""
        nodes = node_count(x)
        explained = any(conv.explain for conv in self.convs)  # then each layer masks the edges itself
        edges = (edge_index, edge_weight) if explained else (self._graph(edge_index, edge_weight, nodes),)
        norms = iter(self.norms)
        hidden = x
        for linear in self.mlp:
            hidden = self._activate(check_hidden(x, linear(hidden)), norms)
        states = []
        for conv in self.convs if self.lin is not None else self.convs[:-1]:
            result = self._activate(conv(self._given(x, hidden, norms), *edges), norms)
            hidden = result + hidden if self.residual and hidden is not x else result
            states.append(hidden)
        logits: Tensor
        if self.lin is None:
            logits = self.convs[-1](self._given(x, hidden, norms), *edges)
        else:
            logits = self.lin(self._prepare(jump(states, self.output), norms))
        return logits

    def _given(self, x: Features, hidden: Features, norms: Iterator[Module]) -> Features:
        """What a layer propagates: the features themselves, or hidden ones that are known to be finite."""
        prepared = self._prepare(hidden, norms)
        return x if prepared is x else check_hidden(x, prepared)

    def _prepare(self, hidden: Tensor, norms: Iterator[Module]) -> Tensor:
        return next(norms)(hidden) if self.prenorm else hidden

    def _activate(self, hidden: Tensor, norms: Iterator[Module]) -> Tensor:
        hidden = hidden if self.prenorm else next(norms)(hidden)
        return dropout(relu(hidden), self.dropout, self.training)


def jump(states: Sequence[Tensor], output: Output) -> Tensor:
    """What a linear output sees of the layers' outputs: the last, their maximum, or all side by side.

    Examples
    --------
    >>> jump([torch.tensor([[1.0, 5.0]]), torch.tensor([[3.0, 2.0]])], "max")
    tensor([[3., 5.]])
    """
    if output == "cat":
        return torch.cat(list(states), -1)
    return states[-1] if output == "linear" else torch.stack(list(states)).amax(0)


def _each(name: str, value: Any, count: int) -> Sequence[Any]:
    """One value per layer."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return [value] * count
    if len(value) != count:
        raise InputError(f"{name} has {len(value)} values for {count} layers: give one, or one per layer")
    return value


def _tie(convs: ModuleList) -> None:
    first = convs[0]
    for conv in convs:
        for name in _LEARNED:
            setattr(conv, name, getattr(first, name))


def _check(num_layers: int, mlp_layers: int, norm: Norm, output: Output) -> None:
    check_integer("num_layers", num_layers, 1)
    check_integer("mlp_layers", mlp_layers, 0)
    check_choice("output", output, Output)
    if norm not in _NORMS:
        raise InputError(f"norm must be 'batch', 'layer' or None, not {norm!r}")

"""K steps forward and backward by kernels that own rows; the same for the CPU and for GPUs.

For the backward pass α of every step (K × nodes) and Y of all or some steps (K × nodes × channels) are kept.
Conductances are recomputed there, so nothing of size edges × channels ever exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from plap.kernels.budget import KEEP_ALL, KEEP_NONE, backwards, kept
from plap.kernels.penalty_code import POWER


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of the forward pass."""

    history: Tensor
    """Y before the steps that ``every`` selects, [kept, R, N, padded C]."""
    norms: Tensor
    """|Y_i|² of these, [kept, R, N], if steps will be recomputed; empty if all are kept."""
    alphas: Tensor
    """α of every step, [K, R, N]."""
    result: Tensor
    """F after the last step, [R, N, padded C]."""


@dataclass(frozen=True)
class Gradients:
    """Cotangents of the arguments of :func:`forward`."""

    x: Tensor
    weight: Tensor | None
    parameter: Tensor
    mu: Tensor


class Rule(NamedTuple):
    """How edges are weighed."""

    penalty: str
    """Its key in :mod:`plap.kernels.penalty_code`."""
    c: float
    """The constant in ρ'(y) = c y ψ(y²); unused for powers, where it is p."""
    detach: bool
    """Whether ψ counts as a constant in the backward pass."""


POWERS = Rule(POWER, 1.0, False)


class Wanted(NamedTuple):
    """Where the result of K steps will be looked at. A launcher may leave out what does not matter there."""

    rows: Tensor
    """Nodes of every run, int64 [R, T]."""
    K: int


class AllSteps(Protocol):
    """Runs a kernel that takes all steps."""

    def __call__(self, kernel: str, steps: int, *, flag: bool = False, **tensors: Tensor) -> None:
        """Y and α are those of all steps, or of as many as are kept, later ones in place of earlier ones."""
        ...


class Launcher(Protocol):
    """Runs one kernel after another on the same graph and the same runs.

    The kernels are "scale" (Y = s X), "forward" (a step), "prepare" (what a step backward needs of nodes),
    "backward" and "detached" (a step backward, through ψ or past it), and "weight" (∂l/∂w of the step). For
    ``all_steps`` there are "all_forward", which is "scale" and all steps forward, and "all_backward" and
    "all_detached", which are "prepare" and a step backward for all steps.
    """

    YZ_parts: int
    """How many arrays of the size of x ``YZ`` has room for: 2 for [Y | Z], 1 for Z alone."""

    @property
    def all_steps(self) -> AllSteps | None:
        """None unless one task takes a whole run, and can go from step to step without waiting for others."""
        ...

    def __call__(self, kernel: str, *, flag: bool = False, **tensors: Tensor) -> None:
        """Run ``kernel``; ``flag`` says that a step is the last, or what a gradient is wanted of."""
        ...


class Kernels(NamedTuple):
    """What a backend brings."""

    launcher: Callable[..., Launcher]
    """A launcher of (x, indptr, indices, weight, degree, parameter, mu, omega, eps, rule, wanted), with the
    keyword ``only_x``: whether only the gradient of x is wanted, so that the rest need not be made."""
    padded: Callable[[int], int]
    """Channels of a row as the kernels store it."""


class ForwardPass:
    """K steps of Eq. 11-13 with memory of their own, for one call or many.

    Parameters
    ----------
    kernels : Kernels
    like : Tensor, shape [R, N, C]
        Of the shape and type of what the steps start from.
    indptr, indices, weight, degree : Tensor
        The graph; degree [N] is float64.
    parameter, mu : Tensor, shape [R], float64
        The penalty's parameter, and μ.
    K, omega, eps :
        eps = 0 means the cut rule.
    every : int
        Y before every ``every``-th step is kept; if it is 0, only the result can be used afterwards.
    rule : Rule
    rows : Tensor, shape [R, T], optional
        Where the result will be looked at; other rows have no meaning. Needs ``every`` to be 0 or 1.
    lender : ForwardPass, optional
        A pass of the same shape, all of whose states are kept and no longer needed: with ``every`` = 0 the
        states and the result are written over its.
    """

    def __init__(
        self, kernels: Kernels, like: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
        parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, rule: Rule = POWERS,
        rows: Tensor | None = None, *, lender: ForwardPass | None = None,
    ) -> None:  # fmt: skip
        wanted = None if rows is None else Wanted(rows, K)
        self._call = kernels.launcher(
            like, indptr, indices, weight, degree, parameter, mu, omega, eps, rule, wanted
        )
        self._K, self._every = K, every
        self._saved: Saved
        self._spare_norms: Tensor
        if lender is not None:
            assert every == KEEP_NONE, "what is borrowed does not last until a backward pass"
            assert lender._every == KEEP_ALL, "the lender does not have enough memory"
            lent = lender._saved
            self._saved = Saved(lent.history[:0], lent.norms, lent.alphas[:1], lent.result)
            self._spare, self._spare_norms = lent.history[:2], lender._spare_norms
            return
        runs, nodes, channels = like.shape
        shape = (runs, nodes, kernels.padded(channels))
        number = kept(K, every) if every != KEEP_NONE else 0
        self._saved = Saved(
            history=like.new_empty(number, *shape),
            norms=like.new_empty(number if every > KEEP_ALL else 0, runs, nodes),
            alphas=like.new_empty(K if every != KEEP_NONE else 1, runs, nodes),
            result=like.new_empty(shape),
        )
        self._spare = like.new_empty(min(2, K if every == KEEP_NONE else every - 1), *shape)
        self._spare_norms = like.new_empty(2, runs, nodes)

    def __call__(self, X: Tensor) -> Saved:
        """The steps from X [R, N, padded C]; the next call writes its result over that of this one."""
        saved = self._saved
        if self._call.all_steps is not None and self._every <= KEEP_ALL:
            states = saved.history if self._every == KEEP_ALL else self._spare
            self._call.all_steps(
                "all_forward", self._K, X=X, Y=states, norms=self._spare_norms, out=saved.result,
                alphas=saved.alphas,
            )  # fmt: skip
            return saved
        Y, size = self._state(0)
        self._call("scale", X=X, Y=Y, norms=size)
        for k in range(self._K):
            last = k == self._K - 1
            following, size_next = (
                (saved.result, self._spare_norms[(k + 1) % 2]) if last else self._state(k + 1)
            )
            self._call(
                "forward", X=X, Y=Y, norms=size, out=following, norms_next=size_next,
                alphas=saved.alphas[k % saved.alphas.shape[0]], flag=last,
            )  # fmt: skip
            Y, size = following, size_next
        return saved

    def _state(self, k: int) -> tuple[Tensor, Tensor]:
        """Y and |Y_i|² before step k."""
        every, saved = self._every, self._saved
        is_kept = every != KEEP_NONE and k % every == 0
        return (
            saved.history[k // every] if is_kept else self._spare[k % self._spare.shape[0]],
            saved.norms[k // every] if is_kept and every > KEEP_ALL else self._spare_norms[k % 2],
        )


class BackwardPass:
    """The vector-Jacobian product of a :class:`ForwardPass` with memory of its own, for one call or many.

    Its arguments are those of the forward pass, and what is wanted besides the gradient of x. What is not
    wanted has no meaning in the result. Where ``rows`` are given, there is no gradient of the weights.
    """

    def __init__(
        self, kernels: Kernels, like: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
        parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, rule: Rule = POWERS,
        rows: Tensor | None = None, *, want_weight: bool = False, want_parameter: bool = False,
        want_mu: bool = False,
    ) -> None:  # fmt: skip
        wanted = None if rows is None else Wanted(rows, K)
        only_x = not (want_weight or want_parameter or want_mu)
        self._call = kernels.launcher(
            like, indptr, indices, weight, degree, parameter, mu, omega, eps, rule, wanted, only_x=only_x
        )
        self._parameter, self._mu, self._K, self._every, self._rule = parameter, mu, K, every, rule
        self._want_parameter, self._want_slopes = want_parameter, want_parameter or want_mu
        runs, nodes, channels = like.shape
        self._channels = channels
        self._gX = like.new_empty(runs, nodes, kernels.padded(channels))
        YZ = like.new_empty(self._call.YZ_parts * self._gX.numel())
        u, t, pull, norms, self._yf = like.new_empty(5, runs, nodes).unbind()
        self._of_nodes = {"YZ": YZ, "u": u, "t": t, "pull": pull, "norms": norms}
        self._sums = torch.zeros(2, runs, nodes, dtype=torch.float64, device=like.device)  # μ, parameter
        self._gw = torch.empty_like(weight) if want_weight else None

    def __call__(self, G: Tensor, saved: Saved, x: Tensor) -> Gradients:
        """The gradients for the cotangent G [R, N, padded C], which is overwritten.

        It is 0 except at ``rows``. What the forward pass started from, x, is looked at if not all states
        were kept. The next call writes its gradients over those of this one.
        """
        gX = self.of_start(G, saved, x)
        of_parameter, of_mu = torch.empty_like(self._parameter), torch.empty_like(self._mu)
        if self._want_slopes:
            of_parameter, of_mu = _slopes(self._sums[1], self._sums[0], self._parameter, self._mu, self._rule)
        return Gradients(gX[:, :, : self._channels], self._gw, of_parameter, of_mu)

    def of_start(self, G: Tensor, saved: Saved, x: Tensor | None = None) -> Tensor:
        """The gradient of what the steps started from alone, [R, N, padded C]."""
        gX, gw, yf = self._gX.zero_(), self._gw, self._yf
        if self._want_slopes:
            self._sums.zero_()
        if gw is not None:
            gw.zero_()
        gm, gp = self._sums.unbind()
        if self._call.all_steps is not None and self._every == KEEP_ALL and gw is None:
            self._call.all_steps(
                "all_detached" if self._rule.detach else "all_backward", self._K, Y=saved.history,
                F_next=saved.result, alphas=saved.alphas, G=G, gX=gX, yf=yf, gm=gm, gp=gp,
                flag=self._want_parameter, **self._of_nodes,
            )  # fmt: skip
        else:
            self._step_by_step(G, saved, x, gm, gp)
        return gX.add_(G)

    def _step_by_step(self, G: Tensor, saved: Saved, x: Tensor | None, gm: Tensor, gp: Tensor) -> None:
        call, yf, K = self._call, self._yf, self._K
        F_next = saved.result
        for k, Y in _states_backwards(call, saved, x, K, self._every):
            of_step = {"Y": Y, "alphas": saved.alphas[k], **self._of_nodes}
            call(
                "prepare", F_next=F_next, Y_first=saved.history[0], G=G, gX=self._gX, gm=gm, flag=k == K - 1,
                **of_step,
            )  # fmt: skip
            if self._rule.detach:
                call("detached", G=G, yf=yf, flag=False, **of_step)
            else:
                call("backward", G=G, yf=yf, gp=gp, flag=self._want_parameter, **of_step)
            if self._gw is not None:
                call("weight", yf=yf, gw=self._gw, flag=self._rule.detach, **of_step)
            F_next = Y


def forward(kernels: Kernels, x: Tensor, *arguments: Any) -> Saved:
    """A :class:`ForwardPass` from x [R, N, C], taken once; the other arguments are those of the class."""
    return ForwardPass(kernels, x, *arguments)(pad(x, kernels.padded(x.shape[2])))


def backward(
    kernels: Kernels, grad: Tensor, saved: Saved, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor,
    degree: Tensor, parameter: Tensor, mu: Tensor, omega: float, eps: float, every: int,
    rule: Rule = POWERS, rows: Tensor | None = None, *, want_weight: bool, want_parameter: bool,
    want_mu: bool = True,
) -> Gradients:  # fmt: skip
    """A :class:`BackwardPass` for ``grad`` [R, N, C], taken once."""
    taken = BackwardPass(
        kernels, grad, indptr, indices, weight, degree, parameter, mu, saved.alphas.shape[0], omega, eps,
        every, rule, rows, want_weight=want_weight, want_parameter=want_parameter, want_mu=want_mu,
    )  # fmt: skip
    return taken(pad(grad, saved.result.shape[2], copy=True), saved, x)


def _states_backwards(
    call: Launcher, saved: Saved, x: Tensor | None, K: int, every: int
) -> Iterator[tuple[int, Tensor]]:
    """k and Y before step k, from the last step to the first; what was not kept is computed again."""
    if every == KEEP_ALL:
        yield from ((k, saved.history[k]) for k in range(K - 1, -1, -1))
        return
    assert x is not None
    X = pad(x, saved.result.shape[2])
    alphas = torch.empty_like(saved.alphas[0])

    def step(state: tuple[Tensor, Tensor], k: int) -> tuple[Tensor, Tensor]:
        following, size_next = torch.empty_like(X), torch.empty_like(alphas)
        call("forward", X=X, Y=state[0], norms=state[1], out=following, norms_next=size_next, alphas=alphas)
        return following, size_next

    states = list(zip(saved.history, saved.norms, strict=True))
    yield from ((k, Y) for k, (Y, _) in backwards(states, K, every, step))


def _slopes(gp: Tensor, gm: Tensor, parameter: Tensor, mu: Tensor, rule: Rule) -> tuple[Tensor, Tensor]:
    """∂l/∂parameter and ∂l/∂μ of every run from the sums over nodes."""
    of_parameter, of_m = gp.sum(1), gm.sum(1)
    if rule.penalty != POWER:
        return of_parameter, 2 / rule.c * of_m
    return of_parameter - 2 * mu / parameter.square() * of_m, 2 / parameter * of_m  # m = 2μ/p


def pad(x: Tensor, channels: int, *, copy: bool = False) -> Tensor:
    """Return x with zero channels up to ``channels``, contiguous."""
    if x.shape[2] == channels:
        return x.contiguous().clone() if copy else x.contiguous()
    return torch.nn.functional.pad(x, (0, channels - x.shape[2]))

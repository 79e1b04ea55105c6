"""K steps forward and backward by kernels that own rows; the same for the CPU and for GPUs.

For the backward pass α of every step (K × nodes) and Y of all or some steps (K × nodes × channels) are kept.
Conductances are recomputed there, so nothing of size edges × channels ever exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

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
    """A launcher of (x, indptr, indices, weight, degree, parameter, mu, omega, eps, rule, wanted)."""
    padded: Callable[[int], int]
    """Channels of a row as the kernels store it."""


def forward(
    kernels: Kernels, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor, degree: Tensor,
    parameter: Tensor, mu: Tensor, K: int, omega: float, eps: float, every: int, rule: Rule = POWERS,
    rows: Tensor | None = None,
) -> Saved:  # fmt: skip
    """K steps of Eq. 11-13 on x [R, N, C]; mu and the penalty's parameter are [R], degree [N], all float64.

    eps = 0 means the cut rule. Y before every ``every``-th step is kept; if ``every`` is 0, only ``result``
    can be used afterwards. Where ``rows`` [R, T] are given, which needs ``every`` to be 0 or 1, the other
    rows of the result have no meaning.
    """
    wanted = None if rows is None else Wanted(rows, K)
    call = kernels.launcher(x, indptr, indices, weight, degree, parameter, mu, omega, eps, rule, wanted)
    runs, nodes, channels = x.shape
    X = pad(x, kernels.padded(channels))
    number = kept(K, every) if every != KEEP_NONE else 0
    history = X.new_empty(number, *X.shape)
    norms = X.new_empty(number if every > KEEP_ALL else 0, runs, nodes)
    spare = X.new_empty(min(2, K if every == KEEP_NONE else every - 1), *X.shape)
    spare_norms = X.new_empty(2, runs, nodes)
    alphas = X.new_empty(K if every != KEEP_NONE else 1, runs, nodes)
    result = torch.empty_like(X)
    if call.all_steps is not None and every <= KEEP_ALL:
        states = history if every == KEEP_ALL else spare
        call.all_steps("all_forward", K, X=X, Y=states, norms=spare_norms, out=result, alphas=alphas)
        return Saved(history, norms, alphas, result)

    def state(k: int) -> tuple[Tensor, Tensor]:
        """Y and |Y_i|² before step k."""
        is_kept = every != KEEP_NONE and k % every == 0
        return (
            history[k // every] if is_kept else spare[k % spare.shape[0]],
            norms[k // every] if is_kept and every > KEEP_ALL else spare_norms[k % 2],
        )

    Y, size = state(0)
    call("scale", X=X, Y=Y, norms=size)
    for k in range(K):
        last = k == K - 1
        following, size_next = (result, spare_norms[(k + 1) % 2]) if last else state(k + 1)
        call(
            "forward", X=X, Y=Y, norms=size, out=following, norms_next=size_next,
            alphas=alphas[k % alphas.shape[0]], flag=last,
        )  # fmt: skip
        Y, size = following, size_next
    return Saved(history, norms, alphas, result)


def backward(
    kernels: Kernels, grad: Tensor, saved: Saved, x: Tensor, indptr: Tensor, indices: Tensor, weight: Tensor,
    degree: Tensor, parameter: Tensor, mu: Tensor, omega: float, eps: float, every: int,
    rule: Rule = POWERS, rows: Tensor | None = None, *, want_weight: bool, want_parameter: bool,
    want_mu: bool = True,
) -> Gradients:  # fmt: skip
    """The vector-Jacobian product of :func:`forward` for ``grad`` [R, N, C]; x is used if ``every`` > 1.

    What is not wanted has no meaning in the result. ``grad`` is 0 except at ``rows``, which must be those of
    the forward pass; where they are given, there is no gradient of the weights.
    """
    runs, nodes, channels = grad.shape
    K = saved.alphas.shape[0]
    wanted = None if rows is None else Wanted(rows, K)
    call = kernels.launcher(grad, indptr, indices, weight, degree, parameter, mu, omega, eps, rule, wanted)
    G = pad(grad, saved.result.shape[2], copy=True)
    gX = torch.zeros_like(G)
    YZ = G.new_empty(call.YZ_parts * G.numel())
    u, t, pull, norms, yf = G.new_empty(5, runs, nodes).unbind()
    gm, gp = torch.zeros(2, runs, nodes, dtype=torch.float64, device=G.device).unbind()
    gw = torch.zeros_like(weight) if want_weight else None
    of_nodes = {"YZ": YZ, "u": u, "t": t, "pull": pull, "norms": norms}
    if call.all_steps is not None and every == KEEP_ALL and gw is None:
        call.all_steps(
            "all_detached" if rule.detach else "all_backward", K, Y=saved.history, F_next=saved.result,
            alphas=saved.alphas, G=G, gX=gX, yf=yf, gm=gm, gp=gp, flag=want_parameter, **of_nodes,
        )  # fmt: skip
    else:
        F_next = saved.result
        for k, Y in _states_backwards(call, saved, x, K, every):
            of_step = {"Y": Y, "alphas": saved.alphas[k], **of_nodes}
            call(
                "prepare", F_next=F_next, Y_first=saved.history[0], G=G, gX=gX, gm=gm, flag=k == K - 1,
                **of_step,
            )  # fmt: skip
            if rule.detach:
                call("detached", G=G, yf=yf, flag=False, **of_step)
            else:
                call("backward", G=G, yf=yf, gp=gp, flag=want_parameter, **of_step)
            if gw is not None:
                call("weight", yf=yf, gw=gw, flag=rule.detach, **of_step)
            F_next = Y
    gX += G
    if want_parameter or want_mu:
        of_parameter, of_mu = _slopes(gp, gm, parameter, mu, rule)
    else:
        of_parameter, of_mu = torch.empty_like(parameter), torch.empty_like(mu)
    return Gradients(gX[:, :, :channels], gw, of_parameter, of_mu)


def _states_backwards(
    call: Launcher, saved: Saved, x: Tensor, K: int, every: int
) -> Iterator[tuple[int, Tensor]]:
    """k and Y before step k, from the last step to the first; what was not kept is computed again."""
    if every == KEEP_ALL:
        yield from ((k, saved.history[k]) for k in range(K - 1, -1, -1))
        return
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

"""Penalties of one's own: what works, and what is refused in a sentence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import plap
import problems
from penalty_samples import ON_CPU, OTHERS, numbers, values_and_slopes
from plap.kernels import registry
from plap.kernels.dense import DENSE
from plap.penalties import (
    BUILT_IN,
    MCP,
    SCAD,
    Cauchy,
    Geman,
    Huber,
    Penalty,
    Power,
    Welsch,
)
from plap.penalty_checks import check_weights
from problems import GENERIC


class Tukey(Penalty):
    """Tukey's biweight, as a user writes it."""

    gamma: float | Tensor

    def rho(self, y: Tensor) -> Tensor:
        return self.gamma**2 / 6 * (1 - torch.clamp(1 - (y / self.gamma) ** 2, min=0) ** 3)

    def psi(self, nu: Tensor) -> Tensor:
        return torch.clamp(1 - nu / self.gamma**2, min=0) ** 2

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        return -2 * nu / self.gamma**2 * torch.clamp(1 - nu / self.gamma**2, min=0)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        return 4 * nu / self.gamma**3 * torch.clamp(1 - nu / self.gamma**2, min=0)


class Lazy(Tukey):
    """Leaves the derivatives to autograd."""

    dpsi_dlog_nu = Penalty.dpsi_dlog_nu
    dpsi_dparameter = Penalty.dpsi_dparameter


class Strange(Tukey):
    """Uses what has no translation."""

    rho = Penalty.rho

    def psi(self, nu: Tensor) -> Tensor:
        result: Tensor = torch.special.erfc(nu / self.gamma)
        return result

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        return -self.gamma * self.dpsi_dparameter(nu)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        slope: Tensor = nu / self.gamma**2 * 2 / math.pi**0.5 * torch.exp(-((nu / self.gamma) ** 2))
        return slope


class Branching(Tukey):
    rho = Penalty.rho

    def psi(self, nu: Tensor) -> Tensor:
        return torch.ones_like(nu) if nu.sum() > 0 else nu

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        return torch.zeros_like(nu)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        return torch.zeros_like(nu)


@pytest.mark.parametrize("penalty", [Tukey(1.5), Lazy(1.5)], ids=repr)
def test_a_penalty_of_ones_own(penalty: Penalty) -> None:
    problem = GENERIC["random"]()
    expected = values_and_slopes(DENSE, problem, penalty)
    for backend in ON_CPU:
        if backend.refuses(penalty) is None:
            for got, wanted in zip(values_and_slopes(backend, problem, penalty), expected, strict=True):
                torch.testing.assert_close(got, wanted, rtol=1e-11, atol=1e-11)


def test_what_cannot_be_compiled_goes_to_the_torch_backend() -> None:
    problem = GENERIC["random"]()
    for penalty, why in (
        (Lazy(1.5), "it does not define dpsi_dlog_nu"),
        (Strange(1.5), "psi uses special_erfc"),
        (Branching(1.5), "psi branches on its argument"),
    ):
        sentence = re.escape(f"backend 'fused' cannot compile penalty {type(penalty).__name__}: {why}")
        with pytest.raises(plap.InputError, match=sentence):
            plap.propagate(problem.x, problem.graph, mu=0.1, penalty=penalty, backend="fused")
        plap.propagate(problem.x, problem.graph, mu=0.1, penalty=penalty)
    assert all(registry.named("fused").refuses(penalty) is None for penalty in (*OTHERS, Tukey(1.0)))


class Negative(Tukey):
    def psi(self, nu: Tensor) -> Tensor:
        return 1 - nu


class Infinite(Tukey):
    def psi(self, nu: Tensor) -> Tensor:
        return 1 / nu


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: {"penalty": MCP(0.0)}, "gamma must be a positive finite number, not 0"),
        (lambda: {"penalty": Huber(-1.0)}, "gamma must be a positive finite number, not -1"),
        (lambda: {"penalty": Cauchy(math.nan)}, "gamma must be a positive finite number, not nan"),
        (lambda: {"penalty": Welsch("2")}, "gamma must be a positive number, a Quantile or 'auto', not '2'"),
        (lambda: {"penalty": Geman(True)}, "gamma must be a positive finite number"),
        (lambda: {"penalty": MCP(torch.tensor(-1.0))}, "gamma must be a positive finite number, not -1"),
        (lambda: {"penalty": MCP(torch.ones(2))}, r"gamma must be a number or have shape \[1\]"),
        (lambda: {"penalty": Power(0.9)}, "p must be a finite number of at least 1, not 0.9"),
        (lambda: {"penalty": SCAD(1.0, a=1.0)}, "a must be a finite number above 1"),
        (lambda: {"penalty": SCAD(1.0, a=None)}, "a must be a finite number above 1, not None"),  # type: ignore[arg-type]
        (lambda: {"penalty": SCAD(1.0, a="3")}, "a must be a finite number above 1, not '3'"),  # type: ignore[arg-type]
        (lambda: {"penalty": "mcp"}, "penalty must be a plap.penalties.Penalty"),
        (lambda: {"penalty": MCP(1.0), "p": 1.5}, "p and penalty cannot both be given"),
        (lambda: {}, "p or penalty must be given"),
        (lambda: {"penalty": MCP(1.0), "mu": None}, "mu must be a positive finite number, not None"),
        (lambda: {"penalty": Negative(1.0)}, r"penalty Negative .* not negative, but psi\(.*\) = -"),
        (lambda: {"penalty": Infinite(1.0)}, r"penalty Infinite .* finite .*, but psi\(0\) = inf"),
        (lambda: {"penalty": MCP(1.0), "variant": "published"}, "variant 'published' is defined for powers"),
    ],
)
def test_refuses_by_name(make: Callable[[], dict[str, Any]], sentence: str) -> None:
    problem = problems.fixture()
    with pytest.raises(plap.InputError, match=sentence):
        plap.propagate(problem.x, problem.graph, **({"mu": 0.1} | make()))


class Truncated(Penalty):
    """ρ = min(y, γ)²/2: ψ is constant in pieces."""

    gamma: float | Tensor

    def rho(self, y: Tensor) -> Tensor:
        return torch.where(y < self.gamma, y, self.gamma) ** 2 / 2

    def psi(self, nu: Tensor) -> Tensor:
        return torch.where(nu < self.gamma**2, 1.0, 0.0).to(nu.dtype)


class Boolean(Truncated):
    def psi(self, nu: Tensor) -> Tensor:
        return nu < self.gamma**2


class Plain(Penalty):
    """p = 2, with a tensor that depends on nothing."""

    def psi(self, nu: Tensor) -> Tensor:
        return torch.ones_like(nu)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("penalty", [Truncated(1.0), Boolean(1.0), Plain(1.0)], ids=repr)
def test_psi_that_is_constant_in_pieces_has_slope_0(penalty: Penalty, dtype: torch.dtype) -> None:
    problem = GENERIC["random"]()
    assert penalty.dpsi_dlog_nu(torch.ones(3)).equal(torch.zeros(3))
    assert penalty.dpsi_dparameter(torch.ones(3)).equal(torch.zeros(3))
    expected = plap.propagate(problem.x, problem.graph, penalty=penalty, mu=0.1, backend="dense").to(dtype)
    x = problem.x.to(dtype)
    with torch.no_grad():
        torch.testing.assert_close(plap.propagate(x, problem.graph, penalty=penalty, mu=0.1), expected)
    slopes = []
    for options in ({}, {"detach_weights": True}, {"backend": "dense"}):
        leaf, gamma = x.clone().requires_grad_(), torch.tensor(1.0, dtype=dtype, requires_grad=True)
        result = plap.propagate(leaf, problem.graph, penalty=penalty.at(gamma), mu=0.1, **options)
        torch.testing.assert_close(result, expected)
        slopes.append(torch.autograd.grad(result.square().sum(), leaf)[0])
    for slope in slopes[1:]:
        torch.testing.assert_close(slope, slopes[0], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("penalty", [Truncated(2.0), Boolean(2.0)], ids=repr)
def test_solve_has_gradients_where_psi_is_constant_in_pieces(penalty: Penalty) -> None:
    problem = problems.fixture()
    x = problem.x.clone().requires_grad_()
    y, info = plap.solve(x, problem.graph, penalty=penalty, mu=0.5)
    y.sum().backward()
    assert info.converged
    assert x.grad is not None
    assert x.grad.isfinite().all()


def test_the_forward_pass_needs_no_slopes(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> Tensor:
        raise AssertionError

    monkeypatch.setattr(Penalty, "_slope", refuse)
    problem = problems.fixture()
    plap.propagate(problem.x, problem.graph, penalty=Lazy(1.5), mu=0.1)
    plap.aggregation_weights(problem.x, problem.graph, penalty=Lazy(1.5), mu=0.1)
    x = problem.x.clone().requires_grad_()
    plap.propagate(x, problem.graph, penalty=Lazy(1.5), mu=0.1, detach_weights=True).sum().backward()


class Softmax(Plain):
    def psi(self, nu: Tensor) -> Tensor:
        return torch.softmax(-nu, -1)


class Shares(Plain):
    def psi(self, nu: Tensor) -> Tensor:
        return 1 / (1 + nu / nu.sum())


class Summed(Plain):
    def psi(self, nu: Tensor) -> Tensor:
        return nu.sum()


class Number(Plain):
    def psi(self, nu: Tensor) -> Tensor:
        return 1.0  # type: ignore[return-value]


class Short(Plain):
    def psi(self, nu: Tensor) -> Tensor:
        return torch.ones(3)


class SlopeForPsi(Cauchy):
    """The classic slip: ρ' in the place of ψ."""

    def psi(self, nu: Tensor) -> Tensor:
        return nu.sqrt() / (1 + nu / self.gamma**2)


class Doubled(Cauchy):
    def rho(self, y: Tensor) -> Tensor:
        return 2 * super().rho(y)


class NumberForRho(Plain):
    def rho(self, y: Tensor) -> Tensor:
        return 1.0  # type: ignore[return-value]


class Negated(Plain):
    c = -1.0


class Worded(Plain):
    c = "1"  # type: ignore[assignment]


class Unnamed(Plain):
    def __init__(self, gamma: float, b: float) -> None:
        super().__init__(gamma)
        self.b = b


class Unmade(Plain):
    def __init__(self, gamma: float) -> None:
        self.width = gamma


class Fixed(Plain):
    def __init__(self) -> None:
        super().__init__(1.0)


class Forgotten(Plain):
    constant_names = ("b",)

    def __init__(self, gamma: float, b: float) -> None:
        super().__init__(gamma)


class Growing(Plain):
    def __init__(self, gamma: float) -> None:
        super().__init__(2 * gamma)


@pytest.mark.parametrize(
    ("penalty", "sentence"),
    [
        (Softmax(1.0), r"psi of penalty Softmax must treat every entry of nu alone"),
        (Shares(1.0), r"psi of penalty Shares must treat every entry of nu alone"),
        (Summed(1.0), r"psi of penalty Summed must return a tensor of the shape of nu, .* not \[\]"),
        (Number(1.0), "psi of penalty Number must return a tensor of the shape of nu, not float"),
        (Short(1.0), r"psi of penalty Short must return a tensor of the shape of nu, .* not \[3\]"),
        (
            SlopeForPsi(1.0),
            r"rho and psi of penalty SlopeForPsi must satisfy rho'\(y\) = c y psi\(y\^2\), but",
        ),
        (Doubled(3.0), "rho and psi of penalty Doubled must satisfy"),
        (NumberForRho(1.0), "rho of penalty NumberForRho must return a tensor of the shape of y, not float"),
        (Negated(1.0), "c of penalty Negated must be a positive finite number, not -1"),
        (Worded(1.0), "c of penalty Worded must be a positive finite number, not '1'"),
        (Unnamed(1.0, 2.0), r"penalty Unnamed cannot be made as Unnamed\(gamma\): .* in constant_names"),
        (Unmade(1.0), r"penalty Unmade has no gamma: its __init__ must call super\(\).__init__"),
        (Fixed(), r"penalty Fixed cannot be made as Fixed\(gamma\): its __init__ must take gamma first"),
        (Forgotten(1.0, 2.0), "penalty Forgotten has no b, which is one of its constant_names"),
        (Growing(1.0), r"penalty Growing must pass gamma to super\(\).__init__ as it is"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Penalty) else "",
)
def test_refuses_a_penalty_of_ones_own_that_is_none(penalty: Penalty, sentence: str) -> None:
    problem = problems.fixture()
    for call in (plap.propagate, plap.solve):
        with pytest.raises(plap.InputError, match=sentence):
            call(problem.x, problem.graph, penalty=penalty, mu=0.1)


@pytest.mark.parametrize("gamma", [1e-6, 0.3, 1.0, 7.0, 1e6])
@pytest.mark.parametrize("kind", [*BUILT_IN, Tukey, Lazy, Truncated, Boolean], ids=lambda kind: kind.__name__)
def test_what_is_a_penalty_passes_the_check(
    kind: type[Penalty], gamma: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plap.penalty_checks._SOUND", {})
    if kind is Power:
        check_weights(Power(min(max(gamma, 1.0), 4.0)), torch.zeros(1))
    else:
        check_weights(kind(gamma), torch.zeros(1))
        check_weights(kind(numbers(gamma, 1.5)), torch.zeros(1))


@pytest.mark.parametrize(
    ("x", "graph", "sentence"),
    [
        (torch.ones(5, 2), problems.path(4), r"x must have shape .* N = 4, one row per node, not \[5, 2\]"),
        (torch.ones(4, 2).numpy(), problems.path(4), "x must be a dense tensor of .* not ndarray"),
        (torch.ones(4, 2), problems.path(4).edge_index, "graph must be a plap.Graph, not Tensor"),
    ],
)
def test_a_quantile_is_measured_at_features_of_the_graph(x: Any, graph: Any, sentence: str) -> None:
    with pytest.raises(plap.InputError, match=sentence):
        MCP("auto").measured(x, graph)


class TwoNumbers(Tukey):
    """Keeps a second number that nobody knows of."""

    def __init__(self, gamma: float | Tensor, b: float = 2.0) -> None:
        super().__init__(gamma)
        self.b = b


class Steep(Tukey):
    """Has a wrong derivative in ν."""

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        return nu * 0 + 7


class Shifted(Tukey):
    """Has a wrong derivative in γ."""

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        return 2 * super().dpsi_dparameter(nu)


class Bent(Power):
    """Would be treated as the power that it is not."""

    def psi(self, nu: Tensor) -> Tensor:
        return torch.exp(-nu)


class OwnMCP(Penalty):
    """MCP, but of the degree that a penalty has by default."""

    unbounded = True
    gamma: float | Tensor

    def psi(self, nu: Tensor) -> Tensor:
        return torch.clamp(torch.rsqrt(nu) - 1 / self.gamma, min=0)


@pytest.mark.parametrize(
    ("penalty", "unit", "sentence"),
    [
        (
            TwoNumbers(3.0, b=5.0),
            1.0,
            "penalty TwoNumbers has b = 5.0, which is lost where its gamma",
        ),
        (Steep(1.0), 1.0, "dpsi_dlog_nu of penalty Steep must be a derivative of psi, but at nu = "),
        (Shifted(1.0), 1.0, "dpsi_dparameter of penalty Shifted must be a derivative of psi"),
        (Bent(1.5), 1.0, "penalty Bent defines psi, but a Power always counts as y^p"),
        (
            OwnMCP(1.0),
            "auto",
            "unit needs psi(4 nu; 2 gamma) = 2^(degree - 2) psi(nu; gamma), but ",
        ),
    ],
)
def test_refuses_what_would_be_silently_wrong(penalty: Penalty, unit: Any, sentence: str) -> None:
    graph = plap.Graph.from_edges([(0, 1), (1, 2)])
    x = torch.randn(3, 2, dtype=torch.float64)
    with pytest.raises(plap.errors.InputError, match=re.escape(sentence)):
        plap.propagate(x, graph, penalty=penalty, mu=0.1, unit=unit)


def test_a_degree_that_is_right_makes_a_unit_of_the_data_work() -> None:
    class RightMCP(OwnMCP):
        degree = 1.0

    graph = plap.Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    x = torch.randn(3, 2, dtype=torch.float64)
    here = plap.propagate(x, graph, penalty=RightMCP(1.2), mu=0.1, unit="auto")
    there = plap.propagate(1000 * x, graph, penalty=RightMCP(1.2), mu=0.1, unit="auto")
    torch.testing.assert_close(there, 1000 * here)
    torch.testing.assert_close(here, plap.propagate(x, graph, penalty=MCP(1.2), mu=0.1, unit="auto"))
    plap.propagate(x, graph, penalty=OwnMCP(1.2), mu=0.1)  # its degree does not matter here

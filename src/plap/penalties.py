r"""Penalties ρ of the edge norm y = ‖∇F‖: what message passing minimises, and so how it weighs an edge.

With :math:`\nu = y^2 = W_{ij} \|F_i/\sqrt{D_i} - F_j/\sqrt{D_j}\|^2` the objective of Eq. 8 becomes

.. math:: \mathcal{L}(F) = \tfrac12 \sum_{ij} \rho(y_{ij}) + \mu \|F - X\|^2, \qquad
          \rho'(y) = c \, y \, \psi(y^2),

and the step of Eq. 11-13 reads the same with :math:`M_{ij} = W_{ij} \psi(\nu_{ij})` and 2μ/c for 2μ/p. If
:math:`t \mapsto \rho(\sqrt t)` is concave, which holds for every penalty here except powers above 2, a step
from F to F' lowers the objective by at least :math:`\mu \|F' - F\|^2`. For penalties that are
:attr:`Penalty.unbounded` this holds as long as no edge has the length 0, or with ``eps``: without it, the two
ends of such an edge no longer interact, and the objective may rise when they part again.

A penalty of your own is a subclass of :class:`Penalty`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from plap.checks import check_number, is_number
from plap.edge_lengths import Quantile
from plap.errors import InputError
from plap.graph import Graph, check_graph

Parameter = float | Tensor
Length = Parameter | Quantile | str
"""What γ may be given as: a number, a tensor, a :class:`Quantile` of the edge norms, or "auto"."""

AUTO = Quantile(0.75)
"""What "auto" stands for."""


class Penalty(ABC):
    """A penalty with one parameter, which is a number or can be learned.

    A subclass defines :meth:`psi`, and :meth:`rho` if it is to be used with ``plap.energy``, ``objective``
    and ``solve``. All are plain PyTorch, elementwise, and use the parameter as ``self.gamma``. The two
    derivatives of ψ are found by autograd unless they are defined as well. The fused backend needs them: it
    compiles all three.

    Parameters
    ----------
    gamma : float, Tensor, Quantile or "auto"
        Positive: a number, a tensor of no dimension, or for R runs a tensor of shape [R]. A
        :class:`Quantile` of the edge norms at X is measured where the penalty is used, so that the scale of
        the features does not matter; "auto" is ``Quantile(0.75)``.
    """

    parameter_name: ClassVar[str] = "gamma"
    constant_names: ClassVar[tuple[str, ...]] = ()
    """Further arguments of the constructor, kept under their own names: numbers that are never learned."""
    is_length: ClassVar[bool] = True
    """Whether the parameter is a length, which may be measured on the data."""
    least: ClassVar[float | None] = None
    """The smallest value of the parameter; None if it has to be positive."""
    convex: ClassVar[bool] = False
    """Whether ρ is convex, so that the objective has one minimiser."""
    unbounded: ClassVar[bool] = False
    """Whether ψ(ν) grows beyond all bounds as ν → 0. Two rows that are equal up to rounding then do not
    interact, or count as ``eps`` apart where eps is given."""
    c: Parameter = 1.0
    """The constant in ρ'(y) = c y ψ(y²)."""
    degree: Parameter = 2.0
    """The d in ψ(s² ν; s γ) = s^(d−2) ψ(ν; γ): how the weights change with the unit of the features."""

    quantile: Quantile | None = None
    """What the parameter is measured as, where it is not known yet; see :meth:`measured`."""

    def __init__(self, gamma: Length) -> None:
        if self.is_length and isinstance(gamma, Quantile | str):
            self.quantile = _quantile(self.parameter_name, gamma)
        else:
            setattr(self, self.parameter_name, checked(self.parameter_name, gamma, self.least))

    def __getattr__(self, name: str) -> Any:
        """Say why a parameter that has to be measured first is not there."""
        if name == type(self).parameter_name and self.quantile is not None:
            raise InputError(
                f"{name} is {self.quantile!r} of the edge norms, which is not known here: "
                "penalty.measured(x, graph) has it for features x"
            )
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @property
    def parameter(self) -> Parameter:
        """The parameter, whatever its name is."""
        value: Parameter = getattr(self, self.parameter_name)
        return value

    def measured(self, x: Tensor, graph: Graph) -> Self:
        """The same penalty with its parameter as a number: a quantile is measured at features x.

        Examples
        --------
        >>> g = Graph.from_edges([(0, 1)], num_nodes=3)
        >>> penalty = MCP(Quantile(0.5, times=2)).measured(torch.tensor([[1.0], [3.0], [5.0]]), g)
        >>> round(float(penalty.gamma), 3)
        4.0
        """
        if self.quantile is None:
            return self
        _check_features(x, graph)
        return self.at(self.quantile.measure(x.unsqueeze(1) if x.ndim == 1 else x, graph))

    @property
    def constants(self) -> dict[str, float]:
        """What else the penalty was made with."""
        return {name: getattr(self, name) for name in self.constant_names}

    def at(self, value: Parameter) -> Self:
        """The same penalty with another value of its parameter."""
        return type(self)(value, **self.constants)

    def in_units_of(self, scale: Parameter, mu: Parameter) -> tuple[Self, Parameter]:
        """The penalty and μ that treat features s·X as this one and ``mu`` treat X, for a scale s.

        F(s X; s γ, s^(d−2) μ) = s F(X; γ, μ), where d is :attr:`degree`; a power has no γ, and a quantile
        follows the features by itself.

        Examples
        --------
        >>> MCP(3.0).in_units_of(torch.tensor(2.0), 0.5)
        (MCP(gamma=6.0), tensor(0.2500))
        """
        scaled = self if self.quantile is not None else self.at(scale * self.parameter)
        return scaled, mu * scale ** (self.degree - 2)

    def rho(self, y: Tensor) -> Tensor:
        """ρ(y) of edge norms y ≥ 0."""
        raise InputError(f"penalty {type(self).__name__} defines no rho(y), which its energy needs")

    @abstractmethod
    def psi(self, nu: Tensor) -> Tensor:
        """ψ(ν) of squared edge norms; ν > 0 if ψ is unbounded, otherwise ν ≥ 0."""

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """ν dψ/dν, which unlike dψ/dν stays in the range of numbers where ψ does."""
        slope = self._slope(nu, in_parameter=False)
        return torch.where(nu > 0, nu * slope, 0)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """The derivative of ψ in the parameter, ∂ψ/∂γ."""
        return self._slope(nu, in_parameter=True)

    def _slope(self, nu: Tensor, *, in_parameter: bool) -> Tensor:
        with torch.enable_grad():
            value = torch.as_tensor(self.parameter, dtype=nu.dtype, device=nu.device)
            at = nu.detach().clone().requires_grad_()
            theta = value.detach().expand(nu.shape).clone().requires_grad_()
            total = self.at(theta).psi(at).sum()
            if not total.requires_grad:  # ψ is constant, if only in pieces
                return torch.zeros_like(nu)
            (slope,) = torch.autograd.grad(total, theta if in_parameter else at, materialize_grads=True)
        return slope

    def __repr__(self) -> str:
        value = self.quantile or self.parameter
        shown = f"{value:g}" if isinstance(value, float | int) else _shown(value)
        constants = "".join(f", {name}={constant:g}" for name, constant in self.constants.items())
        return f"{type(self).__name__}({self.parameter_name}={shown}{constants})"


class Power(Penalty):
    r"""The paper's penalty: ρ(y) = y^p.

    .. math:: \psi(\nu) = \nu^{(p-2)/2}, \qquad \nu\,\psi'(\nu) = \tfrac{p-2}{2}\,\psi(\nu), \qquad
              \partial\psi/\partial p = \tfrac12\,\psi(\nu) \log\nu, \qquad c = p

    Parameters
    ----------
    p : float or Tensor, at least 1

    Examples
    --------
    >>> Power(1.5).psi(torch.tensor([16.0]))
    tensor([0.5000])
    """

    parameter_name = "p"
    is_length = False
    least = 1.0
    convex = True
    p: Parameter

    def __init__(self, p: Parameter) -> None:
        super().__init__(p)

    @property
    def c(self) -> Parameter:  # type: ignore[override]
        """The constant in ρ'(y) = c y ψ(y²): p itself."""
        return self.p

    @property
    def degree(self) -> Parameter:  # type: ignore[override]
        """p itself."""
        return self.p

    def in_units_of(self, scale: Parameter, mu: Parameter) -> tuple[Self, Parameter]:
        """The same p; μ s^(p−2)."""
        return self, mu * scale ** (self.p - 2)

    @property
    def unbounded(self) -> bool:  # type: ignore[override]
        """For p < 2; asked of one number only."""
        return bool(self.p < 2)

    def rho(self, y: Tensor) -> Tensor:
        """y^p."""
        return y**self.p

    def psi(self, nu: Tensor) -> Tensor:
        """ν^((p−2)/2)."""
        return nu ** ((self.p - 2) / 2)

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """(p−2)/2 ψ."""
        return (self.p - 2) / 2 * self.psi(nu)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """½ ψ log ν."""
        return self.psi(nu) * torch.log(nu) / 2


class MCP(Penalty):
    r"""Minimax concave penalty (Zhang 2010): ℓ1 nearby, and an edge longer than γ counts for nothing.

    .. math:: \rho(y) = y - \tfrac{y^2}{2\gamma} \text{ for } y < \gamma, \text{ else } \tfrac{\gamma}{2},
              \qquad \psi(\nu) = (1/y - 1/\gamma)_+, \\
              \nu\,\psi'(\nu) = -\tfrac{1}{2y} \text{ and } \partial\psi/\partial\gamma = 1/\gamma^2
              \text{ for } y < \gamma, \text{ else } 0, \qquad c = 1

    Message passing with it is that of RUNG (Hou, Feng, Derr and Liu, NeurIPS 2024).

    Parameters
    ----------
    gamma : float or Tensor, positive; Quantile, or "auto"
        In the unit of the features.

    Examples
    --------
    >>> MCP(2.0).psi(torch.tensor([1.0, 9.0]))
    tensor([0.5000, 0.0000])
    """

    unbounded = True
    degree = 1.0
    gamma: Parameter

    def rho(self, y: Tensor) -> Tensor:
        """y − y²/2γ, at most γ/2."""
        near = torch.where(y < self.gamma, y, self.gamma)
        return near - near**2 / (2 * self.gamma)

    def psi(self, nu: Tensor) -> Tensor:
        """(1/y − 1/γ)₊."""
        return torch.clamp(torch.rsqrt(nu) - 1 / self.gamma, min=0)

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """−1/2y for y < γ, else 0."""
        return torch.where(nu < self.gamma**2, -0.5 * torch.rsqrt(nu), 0.0)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """1/γ² for y < γ, else 0."""
        return torch.where(nu < self.gamma**2, torch.ones_like(nu) / self.gamma**2, 0.0)


class SCAD(Penalty):
    r"""Smoothly clipped absolute deviation (Fan and Li 2001): ℓ1 up to γ, constant beyond aγ.

    .. math:: \rho(y) = y, \quad \tfrac{2a\gamma y - y^2 - \gamma^2}{2(a-1)\gamma}, \quad
              \tfrac{(a+1)\gamma}{2}, \qquad
              \psi(\nu) = \tfrac1y, \quad \tfrac{a\gamma - y}{(a-1)\gamma y}, \quad 0, \\
              \nu\,\psi'(\nu) = -\tfrac{1}{2y}, \quad -\tfrac{a}{2(a-1)y}, \quad 0, \qquad
              \partial\psi/\partial\gamma = 0, \quad \tfrac{1}{(a-1)\gamma^2}, \quad 0, \qquad c = 1

    for y up to γ, up to aγ, and beyond.

    Parameters
    ----------
    gamma : float or Tensor, positive; Quantile, or "auto"
    a : float, above 1

    Examples
    --------
    >>> SCAD(1.0).psi(torch.tensor([0.25, 16.0]))
    tensor([2., 0.])
    """

    constant_names = ("a",)
    unbounded = True
    degree = 1.0
    gamma: Parameter

    def __init__(self, gamma: Length, a: float = 3.7) -> None:
        super().__init__(gamma)
        self.a = a if is_number(a) and 1 < a < math.inf else check_number("a", a, above=1)

    def rho(self, y: Tensor) -> Tensor:
        """y, then a parabola, then (a+1)γ/2."""
        a, gamma = self.a, self.gamma
        middle = torch.where(y < a * gamma, y, a * gamma)
        bent = (2 * a * gamma * middle - middle**2 - gamma**2) / (2 * (a - 1) * gamma)
        return torch.where(y < gamma, y, bent)

    def psi(self, nu: Tensor) -> Tensor:
        """1/y, then (aγ − y)₊ / ((a−1) γ y)."""
        a, gamma = self.a, self.gamma
        inverse = torch.rsqrt(nu)
        bent = torch.clamp((a * inverse - 1 / gamma) / (a - 1), min=0)
        return torch.where(nu < gamma**2, inverse, bent)

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """−1/2y, then −a / (2(a−1) y), then 0."""
        a, gamma = self.a, self.gamma
        near = -0.5 * torch.rsqrt(nu)
        bent = torch.where(nu < (a * gamma) ** 2, near * (a / (a - 1)), 0.0)
        return torch.where(nu < gamma**2, near, bent)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """0, then 1 / ((a−1) γ²), then 0."""
        a, gamma = self.a, self.gamma
        bent = torch.where(nu < (a * gamma) ** 2, torch.ones_like(nu) / ((a - 1) * gamma**2), 0.0)
        return torch.where(nu < gamma**2, 0.0, bent)


class Huber(Penalty):
    r"""Huber's penalty: ℓ2 up to γ, ℓ1 beyond. It is convex.

    .. math:: \rho(y) = y^2/2, \quad \gamma y - \gamma^2/2, \qquad \psi(\nu) = \min(1, \gamma/y), \\
              \nu\,\psi'(\nu) = 0, \quad -\tfrac{\gamma}{2y}, \qquad
              \partial\psi/\partial\gamma = 0, \quad \tfrac1y, \qquad c = 1

    for y up to γ, and beyond.

    Parameters
    ----------
    gamma : float or Tensor, positive; Quantile, or "auto"

    Examples
    --------
    >>> Huber(1.0).psi(torch.tensor([0.25, 16.0]))
    tensor([1.0000, 0.2500])
    """

    convex = True
    gamma: Parameter

    def rho(self, y: Tensor) -> Tensor:
        """y²/2, then γy − γ²/2."""
        near = torch.where(y < self.gamma, y, self.gamma)
        return near * (y - near / 2)

    def psi(self, nu: Tensor) -> Tensor:
        """min(1, γ/y)."""
        far = nu > self.gamma**2
        return torch.where(far, self.gamma * torch.rsqrt(torch.where(far, nu, 1.0)), 1.0)

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """0, then −γ/2y."""
        far = nu > self.gamma**2
        return torch.where(far, -0.5 * self.gamma * torch.rsqrt(torch.where(far, nu, 1.0)), 0.0)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """0, then 1/y."""
        far = nu > self.gamma**2
        return torch.where(far, torch.rsqrt(torch.where(far, nu, 1.0)), 0.0)


class Welsch(Penalty):
    r"""Welsch's penalty: an edge much longer than γ hardly counts, and the change is smooth.

    .. math:: \rho(y) = \tfrac{\gamma^2}{2} (1 - e^{-\nu/\gamma^2}), \qquad \psi(\nu) = e^{-\nu/\gamma^2}, \\
              \nu\,\psi'(\nu) = -\tfrac{\nu}{\gamma^2} \psi, \qquad
              \partial\psi/\partial\gamma = \tfrac{2\nu}{\gamma^3} \psi, \qquad c = 1

    Parameters
    ----------
    gamma : float or Tensor, positive; Quantile, or "auto"

    Examples
    --------
    >>> Welsch(2.0).psi(torch.tensor([0.0, 4.0]))
    tensor([1.0000, 0.3679])
    """

    gamma: Parameter

    def rho(self, y: Tensor) -> Tensor:
        """γ²/2 (1 − exp(−y²/γ²))."""
        return -(self.gamma**2) / 2 * torch.expm1(-((y / self.gamma) ** 2))

    def psi(self, nu: Tensor) -> Tensor:
        """exp(−ν/γ²)."""
        return torch.exp(-torch.clamp(nu / self.gamma**2, max=700.0))

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """−ν/γ² ψ."""
        t = torch.clamp(nu / self.gamma**2, max=700.0)
        return -t * torch.exp(-t)

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """2ν/γ³ ψ."""
        t = torch.clamp(nu / self.gamma**2, max=700.0)
        return 2 * t * torch.exp(-t) / self.gamma


class Geman(Penalty):
    r"""Geman and McClure's penalty: like Welsch's, with a heavier tail. With r = 1/(1 + ν/γ²),

    .. math:: \rho(y) = \tfrac12 \nu r, \qquad \psi(\nu) = r^2, \qquad \nu\,\psi'(\nu) = -2 r^2 (1 - r), \\
              \partial\psi/\partial\gamma = \tfrac4\gamma r^2 (1 - r), \qquad c = 1

    Parameters
    ----------
    gamma : float or Tensor, positive; Quantile, or "auto"

    Examples
    --------
    >>> Geman(1.0).psi(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 0.2500])
    """  # noqa: D400

    gamma: Parameter

    def rho(self, y: Tensor) -> Tensor:
        """½ y² r."""
        nu = y**2
        return nu / (2 * (1 + nu / self.gamma**2))

    def psi(self, nu: Tensor) -> Tensor:
        """r²."""
        return (1 / (1 + nu / self.gamma**2)) ** 2

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """−2 r² (1 − r)."""
        t = torch.clamp(nu / self.gamma**2, max=1e30)
        return -2 * t * (1 / (1 + t)) ** 3

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """4 r² (1 − r) / γ."""
        t = torch.clamp(nu / self.gamma**2, max=1e30)
        return 4 * t * (1 / (1 + t)) ** 3 / self.gamma


class Cauchy(Penalty):
    r"""Cauchy's penalty: the heaviest tail of the family. With r = 1/(1 + ν/γ²),

    .. math:: \rho(y) = \tfrac{\gamma^2}{2} \log(1 + \nu/\gamma^2), \qquad \psi(\nu) = r, \qquad
              \nu\,\psi'(\nu) = -r (1 - r), \qquad
              \partial\psi/\partial\gamma = \tfrac2\gamma r (1 - r), \qquad c = 1

    Parameters
    ----------
    gamma : float or Tensor, positive; Quantile, or "auto"

    Examples
    --------
    >>> Cauchy(1.0).psi(torch.tensor([0.0, 3.0]))
    tensor([1.0000, 0.2500])
    """  # noqa: D400

    gamma: Parameter

    def rho(self, y: Tensor) -> Tensor:
        """γ²/2 log(1 + y²/γ²)."""
        return self.gamma**2 / 2 * torch.log1p((y / self.gamma) ** 2)

    def psi(self, nu: Tensor) -> Tensor:
        """r."""
        return 1 / (1 + nu / self.gamma**2)

    def dpsi_dlog_nu(self, nu: Tensor) -> Tensor:
        """−r (1 − r)."""
        t = torch.clamp(nu / self.gamma**2, max=1e30)
        return -t * (1 / (1 + t)) ** 2

    def dpsi_dparameter(self, nu: Tensor) -> Tensor:
        """2 r (1 − r) / γ."""
        t = torch.clamp(nu / self.gamma**2, max=1e30)
        return 2 * t * (1 / (1 + t)) ** 2 / self.gamma


BUILT_IN: tuple[type[Penalty], ...] = (Power, MCP, SCAD, Huber, Welsch, Geman, Cauchy)


def is_built_in(penalty: Penalty) -> bool:
    """Whether a penalty is one of this file, so that its formulas need no check."""
    return type(penalty) in BUILT_IN or isinstance(penalty, Power)  # whose subclasses change no formula


def checked(name: str, value: Any, least: float | None) -> Parameter:
    """A number that is at least ``least``, or positive where that is None; a tensor is checked when used."""
    if isinstance(value, Tensor):
        return value
    number = check_in_range(name, value, least)
    return number if isinstance(number, float | int | torch.SymFloat) else float(number)  # such as NumPy's


def _quantile(name: str, value: Quantile | str) -> Quantile:
    if isinstance(value, str) and value != "auto":
        raise InputError(f"{name} must be a positive number, a Quantile or 'auto', not {value!r}")
    return value if isinstance(value, Quantile) else AUTO


def _shown(value: Tensor | Quantile) -> str:
    return repr(value) if isinstance(value, Quantile) else str(value.detach().tolist())


def check_in_range(name: str, value: float | None, least: float | None) -> float:
    """Return a finite number that is at least ``least``, or positive where that is None."""
    # only comparisons before the refusal, because a number that torch.compile traces offers nothing else
    if value is not None and is_number(value):
        enough = value > 0 if least is None else value >= least
        if enough and value < math.inf:
            return value
    return check_number(name, value, least=least, above=0 if least is None else None)


def check_parameter(penalty: Penalty) -> float:
    """Return the parameter of a penalty as a number if it is one and within its bounds."""
    least = penalty.least
    above = 0 if least is None else None
    return check_number(penalty.parameter_name, penalty.parameter, least=least, above=above)


def from_arguments(p: Parameter | None, penalty: Penalty | None) -> Penalty:
    """What ``p=`` and ``penalty=`` of a function mean together: exactly one of them is given."""
    if penalty is None:
        if p is None:
            raise InputError("p or penalty must be given")
        return Power(p)
    if p is not None:
        raise InputError("p and penalty cannot both be given: p=1.5 is short for penalty=Power(1.5)")
    if not isinstance(penalty, Penalty):
        raise InputError(f"penalty must be a plap.penalties.Penalty such as MCP(3.0), not {penalty!r}")
    if type(penalty) not in BUILT_IN and not torch.compiler.is_compiling():
        _check_construction(penalty)
    return penalty


def _check_construction(penalty: Penalty) -> None:
    """Refuse a penalty of somebody's own that :meth:`Penalty.at` cannot make again."""
    name, parameter = type(penalty).__name__, penalty.parameter_name
    if penalty.quantile is None and not hasattr(penalty, parameter):
        raise InputError(f"penalty {name} has no {parameter}: its __init__ must call super().__init__")
    for constant in penalty.constant_names:
        if not hasattr(penalty, constant):
            raise InputError(f"penalty {name} has no {constant}, which is one of its constant_names")
    if isinstance(penalty, Power):
        for function in ("rho", "psi", "dpsi_dlog_nu", "dpsi_dparameter"):
            if getattr(type(penalty), function) is not getattr(Power, function):
                raise InputError(
                    f"penalty {name} defines {function}, but a Power always counts as y^p: derive it from "
                    "Penalty"
                )
    value = penalty.parameter if penalty.quantile is None else 1.0
    try:
        again = penalty.at(value)
    except TypeError:
        arguments = ", ".join([parameter, *(f"{constant}=..." for constant in penalty.constant_names)])
        raise InputError(
            f"penalty {name} cannot be made as {name}({arguments}): its __init__ must take {parameter} first "
            "and name all further arguments in constant_names"
        ) from None
    if again.parameter is not value and (isinstance(value, Tensor) or again.parameter != value):
        raise InputError(f"penalty {name} must pass {parameter} to super().__init__ as it is")
    for attribute, kept in vars(penalty).items():
        if attribute not in (parameter, "quantile") and _differ(kept, vars(again).get(attribute)):
            raise InputError(
                f"penalty {name} has {attribute} = {kept!r}, which is lost where its {parameter} changes: "
                f"name {attribute} in constant_names"
            )


def _differ(one: Any, other: Any) -> bool:
    """Whether two numbers or texts are not the same; anything else is not compared."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape != other.shape or not torch.equal(one, other)
    return isinstance(one, float | int | str) and one != other


def _check_features(x: Tensor, graph: Graph) -> None:
    """Refuse features that have no edge norms on the graph."""
    nodes = check_graph(graph).num_nodes
    if not isinstance(x, Tensor) or x.layout != torch.strided or not x.is_floating_point():
        kind = type(x).__name__ if not isinstance(x, Tensor) else f"{x.dtype} of layout {x.layout}"
        raise InputError(f"x must be a dense tensor of float32 or float64, not {kind}")
    if not 1 <= x.ndim <= 3 or x.shape[0 if x.ndim == 1 else -2] != nodes:
        raise InputError(
            f"x must have shape [N, C] or [R, N, C] with N = {nodes}, one row per node, not {list(x.shape)}"
        )


__all__ = ["MCP", "SCAD", "Cauchy", "Geman", "Huber", "Penalty", "Power", "Quantile", "Welsch"]

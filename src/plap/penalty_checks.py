"""Whether a penalty of somebody's own has a meaning: what ψ, ρ and c must satisfy, tried on a wide grid."""

from __future__ import annotations

from functools import cache
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from plap.errors import InputError
from plap.penalties import Penalty

_Form = tuple[tuple[tuple[str, float], ...], frozenset[str]]
"""The constants of a penalty, and the first digits of its parameters."""
_SOUND: WeakKeyDictionary[type[Penalty], set[_Form]] = WeakKeyDictionary()
"""What was checked before: all but the sign depends on the parameter's value little or not at all."""
_MOST_FORMS = 1000

_ELEMENTWISE = 1e-6
"""How far ψ may differ when the same ν stand in another tensor, relative and absolute; rounding is less."""
_SLOPE = 0.01
"""How far ρ' and c y ψ may differ, relative to the larger: an integral by the trapezoidal rule is nearer."""
_STEP = 1e-4
"""Relative step of the difference quotient of ρ."""
_MOST_BENDS = 1
"""Points of the grid where ρ' and c y ψ may differ all the same, because ρ has a bend right there."""


def check_weights(penalty: Penalty, like: Tensor) -> None:
    """Refuse a penalty of somebody's own whose ψ, ρ or c has no meaning, anywhere on a wide grid.

    ψ must be elementwise, finite and not negative, c positive, ρ'(y) = c y ψ(y²) where ρ is defined, and the
    derivatives of ψ those that autograd finds.
    """
    name = type(penalty).__name__
    with torch.no_grad():
        value = torch.as_tensor(penalty.parameter, dtype=torch.float64, device=like.device)
        theta = value.detach().reshape(-1, 1)
        bound = penalty.at(theta)
        nu = _squared_norms(like.device)[1 if penalty.unbounded else 0 :].expand(theta.shape[0], -1).clone()
        psi = _values(name, "psi", "nu", bound.psi(nu), nu)
        _check_sign(name, psi, nu)
        sound = _SOUND.setdefault(type(penalty), set())
        form = tuple(penalty.constants.items()), frozenset(f"{each:.0e}" for each in theta[:, 0].tolist())
        if form not in sound:
            _check_elementwise(bound, psi, nu)
            _check_constant(bound)
            _check_slope(bound, theta)
            _check_derivatives(bound, theta)
            if len(sound) < _MOST_FORMS:
                sound.add(form)


def _values(name: str, function: str, argument: str, found: object, given: Tensor) -> Tensor:
    """What a function of a penalty returned, in float64, if it has one value per entry."""
    if not isinstance(found, Tensor):
        raise InputError(
            f"{function} of penalty {name} must return a tensor of the shape of {argument}, "
            f"not {type(found).__name__}"
        )
    if found.shape != given.shape:
        raise InputError(
            f"{function} of penalty {name} must return a tensor of the shape of {argument}, "
            f"{list(given.shape)} here, not {list(found.shape)}"
        )
    return found.double()


def _check_sign(name: str, psi: Tensor, nu: Tensor) -> None:
    bad = ~(torch.isfinite(psi) & (psi >= 0))
    if bool(bad.any()):
        at = tuple(bad.nonzero()[0].tolist())
        raise InputError(
            f"penalty {name} must give weights that are finite and not negative, "
            f"but psi({float(nu[at]):g}) = {float(psi[at]):g}"
        )


def _check_elementwise(bound: Penalty, psi: Tensor, nu: Tensor) -> None:
    """Compare ψ with what it is in a part of the grid, which lacks both ends and runs backwards."""
    name = type(bound).__name__
    some = torch.arange(nu.shape[1] * 3 // 4, 0, -2, device=nu.device)
    part = nu[:, some]
    there, here = psi[:, some], _values(name, "psi", "nu", bound.psi(part), part)
    bad = (there - here).abs() > _ELEMENTWISE * (1 + torch.maximum(there, here.abs()))
    if bool(bad.any()):
        at = tuple(bad.nonzero()[0].tolist())
        raise InputError(
            f"psi of penalty {name} must treat every entry of nu alone, but psi({float(part[at]):g}) is "
            f"{float(there[at]):g} or {float(here[at]):g}, depending on the other entries"
        )


def _check_constant(bound: Penalty) -> None:
    name = type(bound).__name__
    try:
        c = torch.as_tensor(bound.c, dtype=torch.float64)
    except (TypeError, ValueError):
        raise InputError(f"c of penalty {name} must be a positive finite number, not {bound.c!r}") from None
    good = torch.isfinite(c) & (c > 0)
    if not bool(good.all()):
        raise InputError(
            f"c of penalty {name} must be a positive finite number, not {float(c[~good].reshape(-1)[0]):g}"
        )


def _check_slope(bound: Penalty, theta: Tensor) -> None:
    """Compare the difference quotient of ρ with c y ψ(y²), near the penalty's own length."""
    if type(bound).rho is Penalty.rho:
        return
    name = type(bound).__name__
    y = _norms(theta.device) * theta
    try:
        low, high = (_values(name, "rho", "y", bound.rho(y * (1 + step)), y) for step in (-_STEP, _STEP))
    except NotImplementedError:  # as good as not defined
        return
    slope = (high - low) / (2 * _STEP * y)
    expected = bound.c * y * _values(name, "psi", "nu", bound.psi(y.square()), y)
    # what rounding leaves of a slope where rho is all but constant
    rounding = 1e-10 * torch.maximum(low.abs(), high.abs()) / y
    bad = (slope - expected).abs() > _SLOPE * torch.maximum(slope.abs(), expected.abs()) + rounding
    bad &= torch.isfinite(slope) & torch.isfinite(expected)
    if bool((bad.sum(1) > _MOST_BENDS).any()):
        at = tuple(bad.nonzero()[0].tolist())
        raise InputError(
            f"rho and psi of penalty {name} must satisfy rho'(y) = c y psi(y^2), but at y = {float(y[at]):g} "
            f"rho' is {float(slope[at]):g} and c y psi is {float(expected[at]):g}"
        )


def _check_derivatives(bound: Penalty, theta: Tensor) -> None:
    """Compare the derivatives of ψ that a penalty defines with those of autograd, near its own length."""
    name = type(bound).__name__
    nu = (_norms(theta.device) * theta).square()
    for function in ("dpsi_dlog_nu", "dpsi_dparameter"):
        if getattr(type(bound), function) is getattr(Penalty, function):
            continue
        given = _values(name, function, "nu", getattr(bound, function)(nu), nu)
        expected = getattr(Penalty, function)(bound, nu).double()
        size = torch.maximum(given.abs(), expected.abs())
        bad = (given - expected).abs() > _SLOPE * size + 1e-12 * expected.abs().amax(1, keepdim=True)
        if bool((bad.sum(1) > _MOST_BENDS).any()):
            at = tuple(bad.nonzero()[0].tolist())
            raise InputError(
                f"{function} of penalty {name} must be a derivative of psi, but at nu = {float(nu[at]):g} it "
                f"is {float(given[at]):g}, and autograd finds {float(expected[at]):g}"
            )


def check_degree(penalty: Penalty) -> None:
    """Refuse a penalty of somebody's own that does not change with the unit as its ``degree`` says."""
    with torch.no_grad():
        value = penalty.parameter if penalty.quantile is None else 1.0
        theta = torch.as_tensor(value, dtype=torch.float64).detach().reshape(-1, 1)
        nu = (_norms(theta.device) * theta).square()
        scale = 2.0 if penalty.is_length else 1.0
        here = penalty.at(theta).psi(nu)
        there = penalty.at(scale * theta).psi(4 * nu)
        expected = 2.0 ** (torch.as_tensor(penalty.degree, dtype=torch.float64) - 2) * here
        bad = (there - expected).abs() > 1e-6 * torch.maximum(there.abs(), expected.abs())
    if bool((bad.sum(1) > _MOST_BENDS).any()):
        at = tuple(bad.nonzero()[0].tolist())
        degree, gamma = float(torch.as_tensor(penalty.degree).reshape(-1)[0]), penalty.parameter_name
        raise InputError(
            f"unit needs psi(4 nu; 2 {gamma}) = 2^(degree - 2) psi(nu; {gamma}), but penalty "
            f"{type(penalty).__name__} with degree {degree:g} has {float(there[at]):g} and "
            f"{float(expected[at]):g} at nu = {float(nu[at]):g}"
        )


@cache
def _squared_norms(device: torch.device) -> Tensor:
    """0, and ν from 1e-20 to 1e20."""
    nu = torch.logspace(-20, 20, 201, dtype=torch.float64, device=device)
    return torch.cat([nu.new_zeros(1), nu])


@cache
def _norms(device: torch.device) -> Tensor:
    """y from 0.01 to 100, at no simple multiple of the parameter, where a penalty in pieces would bend."""
    return torch.logspace(-2.0137, 1.9863, 41, dtype=torch.float64, device=device)

"""Checks of single arguments: each returns the value or refuses it in a sentence that names the argument."""

from __future__ import annotations

import difflib
import importlib
import math
import numbers
from collections.abc import Iterable
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from plap.errors import InputError

_LONGEST_SHOWN = 200


def check_integer(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return ``value`` as an ``int`` if it is an integer from ``least`` to ``most``; a bool is not one.

    Examples
    --------
    >>> check_integer("K", 4, 1)
    4
    >>> check_integer("K", 0, 1)
    Traceback (most recent call last):
    plap.errors.InputError: K must be an integer of 1 or more, not 0
    """
    integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not integer or (least is not None and value < least) or (most is not None and value > most):
        raise InputError(f"{name} must be an integer{_integer_range(least, most)}, not {_shown(value)}")
    return int(value)


def check_number(
    name: str,
    value: Any,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Return ``value`` as a ``float`` if it is finite and within these bounds; a bool is not a number.

    A tensor without dimensions is taken by its value.

    Examples
    --------
    >>> check_number("p", 1.5, least=1)
    1.5
    >>> check_number("mu", 0, above=0)
    Traceback (most recent call last):
    plap.errors.InputError: mu must be a positive finite number, not 0
    >>> check_number("dropout", 1.0, least=0, below=1)
    Traceback (most recent call last):
    plap.errors.InputError: dropout must be a number of at least 0 and below 1, not 1.0
    """
    shown = _shown(value)
    if isinstance(value, Tensor):
        if value.ndim:
            raise InputError(f"{name} must be one number, not a tensor of shape {list(value.shape)}")
        value = value.item()
        shown = f"{value:g}"
    good = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not good
        or (least is not None and value < least)
        or (above is not None and value <= above)
        or (most is not None and value > most)
        or (below is not None and value >= below)
    ):
        raise InputError(f"{name} must be {_number_range(least, above, most, below)}, not {shown}")
    return float(value)


def check_nodes(nodes: Any, count: int) -> NDArray[np.intp]:
    """Return the numbers of some of ``count`` nodes as an array; a column [nodes, 1] is taken as [nodes].

    Examples
    --------
    >>> check_nodes([2, 0], 3).tolist()
    [2, 0]
    >>> check_nodes([-1], 3)
    Traceback (most recent call last):
    plap.errors.InputError: nodes must lie between 0 and 2, not -1
    """
    numbers = np.asarray(nodes)
    if numbers.ndim == 2 and numbers.shape[1] == 1:
        numbers = numbers[:, 0]
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise InputError("nodes must be whole numbers, one per node")
    outside = numbers[(numbers < 0) | (numbers >= count)]
    if outside.size:
        raise InputError(f"nodes must lie between 0 and {count - 1}, not {outside[0]}")
    return numbers.astype(np.intp)


def is_number(value: Any) -> bool:
    """Whether ``value`` is a real number, or one that torch.compile traces; a bool is not one.

    Examples
    --------
    >>> is_number(1.5), is_number(True), is_number("1")
    (True, False, False)
    """
    return isinstance(value, torch.SymFloat) or (
        isinstance(value, numbers.Real) and not isinstance(value, bool)
    )


def check_finite(name: str, x: Tensor) -> None:
    """Refuse a tensor with a number that is not finite, unless its numbers cannot be looked at.

    Examples
    --------
    >>> check_finite("x", torch.tensor([[0.0, torch.inf]]))
    Traceback (most recent call last):
    plap.errors.InputError: x[0, 1] = inf is not finite
    """
    if torch.compiler.is_compiling() or in_transform(x):
        return
    x = x.detach()
    # a finite sum shows it at once; only otherwise is each number tested
    if not bool(torch.isfinite(x.sum())) and not bool(torch.isfinite(x).all()):
        where = (~torch.isfinite(x)).nonzero()[0].tolist()
        raise InputError(f"{name}{where} = {float(x[tuple(where)])} is not finite")


def in_transform(value: Tensor) -> bool:
    """Whether ``value`` stands for many (torch.func) or for none (meta), so that it cannot be looked at."""
    return torch._C._functorch.is_functorch_wrapped_tensor(value) or value.device.type == "meta"


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` if it is True or False.

    Examples
    --------
    >>> check_flag("residual", 1)
    Traceback (most recent call last):
    plap.errors.InputError: residual must be True or False, not 1
    """
    if not isinstance(value, bool):
        raise InputError(f"{name} must be True or False, not {_shown(value)}")
    return value


def check_choice(name: str, value: Any, choices: Any) -> Any:
    """Return ``value`` if it is one of ``choices``: a ``Literal``, or any collection of names.

    Examples
    --------
    >>> check_choice("method", "lbgfs", ("lbfgs", "jacobi"))
    Traceback (most recent call last):
    plap.errors.InputError: method must be one of lbfgs, jacobi, not 'lbgfs' (did you mean 'lbfgs'?)
    """
    known = list(get_args(choices) or choices)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, not {value!r}{near_miss(value, known)}")
    return value


def near_miss(name: object, known: Iterable[str]) -> str:
    """What to put behind a sentence about an unknown name: the nearest known one in brackets, or nothing.

    Examples
    --------
    >>> near_miss("gprgn", ["gcn", "gprgnn"])
    " (did you mean 'gprgnn'?)"
    """
    close = _close(str(name), list(known), 1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def did_you_mean(name: str, known: Iterable[str], otherwise: str | None = None) -> str:
    """What to say about a name that is not known: the nearest known ones, or all of them.

    Parameters
    ----------
    name : str
    known : iterable of str
    otherwise : str, optional
        What to say where no name is near; by default all of them are listed.

    Examples
    --------
    >>> did_you_mean("entropie", ["entropy", "curves"])
    'did you mean entropy?'
    >>> did_you_mean("x", ["entropy", "curves"])
    'there are entropy, curves'
    """
    names = list(known)
    close = _close(name, names, 3)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return f"there are {', '.join(names)}" if otherwise is None else otherwise


def import_extra(module: str, extra: str, what: str) -> Any:
    """Import a package that only one of plap's extras installs, or say what needs it and how to get it.

    Examples
    --------
    >>> import_extra("no_such_package", "scale", "partitioning")
    Traceback (most recent call last):
    plap.errors.InputError: partitioning needs the package no_such_package: pip install 'plap[scale]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(f"{what} needs the package {module}: pip install 'plap[{extra}]'") from None


def _shown(value: object) -> str:
    """``value`` as a message shows it: in one line, or else by its type."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN and "\n" not in text else f"a {type(value).__name__}"


def _close(name: str, known: list[str], count: int) -> list[str]:
    return difflib.get_close_matches(name, known, n=count)


def _integer_range(least: int | None, most: int | None) -> str:
    if most is None:
        return "" if least is None else f" of {least} or more"
    return f" of at most {most}" if least is None else f" from {least} to {most}"


def _number_range(least: float | None, above: float | None, most: float | None, below: float | None) -> str:
    if least is not None and most is not None:
        return f"a number from {least:g} to {most:g}"
    bounds = [
        f"{word} {bound:g}"
        for word, bound in (("of at least", least), ("above", above), ("of at most", most), ("below", below))
        if bound is not None
    ]
    bounded_above = most is not None or below is not None
    if above == 0 and not bounded_above:
        return "a positive finite number"
    return " ".join(["a number" if bounded_above else "a finite number", " and ".join(bounds)]).strip()

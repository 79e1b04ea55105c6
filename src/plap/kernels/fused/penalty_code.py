"""ψ of a penalty and its derivatives as Numba functions, translated from the PyTorch that defines them.

Each of ``psi``, ``dpsi_dlog_nu`` and ``dpsi_dparameter`` is traced by torch.fx and written out again as a
function of two numbers, so a penalty is defined once. Inside compiled code a penalty is a ``kind``: a tuple
whose *length* is its place in a table, known at compile time by its type. Powers have code of their own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

from torch import fx

from plap.penalties import BUILT_IN, Penalty

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS = ("psi", "dpsi_dlog_nu", "dpsi_dparameter")

POWER = "power"
"""The key of powers."""


class Code(NamedTuple):
    """What a penalty's functions compute, as lines of Python with the result in ``result``."""

    key: str
    unbounded: bool
    lines: dict[str, tuple[str, ...]]

    def source(self, function: str) -> str:
        """Python source of a function of (kind, nu, theta); ``R`` makes a number of its type."""
        return "\n    ".join(["def compiled(kind, nu, theta):", *self.lines[function], "return result"])


_TABLE: list[Code | None] = [None] * len(BUILT_IN)
_PLACES: dict[str, int] = {POWER: 0}


class CannotCompileError(Exception):
    """A function of a penalty has no translation; the text says why."""


def _constant_in_graphs(function: Function) -> Function:
    """``torch.compiler.assume_constant_result`` without importing the compiler, which takes a second."""
    function.__dict__["_dynamo_marked_constant"] = True
    return function


@_constant_in_graphs
def refusal(penalty: type[Penalty], constants: tuple[tuple[str, float], ...]) -> str | None:
    """Why a penalty cannot be compiled, in a sentence; None if it can."""
    try:
        _translated(penalty, constants)
    except CannotCompileError as error:
        return (
            f"backend 'fused' cannot compile penalty {penalty.__name__}: {error}; "
            "backend 'torch' runs it as it is"
        )
    return None


@_constant_in_graphs
def key_of(penalty: type[Penalty], constants: tuple[tuple[str, float], ...]) -> str:
    """Put a penalty into the table and return the text by which operators know it."""
    code = _translated(penalty, constants)
    if code.key not in _PLACES:
        usual = penalty in BUILT_IN and all(getattr(penalty(1.0), name) == value for name, value in constants)
        # a built-in penalty has the same place in every process, and so the same name in Numba's cache
        place = BUILT_IN.index(penalty) if usual else len(_TABLE)
        if not usual:
            _TABLE.append(None)
        _TABLE[place] = code
        _PLACES[code.key] = place
    return code.key


def place_of(key: str) -> int:
    """Where a penalty stands in the table: the length of its ``kind``."""
    return _PLACES[key]


def code_at(place: int) -> Code:
    """The translated functions of a penalty."""
    code = _TABLE[place]
    assert code is not None
    return code


@cache
def _translated(penalty: type[Penalty], constants: tuple[tuple[str, float], ...]) -> Code:
    lines = {name: _lines(penalty, constants, name) for name in FUNCTIONS}
    digest = hashlib.sha256(repr((penalty.unbounded, lines)).encode()).hexdigest()[:16]
    return Code(f"{penalty.__qualname__}-{digest}", bool(penalty.unbounded), lines)


def _lines(
    penalty: type[Penalty], constants: tuple[tuple[str, float], ...], function: str
) -> tuple[str, ...]:
    if getattr(penalty, function) is getattr(Penalty, function):
        raise CannotCompileError(f"it does not define {function}")

    def traced(nu: Any, theta: Any) -> Any:
        bound = object.__new__(penalty)
        for name, value in constants:
            setattr(bound, name, value)
        setattr(bound, penalty.parameter_name, theta)
        return getattr(bound, function)(nu)

    try:
        graph = fx.Tracer().trace(traced)
    except fx.proxy.TraceError as error:
        raise CannotCompileError(f"{function} branches on its argument") from error
    except Exception as error:
        raise CannotCompileError(f"{function} cannot be traced ({type(error).__name__}: {error})") from error
    return tuple(_statement(node, function) for node in graph.nodes if node.op != "placeholder")


def _statement(node: fx.Node, function: str) -> str:
    if node.op == "output":
        return f"result = {_operand(node.args[0], function)}"
    if node.op not in ("call_function", "call_method"):
        raise CannotCompileError(f"{function} uses {node.target}")
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    write = _OPERATIONS.get(name)
    if write is None:
        raise CannotCompileError(f"{function} uses {name}")
    if name == "pow" and isinstance(node.args[1], int | float):
        return f"{_name(node)} = {_power(_operand(node.args[0], function), node.args[1])}"
    operands = [_operand(value, function) for value in node.args]
    named = {key: _operand(value, function) for key, value in node.kwargs.items() if value is not None}
    try:
        return f"{_name(node)} = {write(*operands, **named)}"
    except TypeError as error:
        raise CannotCompileError(f"{function} calls {name} in an unknown way") from error


def _name(node: fx.Node) -> str:
    """Arguments keep their names; a result must not be called like a function that it is computed by."""
    return node.name if node.op == "placeholder" else f"{node.name}_"


def _operand(value: Any, function: str) -> str:
    if isinstance(value, fx.Node):
        return _name(value)
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float) and math.isfinite(value):
        return f"R({float(value)!r})"
    if value is None:
        return "None"
    raise CannotCompileError(f"{function} uses the constant {value!r}")


def _power(base: str, exponent: float) -> str:
    if exponent == int(exponent) and 1 <= abs(exponent) <= 8:
        product = " * ".join([base] * int(abs(exponent)))
        return f"({product})" if exponent > 0 else f"R(1.0) / ({product})"
    if exponent == 0.5:
        return f"np.sqrt({base})"
    return f"power({base}, R({float(exponent)!r}))"


def _clamp(x: str, min: str = "None", max: str = "None") -> str:
    for bound, name in ((min, "max"), (max, "min")):
        x = x if bound == "None" else f"{name}({x}, {bound})"
    return x


_Writer = Callable[..., str]


def _infix(symbol: str) -> _Writer:
    return lambda a, b: f"{a} {symbol} {b}"


def _call(name: str) -> _Writer:
    return lambda *a: f"{name}({', '.join(a)})"


_OPERATIONS: dict[str, _Writer] = {
    **{name: _infix(symbol) for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    **{name: _infix("/") for name in ("truediv", "div", "divide")},
    **{name: _infix("<") for name in ("lt", "less")},
    **{name: _infix("<=") for name in ("le", "less_equal")},
    **{name: _infix(">") for name in ("gt", "greater")},
    **{name: _infix(">=") for name in ("ge", "greater_equal")},
    **{name: _infix("and") for name in ("and_", "logical_and")},
    **{name: _infix("or") for name in ("or_", "logical_or")},
    **{name: lambda a: f"not {a}" for name in ("invert", "logical_not")},
    **{name: lambda a: f"-{a}" for name in ("neg", "negative")},
    **{name: _call("abs") for name in ("abs", "absolute")},
    **dict.fromkeys(("clamp", "clip"), _clamp),
    "clamp_min": _call("max"),
    "clamp_max": _call("min"),
    "maximum": _call("max"),
    "minimum": _call("min"),
    "relu": lambda a: f"max({a}, R(0.0))",
    "where": lambda condition, a, b: f"{a} if {condition} else {b}",
    "pow": _call("power"),
    "square": lambda a: f"{a} * {a}",
    "reciprocal": lambda a: f"R(1.0) / {a}",
    "sqrt": _call("np.sqrt"),
    "rsqrt": lambda a: f"R(1.0) / np.sqrt({a})",
    "exp": _call("exp"),
    "log": _call("np.log"),
    "log1p": _call("np.log1p"),
    "expm1": _call("np.expm1"),
    "tanh": _call("np.tanh"),
    "ones_like": lambda a: "R(1.0)",
    "zeros_like": lambda a: "R(0.0)",
}
"""PyTorch's functions and methods by name, as Python of numbers."""

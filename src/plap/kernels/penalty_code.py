"""ψ of a penalty and its derivatives as source code, translated from the PyTorch that defines them.

Each of ``psi``, ``dpsi_dlog_nu`` and ``dpsi_dparameter`` is traced by torch.fx and written out again as a
function of ν and the parameter, so a penalty is defined once. A :class:`Dialect` says how: for numbers in
Numba, or for blocks in Triton. Inside Numba's code a penalty is a ``kind``: a tuple whose *length* is its
place in a table, known at compile time by its type. Powers have code of their own.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, TypeVar

from torch import fx

from plap.penalties import BUILT_IN, Penalty

Function = TypeVar("Function", bound=Callable[..., Any])

FUNCTIONS = ("psi", "dpsi_dlog_nu", "dpsi_dparameter")

POWER = "power"
"""The key of powers."""


Constants = tuple[tuple[str, float], ...]
Writer = Callable[..., str]


@dataclass(frozen=True, eq=False)
class Dialect:
    """How an expression is written."""

    name: str
    backend: str
    """Whose it is."""
    number: Writer
    """A constant."""
    root: str
    """The function that takes square roots."""
    power: str
    """The function that takes powers."""
    operations: dict[str, Writer]
    """PyTorch's functions and methods by name."""


class Code(NamedTuple):
    """A penalty by the key that operators know it by."""

    key: str
    unbounded: bool
    penalty: type[Penalty]
    constants: Constants

    def source(self, function: str, dialect: Dialect, arguments: str = "nu, theta") -> str:
        """Python source of one of :data:`FUNCTIONS`, under the name ``compiled``."""
        lines = _lines(self.penalty, self.constants, function, dialect)
        return "\n    ".join([f"def compiled({arguments}):", *lines, "return result"]) + "\n"


_TABLE: list[Code | None] = [None] * len(BUILT_IN)
_PLACES: dict[str, int] = {POWER: 0}


class CannotCompileError(Exception):
    """A function of a penalty has no translation; the text says why."""


def _constant_in_graphs(function: Function) -> Function:
    """``torch.compiler.assume_constant_result`` without importing the compiler, which takes a second."""
    function.__dict__["_dynamo_marked_constant"] = True
    return function


@_constant_in_graphs
def refusal(penalty: type[Penalty], constants: Constants, dialect: str) -> str | None:
    """Why a penalty cannot be written in the dialect of this name, in a sentence; None if it can."""
    chosen = DIALECTS[dialect]
    try:
        for function in FUNCTIONS:
            _lines(penalty, constants, function, chosen)
    except CannotCompileError as error:
        return (
            f"backend {chosen.backend!r} cannot compile penalty {penalty.__name__}: {error}; "
            "backend 'torch' runs it as it is"
        )
    return None


@_constant_in_graphs
def key_of(penalty: type[Penalty], constants: Constants) -> str:
    """Put a penalty into the table and return the text by which operators know it."""
    code = _code(penalty, constants)
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
def _code(penalty: type[Penalty], constants: Constants) -> Code:
    lines = {name: _lines(penalty, constants, name, NUMBERS) for name in FUNCTIONS}
    digest = hashlib.sha256(repr((penalty.unbounded, lines)).encode()).hexdigest()[:16]
    return Code(f"{penalty.__qualname__}-{digest}", bool(penalty.unbounded), penalty, constants)


@cache
def _lines(penalty: type[Penalty], constants: Constants, function: str, dialect: Dialect) -> tuple[str, ...]:
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
    writer = _Writer(function, dialect)
    return tuple(writer.statement(node) for node in graph.nodes if node.op != "placeholder")


class _Writer:
    """Writes the statements of a function."""

    def __init__(self, function: str, dialect: Dialect) -> None:
        self._function, self._dialect = function, dialect

    def statement(self, node: fx.Node) -> str:
        """One node of the graph as an assignment."""
        if node.op == "output":
            return f"result = {self._operand(node.args[0])}"
        if node.op not in ("call_function", "call_method"):
            raise CannotCompileError(f"{self._function} uses {node.target}")
        target = node.target
        name = target if isinstance(target, str) else getattr(target, "__name__", str(target))
        write = self._dialect.operations.get(name)
        if write is None:
            raise CannotCompileError(f"{self._function} uses {name}")
        if name == "pow" and isinstance(node.args[1], int | float):
            return f"{_name(node)} = {self._power(self._operand(node.args[0]), node.args[1])}"
        operands = [self._operand(value) for value in node.args]
        named = {key: self._operand(value) for key, value in node.kwargs.items() if value is not None}
        try:
            return f"{_name(node)} = {write(*operands, **named)}"
        except TypeError as error:
            raise CannotCompileError(f"{self._function} calls {name} in an unknown way") from error

    def _operand(self, value: Any) -> str:
        if isinstance(value, fx.Node):
            return _name(value)
        if isinstance(value, bool):
            return str(value)
        if isinstance(value, int | float) and math.isfinite(value):
            return self._dialect.number(float(value))
        if value is None:
            return "None"
        raise CannotCompileError(f"{self._function} uses the constant {value!r}")

    def _power(self, base: str, exponent: float) -> str:
        if exponent == int(exponent) and 1 <= abs(exponent) <= 8:
            product = " * ".join([base] * int(abs(exponent)))
            return f"({product})" if exponent > 0 else f"{self._dialect.number(1.0)} / ({product})"
        if exponent == 0.5:
            return f"{self._dialect.root}({base})"
        return f"{self._dialect.power}({base}, {self._dialect.number(float(exponent))})"


def _name(node: fx.Node) -> str:
    """Arguments keep their names; a result must not be called like a function that it is computed by."""
    return node.name if node.op == "placeholder" else f"{node.name}_"


def _infix(symbol: str) -> Writer:
    return lambda a, b: f"{a} {symbol} {b}"


def _call(name: str) -> Writer:
    return lambda *a: f"{name}({', '.join(a)})"


def _between(most: str, least: str) -> Writer:
    def clamp(x: str, min: str = "None", max: str = "None") -> str:
        for bound, name in ((min, most), (max, least)):
            x = x if bound == "None" else f"{name}({x}, {bound})"
        return x

    return clamp


_EVERYWHERE: dict[str, Writer] = {
    **{name: _infix(symbol) for name, symbol in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    **{name: _infix("/") for name in ("truediv", "div", "divide")},
    **{name: _infix("<") for name in ("lt", "less")},
    **{name: _infix("<=") for name in ("le", "less_equal")},
    **{name: _infix(">") for name in ("gt", "greater")},
    **{name: _infix(">=") for name in ("ge", "greater_equal")},
    **{name: lambda a: f"-{a}" for name in ("neg", "negative")},
    "square": lambda a: f"{a} * {a}",
}
"""What every dialect writes alike."""

NUMBERS = Dialect(
    "numbers",
    "fused",
    number=lambda value: f"R({value!r})",
    root="np.sqrt",
    power="power",
    operations={
        **_EVERYWHERE,
        **{name: _infix("and") for name in ("and_", "logical_and")},
        **{name: _infix("or") for name in ("or_", "logical_or")},
        **{name: lambda a: f"not {a}" for name in ("invert", "logical_not")},
        **{name: _call("abs") for name in ("abs", "absolute")},
        **dict.fromkeys(("clamp", "clip"), _between("max", "min")),
        **{name: _call("max") for name in ("clamp_min", "maximum")},
        **{name: _call("min") for name in ("clamp_max", "minimum")},
        "relu": lambda a: f"max({a}, R(0.0))",
        "where": lambda condition, a, b: f"{a} if {condition} else {b}",
        "pow": _call("power"),
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
    },
)
"""Python of numbers; ``R`` makes a number of the type that is meant."""

BLOCKS = Dialect(
    "blocks",
    "triton",
    number=repr,
    root="tl.sqrt",
    power="power",
    operations={
        **_EVERYWHERE,
        **{name: _infix("&") for name in ("and_", "logical_and")},
        **{name: _infix("|") for name in ("or_", "logical_or")},
        **{name: lambda a: f"{a} == 0" for name in ("invert", "logical_not")},
        **{name: _call("tl.abs") for name in ("abs", "absolute")},
        **dict.fromkeys(("clamp", "clip"), _between("tl.maximum", "tl.minimum")),
        **{name: _call("tl.maximum") for name in ("clamp_min", "maximum")},
        **{name: _call("tl.minimum") for name in ("clamp_max", "minimum")},
        "relu": lambda a: f"tl.maximum({a}, 0.0)",
        "where": _call("tl.where"),
        "pow": _call("power"),
        "reciprocal": lambda a: f"1.0 / {a}",
        **{name: _call(f"tl.{name}") for name in ("sqrt", "rsqrt", "exp", "log")},
        "ones_like": lambda a: "1.0",
        "zeros_like": lambda a: "0.0",
    },
)
"""Triton's functions of blocks, which have none for log1p, expm1 and tanh."""

DIALECTS = {dialect.name: dialect for dialect in (NUMBERS, BLOCKS)}

"""A row of channels as one SIMD value inside Numba functions.

Numba's arrays may alias each other as far as LLVM knows, so a loop that adds rows into an array stores and
reloads its sum at every edge. A value of type :class:`Lanes` lives in registers instead. ``width`` is any
tuple: its *length* times ``BLOCK`` is the number of lanes, known at compile time by its type alone.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models, register_default

from plap.kernels.fused.calling import BLOCK
from plap.kernels.fused.jit import Codegen, instruction

_FLAGS = ("contract", "reassoc", "nsz")


class Lanes(types.Type):  # type: ignore[misc]
    """``count`` floats of type ``dtype``, added and multiplied at once."""

    def __init__(self, dtype: types.Float, count: int) -> None:
        self.dtype = dtype
        self.count = count
        super().__init__(name=f"Lanes({dtype}, {count})")


@register_default(Lanes)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, lanes: Lanes) -> None:
        bits: ir.Type = ir.FloatType() if lanes.dtype.bitwidth == 32 else ir.DoubleType()
        super().__init__(manager, lanes, ir.VectorType(bits, lanes.count))


def _row_pointer(context: Any, builder: Any, array_type: Any, array: Any, offset: Any, lanes: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [offset]), context.get_value_type(lanes).as_pointer())


def _splat(context: Any, builder: Any, value: Any, lanes: Lanes) -> Any:
    vector = context.get_value_type(lanes)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), lanes.count), [0] * lanes.count)
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), mask)


@instruction
def load(typingctx: Any, array: Any, offset: Any, width: Any) -> tuple[Any, Codegen]:
    """The lanes that start at ``array[offset]``."""
    lanes = Lanes(array.dtype, BLOCK * len(width))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _row_pointer(context, builder, signature.args[0], args[0], args[1], lanes)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return lanes(array, types.uint64, width), codegen


@instruction
def store(typingctx: Any, array: Any, offset: Any, value: Any) -> tuple[Any, Codegen]:
    """Write ``value`` to the places that start at ``array[offset]``."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _row_pointer(context, builder, signature.args[0], args[0], args[1], value)
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.uint64, value), codegen


@instruction
def splat(typingctx: Any, value: Any, width: Any) -> tuple[Any, Codegen]:
    """``value`` in every lane."""
    lanes = Lanes(value, BLOCK * len(width))

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _splat(context, builder, args[0], lanes)

    return lanes(value, width), codegen


@instruction
def add(typingctx: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """a + b, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fadd(args[0], args[1], flags=_FLAGS)

    return a(a, b), codegen


@instruction
def subtract(typingctx: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """a − b, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fsub(args[0], args[1], flags=_FLAGS)

    return a(a, b), codegen


@instruction
def times(typingctx: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """a · b, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(args[0], args[1], flags=_FLAGS)

    return a(a, b), codegen


@instruction
def scale(typingctx: Any, factor: Any, a: Any) -> tuple[Any, Codegen]:
    """factor · a, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fmul(_splat(context, builder, args[0], a), args[1], flags=_FLAGS)

    return a(a.dtype, a), codegen


@instruction
def add_scaled(typingctx: Any, total: Any, factor: Any, a: Any) -> tuple[Any, Codegen]:
    """total + factor · a, lane by lane."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        product = builder.fmul(_splat(context, builder, args[1], a), args[2], flags=_FLAGS)
        return builder.fadd(args[0], product, flags=_FLAGS)

    return total(total, a.dtype, a), codegen


@instruction
def dot(typingctx: Any, a: Any, b: Any) -> tuple[Any, Codegen]:
    """Σ a·b over the lanes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        vector = context.get_value_type(a)
        name = f"llvm.vector.reduce.fadd.v{a.count}f{a.dtype.bitwidth}"
        kind = ir.FunctionType(vector.element, [vector.element, vector])
        reduce = cgutils.get_or_insert_function(builder.module, kind, name)
        product = builder.fmul(args[0], args[1], flags=_FLAGS)
        return builder.call(reduce, [ir.Constant(vector.element, 0.0), product], fastmath=_FLAGS)

    return a.dtype(a, b), codegen


@instruction
def prefetch(typingctx: Any, array: Any, offset: Any, width: Any) -> tuple[Any, Codegen]:
    """Ask for the lanes that start at ``array[offset]`` to be brought near the core."""
    line = 512 // array.dtype.bitwidth

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        fetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        for lane in range(0, BLOCK * len(width), line):
            place = builder.gep(data, [builder.add(args[1], ir.Constant(ir.IntType(64), lane))])
            arguments = [builder.bitcast(place, byte), *(ir.Constant(flag, value) for value in (0, 3, 1))]
            builder.call(fetch, arguments)
        return context.get_dummy_value()

    return types.void(array, types.uint64, width), codegen

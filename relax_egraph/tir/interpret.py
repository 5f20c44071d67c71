"""An interpreter of loop functions, one scalar at a time: the reference of compiled kernels."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import computed, converted, is_float, is_stored, name_of
from relax_egraph.ir.module import BaseFunc
from relax_egraph.ir.struct_info import shape_text
from relax_egraph.tir.expr import (
    Binary,
    BinaryKind,
    Buffer,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.functions import FUNCTIONS
from relax_egraph.tir.rewrite import statements, variables
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

Array: TypeAlias = npt.NDArray[Any]

MicroKernel: TypeAlias = Callable[..., None]
"""The function of a `TensorIntrinsic`: takes a flat view of each buffer that begins at the
addressed element, then the scalars."""

_NONE: Mapping[str, Any] = {}


def interpret(
    prim_func: PrimFunc,
    arrays: Sequence[Array],
    scalars: Mapping[str, int] = _NONE,
    intrinsics: Mapping[str, MicroKernel] = _NONE,
) -> tuple[Array, ...]:
    """Run `prim_func` and return its outputs.

    `arrays` are one for each parameter, the outputs written in place, or one for each input;
    then the outputs are allocated here.  `scalars` are the values of ``prim_func.scalars``.
    A loop over a reduction runs the block's `init` also if it has no iterations.  Raises
    `RunError` for arrays that do not fit the parameters, `IndexError` for an index outside
    of its buffer, `KeyError` for an unknown tensor intrinsic.
    """
    symbols = {**_bind(prim_func, arrays), **scalars}
    if missing := [s for s in prim_func.symbols if s not in symbols]:
        raise RunError(f"no value for the symbol {missing[0]}: pass scalars")
    allocated = [_fresh(b, symbols) for b in prim_func.params[len(arrays) :]]
    machine = _Machine(symbols, intrinsics)
    for buffer, array in zip(prim_func.params, [*arrays, *allocated], strict=True):
        machine.give(buffer, array)
    for buffer in prim_func.allocs:
        machine.give(buffer, _fresh(buffer, symbols))
    with np.errstate(all="ignore"):
        machine.run(prim_func.body)
    return tuple(machine.memory[b] for b in prim_func.outputs)


def run_in_place(function: BaseFunc, values: Sequence[Any]) -> None:
    """Run a loop function on its arrays, with the outputs, and then its scalars.

    ``evaluate(module, name, …, prim_func=run_in_place)`` runs modules that call loop functions.
    """
    if not isinstance(function, PrimFunc):
        raise RunError("R.call_tir of what is no loop function")
    count = len(function.params)
    interpret(function, values[:count], dict(zip(function.scalars, values[count:], strict=True)))


def _bind(prim_func: PrimFunc, arrays: Sequence[Array]) -> dict[str, int]:
    """The values of the symbols that are a whole dimension of an array."""
    if len(arrays) not in (len(prim_func.params), len(prim_func.inputs)):
        raise RunError(
            f"got {len(arrays)} arrays, needs {len(prim_func.params)}: "
            f"{', '.join(b.name for b in prim_func.params)}"
        )
    symbols: dict[str, int] = {}
    for buffer, array in zip(prim_func.params, arrays, strict=False):
        if len(buffer.shape) == array.ndim:
            for dim, extent in zip(buffer.shape, array.shape, strict=True):
                if not isinstance(dim, int) and dim.is_Symbol:
                    symbols.setdefault(dims.text(dim), extent)
    return symbols


def _fresh(buffer: Buffer, symbols: Mapping[str, int]) -> Array:
    """An array of conspicuous values, which reveal reads before writes."""
    shape = [dims.evaluate(d, symbols) for d in buffer.shape]
    garbage = math.nan if is_float(buffer.dtype) else 0x55
    return np.full(shape, garbage, buffer.dtype)


@dataclass(slots=True)
class _Machine:
    symbols: Mapping[str, int]
    intrinsics: Mapping[str, MicroKernel]
    memory: dict[Buffer, Array] = field(default_factory=dict[Buffer, Array])
    values: dict[TirVar, Any] = field(default_factory=dict[TirVar, Any])

    def give(self, buffer: Buffer, array: Array) -> None:
        shape = tuple(dims.evaluate(d, self.symbols) for d in buffer.shape)
        if shape != array.shape or buffer.dtype != name_of(array.dtype):
            raise RunError(
                f"{buffer.name} is {name_of(array.dtype)} {shape_text(array.shape)}, "
                f"needs {buffer.dtype} {shape_text(shape)}"
            )
        if not array.flags.c_contiguous:
            raise RunError(f"{buffer.name} is not contiguous")
        self.memory[buffer] = array

    # --- statements -------------------------------------------------------------------

    def run(self, stmt: Stmt) -> None:
        match stmt:
            case Store(buffer=buffer, indices=indices, value=value):
                at = self.place(buffer, indices)
                self.memory[buffer][at] = self.value(value)
            case For(var=var, extent=extent, body=body):
                count = int(self.value(extent))
                for i in range(count):
                    self.values[var] = i
                    self.run(body)
                if not count:
                    self.only_init(stmt)
            case IfThenElse(condition=condition, then_case=then_case, else_case=else_case):
                if self.value(condition):
                    self.run(then_case)
                elif else_case is not None:
                    self.run(else_case)
            case Seq(body=body):
                for inner in body:
                    self.run(inner)
            case TirBlock():
                self.enter(stmt)
                if stmt.init is not None and self.is_first(stmt.axes):
                    self.run(stmt.init)
                self.run(stmt.body)
            case TensorIntrinsic(name=name, buffers=buffers, scalars=scalars):
                views = [self.address(b, at) for b, at in buffers]
                self.intrinsics[name](*views, *(int(self.value(s)) for s in scalars))

    def enter(self, block: TirBlock) -> None:
        for axis in block.axes:
            self.values[axis.var] = self.value(axis.binding)
        for buffer in block.allocs:
            self.give(buffer, _fresh(buffer, self.symbols))

    def is_first(self, axes: tuple[BlockAxis, ...]) -> bool:
        return all(self.values[a.var] == 0 for a in axes if a.kind == "reduce")

    def only_init(self, stmt: Stmt) -> None:
        """Run the initialisation of an empty reduction: each `init`, at 0 of the reduce loops."""
        match stmt:
            case For(var=var, extent=extent, body=body):
                points = 1 if _reduces(stmt) else int(self.value(extent))
                for i in range(points):
                    self.values[var] = i
                    self.only_init(body)
            case Seq(body=body):
                for inner in body:
                    self.only_init(inner)
            case TirBlock():
                self.enter(stmt)
                if stmt.init is not None and self.is_first(stmt.axes):
                    self.run(stmt.init)
            case IfThenElse(condition=condition, then_case=then_case):
                if self.value(condition):
                    self.only_init(then_case)
            case Store() | TensorIntrinsic():
                pass

    def place(self, buffer: Buffer, indices: tuple[TirExpr, ...]) -> tuple[int, ...]:
        at = tuple(int(self.value(i)) for i in indices)
        shape = self.memory[buffer].shape
        room = _room(indices, shape)
        if len(at) != len(shape) or not all(0 <= i < n for i, n in zip(at, room, strict=True)):
            place = ", ".join(map(str, at))
            raise IndexError(f"{buffer.name}[{place}] is outside of {shape_text(shape)}")
        if room == shape:
            return at
        strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        flat = sum(i * stride for i, stride in zip(at, strides, strict=True))
        return tuple(int(i) for i in np.unravel_index(flat, shape))

    def address(self, buffer: Buffer, indices: tuple[TirExpr, ...]) -> Array:
        array = self.memory[buffer]
        if not array.size:
            return array.reshape(-1)
        offset = (
            int(np.ravel_multi_index(self.place(buffer, indices), array.shape)) if indices else 0
        )
        return array.reshape(-1)[offset:]

    # --- expressions ------------------------------------------------------------------

    def value(self, expr: TirExpr) -> Any:
        """A numpy scalar of the expression's dtype, or of the dtype of its arithmetic.

        For ``int64`` it may be a Python int.
        """
        match expr:
            case TirVar():
                return self.values[expr]
            case Imm(value=value, dtype=dtype):
                return value if dtype == "int64" else np.dtype(computed(dtype)).type(value)
            case BufferLoad(buffer=buffer, indices=indices):
                return _computed(self.memory[buffer][self.place(buffer, indices)])
            case Binary(kind=kind, a=a, b=b):
                return _BINARY[kind](self.value(a), self.value(b))
            case DimSymbol(name=name):
                return self.symbols[name]
            case Cast(dtype=dtype, value=value):
                number = converted(np.asarray(self.value(value)), computed(dtype))
                return _computed(number.astype(dtype)[()])
            case Select(condition=condition, a=a, b=b, lazy=True):
                return self.value(a if self.value(condition) else b)
            case Select(condition=condition, a=a, b=b):
                holds, x, y = self.value(condition), self.value(a), self.value(b)
                return x if holds else y
            case Intrinsic(name=name, args=args):
                return _intrinsic(name, expr.dtype, [self.value(a) for a in args])
            case Not(a=a):
                return not self.value(a)


def _reduces(loop: For) -> bool:
    """Whether the variable of `loop` runs over the reduce axis of a block inside."""
    return any(
        axis.kind == "reduce" and loop.var in variables(axis.binding)
        for s in statements(loop.body)
        if isinstance(s, TirBlock)
        for axis in s.axes
    )


def _room(indices: Sequence[TirExpr], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The extent of each index; behind a literal 0 an index runs over both axes as one."""
    room: list[int] = []
    before = 1
    for index, extent in zip(indices, shape, strict=False):
        room.append(before * extent)
        before = before * extent if index == Imm(0, "int64") else 1
    return tuple(room) if len(indices) == len(shape) else shape


def _is_integer_zero(b: Any) -> bool:
    """Whether `b` is an integer 0, by which numpy divides with quotient and remainder 0."""
    return isinstance(b, int | np.integer) and b == 0


_BINARY: Mapping[BinaryKind, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: 0 if _is_integer_zero(b) else a // b,
    "%": lambda a, b: 0 if _is_integer_zero(b) else a % b,
    "min": lambda a, b: np.minimum(a, b),
    "max": lambda a, b: np.maximum(a, b),
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "and": lambda a, b: bool(a) and bool(b),
    "or": lambda a, b: bool(a) or bool(b),
}


def _computed(number: Any) -> Any:
    """`number`, converted from a storage type to the dtype of its arithmetic."""
    name = name_of(number.dtype)
    return np.dtype(computed(name)).type(number) if is_stored(name) else number


def _intrinsic(name: str, dtype: str, args: list[Any]) -> Any:
    return np.dtype(computed(dtype)).type(FUNCTIONS[name](*args))

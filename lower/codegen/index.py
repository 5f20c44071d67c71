"""Index arithmetic that tracks how an index varies over the lanes of a vector.

An index is a number, a scalar ``i64``, a `Ramp` with equally spaced lanes, `Repeated` numbers, or
a vector.  A load is contiguous if its offset is a ramp of step 1.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeGuard

from relax_egraph.lower.emit import vector
from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import I32, I64

Scalar: TypeAlias = int | Value


@dataclass(frozen=True, slots=True)
class Ramp:
    """``base + step·k`` in lane ``k``; `step` is never the constant 0.

    `base` is known to be a multiple of `multiple`.
    """

    base: Scalar
    step: Scalar
    multiple: int = 1


@dataclass(frozen=True, slots=True)
class Repeated:
    """``base + k // times`` in lane ``k``."""

    base: Scalar
    times: int


Index: TypeAlias = int | Value | Ramp | Repeated


def materialize(f: Function, index: Index, lanes: int) -> Value:
    """`index` as a value: one that varies becomes a vector of `lanes`, a number a literal."""
    if not isinstance(index, Ramp | Repeated):
        return f.index(index)
    numbers = vector.lane_numbers(f, I64.of(lanes))
    if isinstance(index, Repeated):
        return f.binary("sdiv", numbers, index.times) + index.base
    spaced = numbers if index.step == 1 else numbers * index.step
    return spaced + index.base


def narrowed(f: Function, ramp: Ramp, lanes: int) -> Value:
    """`ramp` as a vector of ``i32``, computed in 32 bits throughout."""
    numbers = vector.lane_numbers(f, I32.of(lanes))
    base, step = (f.convert("trunc", f.index(n), I32) for n in (ramp.base, ramp.step))
    return (numbers if ramp.step == 1 else numbers * step) + base


def combine(f: Function, kind: Literal["+", "-", "*"], a: Index, b: Index, lanes: int) -> Index:
    """``a <kind> b``, as a ramp if possible."""
    if isinstance(a, int) and isinstance(b, int):
        return a + b if kind == "+" else a - b if kind == "-" else a * b
    if kind == "*" and 0 in (a, b):
        return 0
    if kind == "*" and 1 in (a, b):
        return a if b == 1 else b
    if (kind == "+" and a == 0) or (kind in "+-" and b == 0):
        return b if kind == "+" and a == 0 else a
    ramps = isinstance(a, Ramp) or isinstance(b, Ramp)
    if kind != "*" and ramps and _is_spaced(a) and _is_spaced(b):
        (base, step), (other, by) = _parts(a), _parts(b)
        return _ramp(_scalar(f, kind, base, other), _scalar(f, kind, step, by))
    if kind == "+" and isinstance(a, Repeated) and _is_scalar(b):
        return Repeated(_scalar(f, "+", a.base, b), a.times)
    if kind == "+" and isinstance(b, Repeated) and _is_scalar(a):
        return Repeated(_scalar(f, "+", a, b.base), b.times)
    if isinstance(a, Ramp) and _is_scalar(b):
        return _ramp(_scalar(f, "*", a.base, b), _scalar(f, "*", a.step, b))
    if isinstance(b, Ramp) and _is_scalar(a):
        return _ramp(_scalar(f, "*", a, b.base), _scalar(f, "*", a, b.step))
    return f.binary(kind, materialize(f, a, lanes), materialize(f, b, lanes))


def divided(f: Function, ramp: Ramp, divisor: int, lanes: int) -> Repeated | None:
    """``ramp // divisor`` if neighbouring lanes have equal results, `divisor` at a time."""
    if ramp.step != 1 or ramp.multiple % divisor or lanes % divisor:
        return None
    base = ramp.base
    quotient = base // divisor if isinstance(base, int) else f.binary("sdiv", base, divisor)
    return Repeated(quotient, divisor)


def _scalar(f: Function, kind: Literal["+", "-", "*"], a: Scalar, b: Scalar) -> Scalar:
    result = combine(f, kind, a, b, 1)
    assert not isinstance(result, Ramp | Repeated)
    return result


def _is_scalar(index: Index) -> TypeGuard[Scalar]:
    return isinstance(index, int) or (isinstance(index, Value) and index.type.lanes == 1)


def _is_spaced(index: Index) -> TypeGuard[Scalar | Ramp]:
    return isinstance(index, Ramp) or _is_scalar(index)


def _parts(index: Scalar | Ramp) -> tuple[Scalar, Scalar]:
    return (index.base, index.step) if isinstance(index, Ramp) else (index, 0)


def _ramp(base: Scalar, step: Scalar) -> Index:
    return base if step == 0 else Ramp(base, step)

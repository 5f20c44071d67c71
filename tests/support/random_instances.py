"""A step that applies any operator: a random instance on values of the program.

The instances are from `tests.support.ops`, so new operators with instances take part.  A program
has parameters for a few of them.  Other instances are drawn until an operand resembles a tensor of
the program; its other extents, operands and numbers are then values of the program that fit, or
that can be converted to fit, or constants.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Constant, Expr, PrimValue, Tuple, TupleGetItem, shape
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    TupleStructInfo,
    tensor,
)
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Case, Draw
from tests.support.random_writer import (
    Array,
    Extents,
    Rejected,
    Writer,
    concrete,
    dtype_of,
    shape_of,
)

NAMES = tuple(name for name in SAMPLERS if name != "image.non_max_suppression")
"""Operators where noise decides the number and selection of boxes."""

ATTEMPTS = 20
"""The maximal instances that are drawn until one fits."""

OF_EXACT_NUMBERS = frozenset({"unique", "nonzero"})
"""Operators whose result shape depends on numbers."""

AS_DRAWN: Mapping[str, frozenset[int]] = {"bucketize": frozenset({1})}
"""The operands that must be constants, by operator, since they restrict their values."""


def instance(w: Writer) -> object:
    """Apply an operator; tensor and shape parts of its result may be read."""
    planned = [p for p in w.planned if all(dims.symbols(d) <= w.bound for d in p[2].values())]
    if planned and w.chance(0.5):
        name, case, extents = w.choice(planned)
        return _apply(w, name, case, [_operand(w, o, extents) for o in case.operands])
    name = w.choice(NAMES)
    if OPS[name].elementwise:
        case = _case(w, name)
        return _apply(w, name, case, _broadcastable(w, case))
    case, extents = _fitting(w, name)
    return _apply(w, name, case, [_operand(w, o, extents) for o in case.operands])


def plan(w: Writer) -> list[tuple[Shape, str]]:
    """Choose an instance that the program may apply, and the parameters that it needs."""
    name = w.choice(NAMES)
    case = _case(w, name)
    extents = _others(w, case, {})
    w.planned.append((name, case, extents))
    arrays = list(_arrays(case.operands))
    w.random.shuffle(arrays)
    return [(_known(a.shape, extents), a.dtype.name) for a in arrays[:3]]


def _apply(w: Writer, name: str, case: Case, operands: Sequence[Expr]) -> object:
    kept = AS_DRAWN.get(name, frozenset())
    arguments = [
        Constant(drawn) if k in kept else operand
        for k, (drawn, operand) in enumerate(zip(case.operands, operands, strict=True))
    ]
    value = call(name, *arguments, **case.attrs)
    result = w.emit(value)
    if not isinstance(value.struct_info, TupleStructInfo):
        return result
    fields = range(len(value.struct_info.fields))
    return [w.emit(TupleGetItem(result, k)) for k in fields if w.chance(0.8)]


def shape_value(w: Writer) -> Expr:
    """Give a tensor the extents of a computed shape, or convert the shape to a tensor."""
    if not w.shapes:
        raise Rejected
    target = w.choice(w.shapes)
    if w.chance(0.4):
        return w.op("shape_to_tensor", target)
    info, extents = target.struct_info, w.sample(target)
    assert isinstance(info, ShapeStructInfo)
    fit = [v for v in w.known if _ends_alike(w.sample(v).shape, extents)]
    x = w.choice(fit) if fit else w.constant((), w.dtype)
    return w.emit(call(w.choice(("broadcast_to", "collapse_sum_to")) if fit else "full", x, target))


def _case(w: Writer, name: str) -> Case:
    """An instance whose result shape does not depend on noise."""
    draw = Draw(w.random)
    while True:
        case = SAMPLERS[name](draw)
        arrays = list(_arrays(case.operands))
        if name not in OF_EXACT_NUMBERS or not is_float(arrays[0].dtype.name):
            return case


def _broadcastable(w: Writer, case: Case) -> list[Expr]:
    """Operands of the dtypes of `case` that broadcast, with the shape of one of the program."""
    dtypes = [o.dtype.name for o in case.operands]
    unknown = [v for v in w.unknown if w.sample(v).dtype.name in dtypes]
    if unknown and w.chance(0.3):
        x = w.choice(unknown)
        first = dtypes.index(w.sample(x).dtype.name)
        return [x if k == first else w.constant((), dtype) for k, dtype in enumerate(dtypes)]
    fit = [v for v in w.known if dtype_of(v) in dtypes]
    if not fit:
        raise Rejected
    x = w.choice(fit)
    first = w.choice([k for k, dtype in enumerate(dtypes) if dtype == dtype_of(x)])
    return [x if k == first else w.beside(x, dtype) for k, dtype in enumerate(dtypes)]


def _fitting(w: Writer, name: str) -> tuple[Case, Extents]:
    """An instance, with one operand like a tensor of the program if possible."""
    for _ in range(ATTEMPTS):
        case = _case(w, name)
        arrays = list(_arrays(case.operands))
        matches = [e for a in arrays for v in w.known if (e := _alike(w, v, a)) is not None]
        if matches or not arrays:
            extents = w.choice(matches) if matches else {}
            return case, extents | _others(w, case, extents)
    case = _case(w, name)
    return case, _others(w, case, {})


def _arrays(operands: Sequence[Any]) -> Iterator[Array]:
    for operand in operands:
        if isinstance(operand, np.ndarray):
            yield operand
        elif isinstance(operand, tuple):
            yield from _arrays(operand)


def _alike(w: Writer, value: Expr, array: Array) -> Extents | None:
    """The extents of `array`, if `value` has its shape and dtype."""
    sample = w.sample(value)
    if not _is_like(sample, array):
        return None
    known = shape_of(value)
    extents = dict(zip(array.shape, known, strict=True))
    agree = all(extents[a] == d for a, d in zip(array.shape, known, strict=True))
    return extents if agree and extents.get(1, 1) == 1 else None


def _is_like(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype


def _others(w: Writer, case: Case, known: Extents) -> Extents:
    """Symbols for some of the extents of `case` that are not in `known`."""
    others: Extents = {}
    for extent in sorted({d for a in _arrays(case.operands) for d in a.shape} - {1, *known}):
        same = [d for d in w.extents if concrete((d,), w.sizes) == (extent,)]
        if same and w.chance(0.6):
            others[extent] = w.choice(same)
    return others


def _operand(w: Writer, operand: Any, extents: Extents) -> Expr:
    if isinstance(operand, np.ndarray):
        return _tensor(w, operand, _known(operand.shape, extents))
    if isinstance(operand, tuple):
        if any(isinstance(o, np.ndarray) for o in operand):
            return Tuple(tuple(_operand(w, o, extents) for o in operand))
        return shape(_known(operand, extents))
    if isinstance(operand, float):
        return PrimValue(operand, "float64")
    number = int(operand)
    return PrimValue(extents.get(number, number) if w.chance(0.5) else number)


def _known(whole: tuple[int, ...], extents: Extents) -> Shape:
    return tuple(extents.get(d, d) for d in whole)


def _tensor(w: Writer, like: Array, known: Shape) -> Expr:
    """A value of the dtype of `like` and the shape `known`."""
    dtype = like.dtype.name
    unknown = [v for v in w.unknown if _is_like(w.sample(v), like)]
    if unknown and w.chance(0.5):
        return w.choice(unknown)
    fit = [v for v in w.known if v.struct_info == tensor(known, dtype)]
    if fit and w.chance(0.8):
        return w.choice(fit)
    if w.chance(0.7):
        converted = _converted(w, dtype, known)
        if converted is not None:
            return converted
    if all(isinstance(d, int) for d in known):
        return Constant(like)
    first = tuple(slice(None) if isinstance(d, int) else slice(0, 1) for d in known)
    return w.op("broadcast_to", Constant(like[first].copy()), shape(known))


def _converted(w: Writer, dtype: str, known: Shape) -> Expr | None:
    """A value of the program, converted to the dtype and shape."""
    same = [v for v in w.known if dtype_of(v) == dtype]
    other_dtype = [v for v in w.known if shape_of(v) == known and not _hazardous(w, v, dtype)]
    smaller = [v for v in same if _ends_alike(shape_of(v), known)]
    longer = [v for v in same if _covers(shape_of(v), known)]
    size = dims.product(known)
    regrouped = [v for v in same if dims.product(shape_of(v)) == size and shape_of(v) != known]
    ways = [way for way in (other_dtype, smaller, longer, regrouped) if way]
    if not ways:
        return None
    way = w.choice(ways)
    x = w.choice(way)
    if way is other_dtype:
        return w.op("astype", x, dtype=dtype)
    if way is smaller:
        return w.op("broadcast_to", x, shape(known))
    if way is regrouped:
        return w.op("reshape", x, shape(known))
    axes = [k for k, d in enumerate(known) if d != shape_of(x)[k]]
    spare = [dims.sub(shape_of(x)[k], known[k]) for k in axes]
    begin: list[Dim] = [w.random.randint(0, int(d)) for d in spare]
    end = [dims.add(first, known[k]) for first, k in zip(begin, axes, strict=True)]
    return w.op("strided_slice", x, shape(begin), shape(end), axes=tuple(axes))


def _hazardous(w: Writer, x: Expr, dtype: str) -> bool:
    """Whether conversion of numbers like those of `x` to `dtype` is undefined."""
    have = dtype_of(x)
    floats = is_float(have), is_float(dtype)
    if not any(floats) or "bool" in (have, dtype) or all(floats):
        return False
    return w.extreme or (floats[0] and bool(np.any(np.abs(w.sample(x)) > 100)))


def _covers(have: Shape, want: Shape) -> bool:
    if len(have) != len(want) or have == want:
        return False
    pairs = list(zip(have, want, strict=True))
    return all(a == b or (isinstance(a, int) and isinstance(b, int) and a > b) for a, b in pairs)


def _ends_alike(have: Shape, want: Shape) -> bool:
    """Whether a tensor of the extents `have` broadcasts to `want`."""
    kept = want[len(want) - len(have) :]
    return len(have) <= len(want) and all(a in (1, b) for a, b in zip(have, kept, strict=True))

"""The elements of operators' results: by the definitions of their loops, or by a formula here.

The loops of views, joins, slices and windows take extents and attributes apart that are symbols in
a proof; those operators have a formula.  `tests/prove/test_operators.py` compares each with numpy.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import Any, TypeAlias

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import INTEGERS, is_float
from relax_egraph.ir.op import Op
from relax_egraph.ir.ops.slices import slice_inbound, slice_of
from relax_egraph.ir.struct_info import TensorStructInfo, TupleStructInfo
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.prove import functions, running
from relax_egraph.prove.algebra import cast, chosen
from relax_egraph.prove.conditions import Junction, Nonnegative
from relax_egraph.prove.digits import Indices, digit, position_of
from relax_egraph.prove.layouts import ON_IMAGES, application, canonical, laid_out, others_in
from relax_egraph.prove.polynomial import ZERO, Polynomial, of, of_dim, product
from relax_egraph.prove.reading import NotExpressible, Reader
from relax_egraph.prove.reals import as_float
from relax_egraph.prove.sums import Sum, apply
from relax_egraph.prove.tensors import Tensor, counted
from relax_egraph.tir import te
from relax_egraph.tir.tensor import Tensor as TeTensor

Element: TypeAlias = Callable[[Indices], Sum]
Formula: TypeAlias = Callable[..., Element]


def read(
    reader: Reader, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any], info: Any
) -> Any:
    """The result of `op`: a tensor, or a tuple of tensors; raises `NotExpressible`."""
    if op.name in FORMULAS and isinstance(info, TensorStructInfo):
        assert info.dims is not None
        at = FORMULAS[op.name](reader, info, *operands, **attrs)
        return Tensor(info.dims, str(info.dtype), at)
    if op.name in ON_IMAGES:
        return _on_image(reader, op, operands, attrs, info)
    if op.name == "split":
        return _split(info, *operands, **attrs)
    return _by_loops(reader, op, operands, attrs)


def _by_loops(reader: Reader, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    loops = LEGALIZE.get(op.name)
    if loops is None:
        raise NotExpressible(f"R.{op.name} has no expression")
    known: dict[TeTensor, Tensor] = {}

    def placeholder(value: Any) -> Any:
        if isinstance(value, Tensor):
            made = te.placeholder(value.shape, value.dtype, f"operand{len(known)}")
            known[made] = value
            return made
        if isinstance(value, tuple) and value and isinstance(value[0], Tensor):
            return tuple(map(placeholder, value))
        value = getattr(value, "value", value)
        return reader.numbers.constant(value) if isinstance(value, float) else value

    present = list(operands)
    while present and present[-1] is None:
        present.pop()
    try:
        result = loops(*map(placeholder, present), **plain(reader, attrs))
    except NotLowerable as problem:
        raise NotExpressible(f"R.{op.name}: {problem}") from None
    except TypeError:
        raise NotExpressible(f"R.{op.name} of symbolic attributes has no expression") from None
    if isinstance(result, TeTensor):
        return reader.tensor(result, known)
    if isinstance(result, Sequence):
        return tuple(reader.tensor(t, known) for t in result)
    raise NotExpressible(f"R.{op.name} has loops, but no expression")


def plain(reader: Reader, attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with floats that stand for symbolic numbers."""
    return {k: _plain(reader, v) if isinstance(v, Sum) else v for k, v in attrs.items()}


def _plain(reader: Reader, value: Sum) -> float:
    known = as_float(value)
    return reader.numbers.of(value) if known is None else reader.numbers.constant(float(known))


def _number(value: Any) -> Sum:
    return value if isinstance(value, Sum) else functions.real(float(value))


def _clip(reader: Reader, info: TensorStructInfo, x: Tensor, *, min: Any, max: Any) -> Element:
    """``x`` between bounds, which are clamped to the range of an integer dtype."""
    low, high = _number(min), _number(max)
    if not is_float(x.dtype):
        low, high = (apply("clamped", bound, dtype=x.dtype) for bound in (low, high))

    def at(index: Indices) -> Sum:
        above = reader.algebra.arithmetic("max", x.at(index), low, x.dtype)
        return reader.algebra.arithmetic("min", above, high, x.dtype)

    return at


def _on_image(
    reader: Reader, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any], info: Any
) -> Tensor:
    """An unknown function of the operands in canonical order, at an index in canonical order."""
    how = application(op, attrs)
    tensors = [v for v in operands if isinstance(v, Tensor)]
    orders = (how.data, how.kernel, *(None for _ in tensors))
    whole = [_whole(reader, t, o) for t, o in zip(tensors, orders, strict=False)]
    name = f"{how.others} {others_in(operands)}"

    def at(index: Indices) -> Sum:
        return apply(name, *whole, *map(counted, canonical(index, how.out)))

    return Tensor(info.dims, str(info.dtype), at)


def _whole(reader: Reader, x: Tensor, order: tuple[int, ...] | None) -> Sum:
    """All elements of a tensor, each with its index in canonical order."""

    def element(index: Indices) -> Sum:
        return apply("at", x.at(laid_out(index, order)), *map(counted, index), dtype=x.dtype)

    return reader.folded("tensor", x.dtype, canonical(x.extents, order), element)


# --------------------------------------------------------------------------------------- formulas


def _view(reader: Reader, info: TensorStructInfo, x: Tensor, *_: Any, **__: Any) -> Element:
    """The elements in row-major order."""
    shape = tuple(map(of_dim, info.dims or ()))

    def at(index: Indices) -> Sum:
        position = position_of(index, shape)
        return x.at([digit(position, x.extents, k) for k in range(len(x.extents))])

    return at


def _broadcast_to(reader: Reader, info: TensorStructInfo, x: Tensor, shape: Any) -> Element:
    added = len(shape) - len(x.shape)
    ones = [d == 1 for d in x.shape]
    for one, a, b in zip(ones, x.shape, shape[added:], strict=True):
        if not one and not dims.equal(a, b) and not reader.solver.holds(_equal(a, b)):
            raise NotExpressible("R.broadcast_to: whether an extent is 1 is not decided")

    def at(index: Indices) -> Sum:
        return x.at([ZERO if one else i for one, i in zip(ones, index[added:], strict=True)])

    return at


def _equal(a: dims.Dim, b: dims.Dim) -> Any:
    difference = of_dim(a) - of_dim(b)
    return Junction("and", (Nonnegative(difference), Nonnegative(-difference)))


def _shard(reader: Reader, info: TensorStructInfo, x: Tensor, *, parts: Any, axis: int) -> Element:
    """A part begins behind those before it."""
    place = axis % len(x.shape)
    extents = [of_dim((info.dims or ())[k]) for k in (0, place + 1)]

    def at(index: Indices) -> Sum:
        part, *inside = index
        inside[place] = position_of([part, inside[place]], extents)
        return x.at(inside)

    return at


def _all_gather(reader: Reader, info: TensorStructInfo, x: Tensor, *, axis: int) -> Element:
    place = axis % (len(x.shape) - 1)
    extents = [x.extents[k] for k in (0, place + 1)]

    def at(index: Indices) -> Sum:
        part, inside = (digit(index[place], extents, k) for k in range(2))
        return x.at([part, *index[:place], inside, *index[place + 1 :]])

    return at


def _concat(reader: Reader, info: TensorStructInfo, tensors: Any, *, axis: int | None) -> Element:
    flat = axis is None
    place = 0 if axis is None else axis % len(tensors[0].shape)
    extents = [product(t.extents) if flat else t.extents[place] for t in tensors]
    ends = list(accumulate(extents, initial=ZERO))

    def at(index: Indices) -> Sum:
        last = len(tensors) - 1
        inside = (
            k for k in range(last) if reader.decide(Nonnegative(ends[k + 1] - 1 - index[place]))
        )
        k = next(inside, last)
        t, i = tensors[k], index[place] - ends[k]
        if flat:
            return t.at([digit(i, t.extents, n) for n in range(len(t.extents))])
        return t.at([*index[:place], i, *index[place + 1 :]])

    return at


def _stack(reader: Reader, info: TensorStructInfo, tensors: Any, *, axis: int) -> Element:
    place = axis % (len(tensors[0].shape) + 1)

    def at(index: Indices) -> Sum:
        rest = [*index[:place], *index[place + 1 :]]
        last = len(tensors) - 1
        inside = (k for k in range(last) if reader.decide(Nonnegative(of(k) - index[place])))
        return tensors[next(inside, last)].at(rest)

    return at


def _split(
    info: TupleStructInfo, x: Tensor, *, indices_or_sections: Any, axis: int
) -> tuple[Tensor, ...]:
    place = axis % len(x.shape)
    shapes = [f.dims or () for f in info.fields if isinstance(f, TensorStructInfo)]
    starts = list(accumulate((of_dim(s[place]) for s in shapes), initial=ZERO))

    def part(start: Polynomial) -> Callable[[Indices], Sum]:
        return lambda i: x.at([*i[:place], i[place] + start, *i[place + 1 :]])

    pairs = zip(shapes, starts, strict=False)
    return tuple(Tensor(shape, x.dtype, part(start)) for shape, start in pairs)


def _strided_slice(
    reader: Reader,
    info: TensorStructInfo,
    x: Tensor,
    begin: Any,
    end: Any,
    *,
    axes: tuple[int, ...],
    strides: tuple[int, ...] | None,
    assume_inbound: bool,
) -> Element:
    starts: dict[int, tuple[Polynomial, Polynomial]] = {}
    cut = slice_inbound if assume_inbound else slice_of
    for n, (axis, first, last) in enumerate(zip(axes, begin, end, strict=True)):
        step = strides[n] if strides else 1
        place = axis % len(x.shape)
        known = cut(x.shape[place], first, last, step)
        if known is None:
            raise NotExpressible("R.strided_slice: a position is not decided")
        starts[place] = of_dim(known[0]), of_dim(step)

    def at(index: Indices) -> Sum:
        return x.at(
            [i * starts[k][1] + starts[k][0] if k in starts else i for k, i in enumerate(index)]
        )

    return at


def _pad(
    reader: Reader,
    info: TensorStructInfo,
    data: Tensor,
    *,
    pad_width: tuple[int, ...],
    pad_mode: str,
    pad_value: float,
) -> Element:
    if pad_mode != "constant":
        raise NotExpressible(f'R.nn.pad in the mode "{pad_mode}" has no expression')
    before = [of_dim(w) for w in pad_width[::2]]
    fill = _number(pad_value)
    if data.dtype not in INTEGERS or not reader.wholes.has(data.dtype, fill):
        fill = cast(reader.algebra, fill, "float64", data.dtype)

    def at(index: Indices) -> Sum:
        inner = [i - b for i, b in zip(index, before, strict=True)]
        sides = (
            c
            for i, extent in zip(inner, data.extents, strict=True)
            for c in (Nonnegative(i), Nonnegative(extent - 1 - i))
        )
        if all(map(reader.decide, sides)):
            return data.at(inner)
        return fill

    return at


def _flip(reader: Reader, info: TensorStructInfo, data: Tensor, *, axis: int) -> Element:
    place = axis % len(data.shape)

    def at(index: Indices) -> Sum:
        reverse = data.extents[place] - 1 - index[place]
        return data.at([*index[:place], reverse, *index[place + 1 :]])

    return at


def _astype(reader: Reader, info: TensorStructInfo, x: Tensor, *, dtype: str) -> Element:
    return lambda i: cast(reader.algebra, x.at(i), x.dtype, dtype)


def _full(
    reader: Reader, info: TensorStructInfo, _: Any, fill_value: Tensor, *, dtype: str | None
) -> Element:
    """The one element of `fill_value`, in another dtype."""
    index = [ZERO] * len(fill_value.shape)
    return lambda _: cast(reader.algebra, fill_value.at(index), fill_value.dtype, str(info.dtype))


def _masked_fill(
    reader: Reader, info: TensorStructInfo, x: Tensor, mask: Tensor, *, value: Any
) -> Element:
    if len(x.shape) != len(mask.shape) or not all(map(dims.equal, x.shape, mask.shape)):
        raise NotExpressible("R.masked_fill of a mask of another shape")
    return lambda i: chosen(mask.at(i), _number(value), x.at(i), x.dtype)


def _log_add_exp(reader: Reader, info: TensorStructInfo, x: Tensor, y: Tensor) -> Element:
    return lambda i: reader.algebra.function("log_add_exp", [x.at(i), y.at(i)], x.dtype)


FORMULAS: Mapping[str, Formula] = {
    "reshape": _view,
    "flatten": _view,
    "expand_dims": _view,
    "squeeze": _view,
    "nn.batch_flatten": _view,
    "broadcast_to": _broadcast_to,
    "dist.shard": _shard,
    "dist.all_gather": _all_gather,
    "concat": _concat,
    "stack": _stack,
    "strided_slice": _strided_slice,
    "nn.pad": _pad,
    "flip": _flip,
    "log_add_exp": _log_add_exp,
    "astype": _astype,
    "full": _full,
    "full_like": _full,
    "clip": _clip,
    "masked_fill": _masked_fill,
    "nn.rotary_embedding": running.rotary_embedding,
    "cumsum": running.cumsum,
}
"""The formulas by operator."""

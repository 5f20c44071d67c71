"""The steps of a random program, one function for each kind."""

from collections.abc import Callable

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call, call_packed
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_signed
from relax_egraph.ir.expr import Call, Constant, Expr, Tuple, TupleGetItem, shape
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import (
    Shape,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from tests.support.random_formulas import (
    centred,
    gelu_written_out,
    nothing,
    sigmoid_written_out,
    silu_written_out,
    softmax_written_out,
)
from tests.support.random_instances import instance, shape_value
from tests.support.random_loop_calls import call_of_loops
from tests.support.random_networks import part_of_network
from tests.support.random_writer import Rejected, Writer, dtype_of, shape_of

UNARY = ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "sigmoid")
ACTIVATIONS = ("nn.relu", "nn.gelu", "nn.gelu_tanh", "nn.silu")
BINARY = ("add", "add", "subtract", "multiply", "multiply", "maximum", "minimum")
COMPARISONS = ("greater", "less", "equal")
CASTS = ("float32", "float32", "float64", "int32", "int64", "bool", "int8", "uint8", "uint64")

N, M = dims.symbol("n"), dims.symbol("m")
SPLIT = dims.mul(N, 2)

MAYBE: dict[Dim, Dim] = {SPLIT: dims.mul(N, M), dims.mul(N, M): SPLIT, M: dims.add(N, -1)}
"""Extents that are equal for the sample's sizes, but not for all."""

PARITY = dims.mod(N, 2)
"""1 for the sample's sizes."""

Step = Callable[[Writer], object]


def unary(w: Writer) -> Expr:
    name, x = w.choice((*UNARY, *ACTIVATIONS)), w.tensor("f")
    if name in ("log", "sqrt", "rsqrt") and w.chance(0.7):
        x = w.op("abs", x)
    return w.op(name, x)


def unary_of_any(w: Writer) -> Expr:
    return w.op(w.choice(("abs", "negative", "nn.relu")), w.tensor("fiu"))


def binary(w: Writer) -> Expr:
    x = w.tensor()
    operands = [x, w.beside(x)]
    w.random.shuffle(operands)
    return w.op(w.choice(BINARY), *operands)


def float_binary(w: Writer) -> Expr:
    x = w.tensor("f")
    if w.chance(0.3):  # restricted, since 1 to the power NaN is 1
        return w.op("power", w.op("abs", x), w.constant(w.part(shape_of(x)), dtype_of(x)))
    operands = [x, w.beside(x)]
    w.random.shuffle(operands)
    return w.op("divide", *operands)


def fma(w: Writer) -> Expr:
    x = w.tensor()
    return w.op("ewise_fma", x, w.beside(x), w.beside(x))


def comparison(w: Writer) -> Expr:
    x = w.tensor()
    return w.op(w.choice(COMPARISONS), x, w.beside(x))


def choice_by_condition(w: Writer) -> Expr:
    condition, x = w.tensor("b"), w.tensor()
    return w.op("where", condition, x, w.beside(x))


def cast(w: Writer) -> Expr:
    x, dtype = w.tensor(), w.choice(CASTS)
    to_or_from_float = _is_float(x) != dtype.startswith("float")
    if w.extreme and to_or_from_float and "bool" not in (dtype, dtype_of(x)):
        raise Rejected  # integers have no NaN, and their squares overflow
    if not is_signed(dtype) and dtype != "bool":
        x = w.op("abs", x) if dtype_of(x) != "bool" else x
    return w.op("astype", x, dtype=dtype)


# --- along axes -------------------------------------------------------------------------


def some_axes(w: Writer, rank: int) -> tuple[int, ...]:
    axes = w.random.sample(range(rank), w.random.randint(min(rank, 1), rank))
    return tuple(a - rank if w.chance(0.3) else a for a in axes)


def reduction(w: Writer) -> Expr:
    x = w.tensor()
    name = w.choice(("sum", "sum", "max", "min", "mean") if _is_float(x) else ("sum", "max", "min"))
    rank = len(shape_of(x))
    axis = some_axes(w, rank) if w.chance(0.8) else None
    result = w.op(name, x, axis=axis, keepdims=w.chance(0.5))
    if w.chance(0.4) and axis is not None and len(shape_of(result)) == rank - len(axis):
        return w.op("expand_dims", result, axis=tuple(sorted(a % rank for a in axis)))
    return result


def softmax(w: Writer) -> Expr:
    x = w.tensor("f", least=1)
    rank = len(shape_of(x))
    return w.op("nn.softmax", x, axis=w.random.randint(-rank, rank - 1))


def matmul(w: Writer) -> Expr:
    x = w.tensor("f" if w.chance(0.8) else "fiub", least=1)
    inner = shape_of(x)[-1]
    fit = [v for v in w.known if dtype_of(v) == dtype_of(x) and _rows(v) == inner]
    if fit and w.chance(0.6):
        return w.op("matmul", x, w.choice(fit))
    if not isinstance(inner, int):
        swapped = [v for v in w.known if dtype_of(v) == dtype_of(x) and len(shape_of(v)) > 1]
        swapped = [v for v in swapped if shape_of(v)[-1] == inner]
        return w.op("matmul", x, _last_two_swapped(w, w.choice(swapped or [x])))
    columns = w.choice((1, 3, 8, 16, 19))
    batch = tuple(d for d in shape_of(x)[:-2] if isinstance(d, int)) if w.chance(0.2) else ()
    weight = w.choice([(inner,), (inner, columns), (inner, columns), (*batch, inner, columns)])
    data = w.numpy.standard_normal(weight) * 2
    return w.op("matmul", x, Constant(data.astype(dtype_of(x))))


def _rows(y: Expr) -> Dim | None:
    known = shape_of(y)
    return known[-2] if len(known) > 1 else known[0] if known else None


def _last_two_swapped(w: Writer, x: Expr) -> Expr:
    rank = len(shape_of(x))
    if rank < 2:
        return x
    return w.op("permute_dims", x, axes=(*range(rank - 2), rank - 1, rank - 2))


# --- movement ---------------------------------------------------------------------------


def permute(w: Writer) -> Expr:
    x = w.tensor(least=w.choice((0, 2, 2)))
    rank = len(shape_of(x))
    axes = w.random.sample(range(rank), rank)
    signed = tuple(a - rank if w.chance(0.2) else a for a in axes)
    return w.op("permute_dims", x, axes=signed if w.chance(0.7) else None)


def reshape(w: Writer) -> Expr:
    x = w.tensor()
    return w.op("reshape", x, shape(_regrouped(w, shape_of(x))))


def _regrouped(w: Writer, extents: Shape) -> Shape:
    """A shape of as many elements: axes are merged, split and added, in order."""
    extents_: list[Dim] = []
    for d in extents:
        if extents_ and w.chance(0.4):
            extents_[-1] = dims.mul(extents_[-1], d)
        elif isinstance(d, int) and w.chance(0.4):
            factors = [f for f in range(1, d + 1) if d % f == 0] or [1]
            first = w.choice(factors)
            extents_ += [first, d // first]
        elif d == SPLIT and w.chance(0.7):
            extents_ += w.choice([[2, N], [N, 2]])
        else:
            extents_.append(d)
        extents_ += [1] if w.chance(0.1) else []
    return tuple(extents_) if len(extents_) <= 4 else extents


def flatten(w: Writer) -> Expr:
    return w.op("flatten", w.tensor())


def expand(w: Writer) -> Expr:
    x = w.tensor()
    count = w.choice((1, 1, 2))
    rank = len(shape_of(x)) + count
    if rank > 4:
        raise Rejected
    places = w.random.sample(range(rank), count)
    return w.op("expand_dims", x, axis=tuple(a - rank if w.chance(0.3) else a for a in places))


def squeeze(w: Writer) -> Expr:
    fit = [v for v in w.known if 1 in shape_of(v)]
    if not fit:
        raise Rejected
    x = w.choice(fit)
    ones = [k for k, d in enumerate(shape_of(x)) if d == 1]
    return w.op("squeeze", x, axis=tuple(w.random.sample(ones, w.random.randint(1, len(ones)))))


def broadcast(w: Writer) -> Expr:
    x = w.tensor()
    whole = tuple(w.choice((d, w.shape(1, 1)[0])) if d == 1 else d for d in shape_of(x))
    new = w.shape(0, 1) if len(whole) < 4 else ()
    return w.op("broadcast_to", x, shape((*new, *whole)))


# --- values of partially known type -----------------------------------------------------


def unknown(w: Writer) -> object:
    """A value of unknown shape, most often cast later."""
    kind = w.choice(("unique", "unique", "packed", "dynamic"))
    if kind == "unique":
        return w.emit(call("unique", w.tensor("iub")))
    if kind == "packed":
        x = w.tensor()
        known = tensor(None, dtype_of(x), w.choice((-1, len(shape_of(x)))))
        return w.emit(call_packed("test.doubled", [x], [known], pure=True))
    x = w.choice(w.unknown) if w.unknown else w.tensor("iub")
    info = x.struct_info
    if not isinstance(info, TensorStructInfo) or info.dtype in ("bool", None):
        raise Rejected
    name = w.choice(("nn.relu", "abs", "add", "sum", "flatten"))
    return w.emit(call(name, x, x) if name == "add" else call(name, x))


def cast_unknown(w: Writer) -> Expr:
    """Cast a value of unknown shape, to new or known symbols."""
    if not w.unknown:
        raise Rejected
    x = w.unknown.pop()
    info = x.struct_info
    assert isinstance(info, TensorStructInfo)
    extents: list[Dim] = []
    for extent in w.sample(x).shape:
        name = f"u{len(w.sizes)}"
        w.sizes[name] = extent
        extents.append(dims.symbol(name))
    return w.cast(x, tensor(tuple(extents), info.dtype))


def packed(w: Writer) -> object:
    x = w.tensor()
    if w.chance(0.6):
        return w.emit(call_packed("test.doubled", [x], [x.struct_info], pure=True))
    known = shape_of(x)
    if not known or not isinstance(known[0], int):
        raise Rejected
    first = known[0] // 2
    parts = tuple(tensor((e, *known[1:]), dtype_of(x)) for e in (first, known[0] - first))
    both = w.emit(call_packed("test.halves", [x], [TupleStructInfo(parts)], pure=True))
    return [w.emit(TupleGetItem(both, index)) for index in (0, 1) if w.chance(0.8)]


def pair(w: Writer) -> Expr:
    both = w.emit(Tuple((w.tensor(), w.tensor())))
    return w.emit(TupleGetItem(both, w.choice((0, 1))))


def shape_as_value(w: Writer) -> Expr:
    x = w.tensor()
    target = w.emit(Call(OPS["shape_of"], (w.op("abs", x) if dtype_of(x) != "bool" else x,)))
    return w.op("reshape", x, target)


def unproven(w: Writer) -> Expr:
    """Claim that two extents are equal that are equal for some sizes only."""
    fit = [v for v in w.known if any(d in MAYBE for d in shape_of(v))]
    if not fit or not w.bound.issuperset(("n", "m")):
        raise Rejected
    x = w.choice(fit)
    other = shape(tuple(MAYBE.get(d, d) for d in shape_of(x)))
    match w.choice(("reshape", "broadcast_to", "cast", "squeeze")):
        case "cast":
            return w.cast(x, tensor(other.values, dtype_of(x)))
        case "squeeze":
            return w.op("squeeze", w.op("reshape", x, shape((*shape_of(x), PARITY))), axis=-1)
        case name:
            return w.op(name, x, other)


STEPS: tuple[tuple[int, Step], ...] = (
    *((8, f) for f in (unary, binary)),
    *((4, f) for f in (reduction, matmul, float_binary)),
    *((3, f) for f in (permute, reshape, broadcast, unary_of_any, comparison, cast)),
    *((2, f) for f in (softmax, fma, expand, squeeze, choice_by_condition, nothing)),
    *((1, f) for f in (flatten, unproven, unknown, unknown, packed, pair, shape_as_value)),
    *((1, f) for f in (softmax_written_out, sigmoid_written_out, silu_written_out)),
    *((1, f) for f in (gelu_written_out, centred)),
    (4, cast_unknown),
    (2, shape_value),
    (12, call_of_loops),
    (100, instance),
    (40, part_of_network),
)
"""Steps with their relative frequency."""


def _is_float(x: Expr) -> bool:
    return dtype_of(x).startswith("float")

"""Proofs about the shapes of a kernel, which loops require at build time."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.kernel import Kernel, Step
from relax_egraph.ir.ops.slices import slice_of
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo

ATTENTION = frozenset({"nn.attention", "nn.attention_bias"})


def shape_of(kernel: Kernel, value: int) -> Shape:
    """The shape of a value of a kernel, whose shapes are all known."""
    shape = kernel.info(value).dims
    assert shape is not None, "schedule_of refuses unknown shapes first"
    return shape


def same(a: Shape, b: Shape) -> bool:
    """Whether two shapes are proven equal."""
    return a is b or (len(a) == len(b) and all(map(equal, a, b)))


def equal(a: Dim, b: Dim) -> bool:
    """Whether two extents are proven equal."""
    return a is b or dims.equal(a, b)


def ones(step: Step) -> tuple[int, ...]:
    """A stride of 1 for each axis of a slice."""
    axes = dict(step.attrs)["axes"]
    return (1,) * len(axes) if isinstance(axes, tuple) else ()


def agrees(kernel: Kernel, step: Step) -> bool:
    """Whether the extents and positions of a step are proven to fit."""
    match step.op.name:
        case "matmul":
            x, y = (shape_of(kernel, v) for v in step.values)
            a, b = (x if len(x) > 1 else (1, *x)), (y if len(y) > 1 else (*y, 1))
            return _fit(a[:-2], b[:-2]) and dims.equal(a[-1], b[-2])
        case "broadcast_to":
            return _fit(shape_of(kernel, step.values[0]), step.struct_info.dims or ())
        case "strided_slice":
            return _is_placed(shape_of(kernel, step.values[0]), step)
        case name if name in ATTENTION:
            return _attends([shape_of(kernel, v) for v in step.values])
        case _:
            return True


def _fit(a: Shape, b: Shape) -> bool:
    """Whether broadcast axes have equal extents, or one of them is 1."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x is y or 1 in (x, y) or dims.equal(x, y) for x, y in pairs)


def is_slice_inside(kernel: Kernel, step: Step) -> bool:
    """Whether `step` is a slice with proven positions, so that loops read it in place."""
    return step.op.name == "strided_slice" and _is_proven(shape_of(kernel, step.values[0]), step)


def _is_placed(shape: Shape, step: Step) -> bool:
    """Whether positions are proven or assumed to be in bounds."""
    return bool(dict(step.attrs)["assume_inbound"]) or _is_proven(shape, step)


def _is_proven(shape: Shape, step: Step) -> bool:
    attrs = dict(step.attrs)
    axes, strides = attrs["axes"], attrs["strides"] or ones(step)
    assert isinstance(axes, tuple)
    assert isinstance(strides, tuple)
    begin, end = (o.values or () for o in step.operands if isinstance(o, ShapeStructInfo))
    cuts = zip(axes, begin, end, strides, strict=True)
    return all(slice_of(shape[int(a)], b, e, int(s)) is not None for a, b, e, s in cuts)


def _attends(shapes: Sequence[Shape]) -> bool:
    """Whether keys, values and bias fit the queries: each of their heads serves as many heads."""
    query, key, value, *bias = shapes
    batch, queries, heads, size = query
    have, want = (key[0], value[0], value[1], key[3]), (batch, batch, key[1], size)
    if not all(map(equal, have, want)):
        return False
    scores = (batch, heads, queries)
    if not all(same(b[3:], key[1:2]) and all(map(_repeats, b, scores)) for b in bias):
        return False
    return all(equal(k, heads) or (k != 0 and dims.divides(k, heads)) for k in (key[2], value[2]))


def _repeats(a: Dim, b: Dim) -> bool:
    """Whether an extent `a` broadcasts to `b`."""
    return a == 1 or equal(a, b)


def numbered(kernel: Kernel) -> list[tuple[int, Step]]:
    """The steps with the number of the value that each computes."""
    return list(enumerate(kernel.steps, len(kernel.inputs)))

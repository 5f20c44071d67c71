"""The functions of the engine, for rules of the book and of users."""

from relax_egraph.egraph.functions.function import FUNCTIONS, Axes, Function, engine_function
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import STORED, TABLE
from relax_egraph.ir.struct_info import Shape

# --- axes and permutations ---------------------------------------------------------------


@engine_function
def inverse_of(permutation: Axes) -> Axes | None:
    """The permutation that undoes `permutation`."""
    if not _is_order(permutation, len(permutation)):
        return None
    return tuple(permutation.index(k) for k in range(len(permutation)))


@engine_function
def axes_before(permutation: Axes, axes: Axes) -> Axes | None:
    """The axes of a tensor that become `axes` by a permutation, in ascending order."""
    if not _are_axes(axes, permutation):
        return None
    return tuple(sorted(permutation[k] for k in axes))


@engine_function
def permutation_without(permutation: Axes, axes: Axes) -> Axes:
    """The permutation of the remaining axes when `axes` of a permuted tensor are dropped."""
    left = [a for k, a in enumerate(permutation) if k not in axes]
    return tuple(sorted(left).index(a) for a in left)


@engine_function
def axes_of_both(first: Axes, second: Axes, kept: bool) -> Axes | None:
    """The axes of one reduction that equals a reduction along `first`, then along `second`.

    Reduced axes are `kept` with extent 1, or dropped.
    """
    if min((*first, *second), default=0) < 0:
        return None
    if kept:
        both = (*first, *second)
        return tuple(sorted(both)) if len(set(both)) == len(both) else None
    left = [a for a in range(len(first) + max(second, default=-1) + 1) if a not in first]
    return tuple(sorted((*first, *(left[k] for k in second))))


@engine_function
def only_units_move(shape: Shape, permutation: Axes) -> bool | None:
    """Whether a permutation of `shape` keeps the order of all axes of extent other than 1."""
    if len(shape) != len(permutation):
        return None
    moved = [a for a, d in zip(permutation, shape, strict=True) if d != 1]
    return moved == sorted(moved)


def _is_order(axes: Axes, rank: int) -> bool:
    return sorted(axes) == list(range(rank))


def _are_axes(axes: Axes, of: Axes | Shape) -> bool:
    return all(0 <= axis < len(of) for axis in axes)


# --- shapes and dimensions ---------------------------------------------------------------


@engine_function
def units_of(rank: int) -> Shape:
    """A shape of `rank` extents of 1."""
    return (1,) * rank


@engine_function
def dims_of(numbers: Axes) -> Shape:
    """Whole numbers as dimensions."""
    return numbers


@engine_function
def all_zero(numbers: Axes) -> bool:
    """Whether an attribute, such as padding, is 0 for every axis."""
    return not any(numbers)


@engine_function
def all_one(numbers: Axes) -> bool:
    """Whether an attribute, such as dilation, is 1 for every axis."""
    return set(numbers) <= {1}


@engine_function
def number_of(dim: Dim) -> int | None:
    """The number of a static dimension."""
    return dim if isinstance(dim, int) else None


@engine_function
def product_along(shape: Shape, axes: Axes) -> Dim | None:
    """The number of elements along some axes of a tensor of this shape."""
    return dims.product(shape[a] for a in axes) if _are_axes(axes, shape) else None


@engine_function
def shape_without(shape: Shape, axes: Axes) -> Shape:
    """A shape without its `axes`."""
    return tuple(d for k, d in enumerate(shape) if k not in axes)


@engine_function
def shape_keeping(shape: Shape, axes: Axes) -> Shape:
    """A shape with extent 1 in place of `axes`."""
    return tuple(1 if k in axes else d for k, d in enumerate(shape))


@engine_function
def axis_without(shape: Shape, left: Shape) -> int | None:
    """The first axis of extent 1 without which `shape` is `left`."""
    units = (k for k, d in enumerate(shape) if d == 1)
    return next((k for k in units if shape[:k] + shape[k + 1 :] == left), None)


@engine_function
def varying_axes(part: Shape, whole: Shape) -> Axes | None:
    """The axes of `whole` that a tensor of shape `part`, broadcast to it, varies along."""
    added = len(whole) - len(part)
    if added < 0:
        return None
    pairs = [(k + added, d, whole[k + added]) for k, d in enumerate(part)]
    if any(d not in (1, whole_d) for _, d, whole_d in pairs):
        return None
    return tuple(k for k, d, whole_d in pairs if d == whole_d)


@engine_function
def common_shape(first: Shape, second: Shape) -> Shape | None:
    """The larger of two shapes, if the other is empty, or lacks only leading extents of 1."""
    shapes = sorted((first, second), key=len)
    small, large = shapes
    behind = large[len(large) - len(small) :]
    before = large[: len(large) - len(small)]
    if small and behind != small:
        return None
    return large if not small or all(d == 1 for d in before) else None


@engine_function
def bias_shape(bias: Shape, scores: Shape) -> Shape | None:
    """The shape (batch, head, query, key) of a bias that is broadcast to the shape of scores.

    Scores of three axes have heads in the batch: there is one head.
    """
    if not 1 <= len(bias) <= len(scores) <= 4 or bias[-1] != scores[-1]:
        return None
    if len(scores) == 3 and len(bias) == 3:
        return (bias[0], 1, *bias[1:])
    return (1,) * (4 - len(bias)) + bias


@engine_function
def position_on(position: Dim, extent: Dim) -> Dim | None:
    """The position of a slice on an axis of `extent`, counted from the front.

    It has a value if it is proven for all values of symbols.
    """
    if dims.prove_ge(position, 2**62):
        return extent
    if dims.prove_ge(position, 0):
        if dims.prove_ge(position, extent):
            return extent
        return position if dims.prove_ge(extent, position) else None
    if dims.prove_ge(-1, position):
        from_front = dims.add(extent, position)
        return from_front if dims.prove_ge(from_front, 0) else None
    return None


# --- parts on devices --------------------------------------------------------------------


@engine_function
def shape_of_parts(shape: Shape, parts: int, axis: int) -> Shape | None:
    """The shape of equal parts of a tensor along an axis, if the extent is proven to have such."""
    if not _are_axes((axis,), shape) or parts < 1 or not dims.divides(parts, shape[axis]):
        return None
    return (parts, *shape[:axis], dims.floordiv(shape[axis], parts), *shape[axis + 1 :])


@engine_function
def with_units_behind_parts(shape: Shape, whole: Shape) -> Shape | None:
    """A shape of parts, with extents of 1 behind the first axis up to the rank of another."""
    added = len(whole) - len(shape)
    return (*shape[:1], *(1,) * added, *shape[1:]) if shape and added >= 0 else None


@engine_function
def axes_of_parts(axes: Axes) -> Axes:
    """The axes of a tensor, in a tensor of parts of it."""
    return tuple(a + 1 for a in axes)


@engine_function
def permutation_of_parts(permutation: Axes) -> Axes:
    """The permutation of parts that permutes each of them."""
    return (0, *(a + 1 for a in permutation))


@engine_function
def axis_before_reshape(before: Shape, after: Shape, parts: int, axis: int) -> int | None:
    """The axis whose equal parts become those along `axis` of the reshaped tensor."""
    if not _are_axes((axis,), after) or not dims.divides(parts, after[axis]):
        return None
    outer = dims.product(after[:axis])
    for k, extent in enumerate(before):
        if dims.divides(parts, extent) and dims.equal(dims.product(before[:k]), outer):
            return k
    return None


@engine_function
def axis_before_reduction(axes: Axes, axis: int) -> int | None:
    """The axis that becomes `axis` when `axes`, in ascending order, are dropped."""
    if list(axes) != sorted(set(axes)) or min((axis, *axes)) < 0:
        return None
    for dropped in axes:
        axis += dropped <= axis
    return axis


@engine_function
def axis_before_broadcast(before: Shape, after: Shape, axis: int) -> int | None:
    """The axis of a tensor that becomes `axis` when it is broadcast, if it varies along that."""
    place = axis - (len(after) - len(before))
    return place if 0 <= place < len(before) and before[place] == after[axis] != 1 else None


@engine_function
def is_repeated_along(before: Shape, after: Shape, axis: int) -> bool:
    """Whether a tensor, broadcast, repeats itself along `axis`."""
    place = axis - (len(after) - len(before))
    return place < 0 or (place < len(before) and before[place] == 1)


# --- layouts and dtypes ------------------------------------------------------------------

_ORDERS = (
    *("NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"),
    *("OIW", "WIO", "IOW", "OIHW", "HWIO", "HWOI", "OHWI", "IOHW", "OIDHW", "DHWIO", "IODHW"),
)
"""The layouts of frameworks, as orders of axes."""


@engine_function
def axis_of(letter: str, layout: str) -> int | None:
    """The axis of `letter` in a layout of frameworks, such as NCHW."""
    return layout.index(letter) if layout in _ORDERS and letter in layout else None


@engine_function
def layout_permuted(layout: str, permutation: Axes) -> str | None:
    """The layout of a tensor in `layout` after a permutation."""
    return _order(layout, permutation)


@engine_function
def layout_before(layout: str, permutation: Axes) -> str | None:
    """The layout of a tensor that has `layout` after a permutation."""
    inverse = inverse_of(permutation)
    return None if inverse is None else _order(layout, inverse)


def _order(layout: str, permutation: Axes) -> str | None:
    if layout not in _REORDERED or not _is_order(permutation, len(layout)):
        return None
    order = "".join(layout[k] for k in permutation)
    return order if order in _REORDERED and order != layout else None


_REORDERED = (
    *("NCW", "NWC", "NCHW", "NHWC", "NCDHW", "NDHWC"),
    *("OIW", "WIO", "OIHW", "HWIO", "OHWI", "OIDHW", "DHWIO"),
)
"""Layouts of operands of a convolution or a pool before and after a permutation."""


@engine_function
def dtype_holds(dtype: str, other: str) -> bool:
    """Whether every value of dtype `other` is exact in `dtype`."""
    if dtype not in TABLE or other not in TABLE:
        return False
    wide, narrow = TABLE[dtype], TABLE[other]
    if wide == narrow:
        return True
    if narrow.kind == "bool":
        return dtype not in STORED
    match wide.kind, narrow.kind:
        case "float", "int" | "uint":
            return narrow.bits <= _WHOLE.get(wide.bits, 0)
        case ("float", "float") | ("int", "int" | "uint") | ("uint", "uint"):
            return wide.bits > narrow.bits
        case _:
            return False


_WHOLE = {32: 16, 64: 32}
"""The bits of integers that are exact in a float, by the bits of the float."""


OF_ENGINE: tuple[Function, ...] = tuple(f for f in FUNCTIONS.values() if not f.code)
"""All functions of the engine."""

"""The attributes that convolutions, pools and images share: layouts and sliding windows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.requirements import overhangs
from relax_egraph.ir.struct_info import TensorStructInfo

T = TypeVar("T")

SPATIAL = ("", "W", "HW", "DHW")
"""The letters of the spatial axes in a layout, by rank."""

Order = tuple[int, ...]
"""The place in a layout of each axis of ``NCHW``, for data, or of ``OIHW``, for kernels."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The moves of a window over padded spatial axes; each field has a value for each axis."""

    strides: tuple[int, ...]
    dilation: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    def reach(self, k: int, size: Dim) -> Dim:
        """The span of a window of `size` taps along axis `k`: ``dilation · (size - 1) + 1``."""
        return dims.add(dims.mul(self.dilation[k], dims.sub(size, 1)), 1)

    def padding(self, k: int) -> int:
        """The padding of axis `k`, before and after it."""
        return self.before[k] + self.after[k]

    def padded(self, k: int, extent: Dim) -> Dim:
        """The extent of axis `k` with its padding."""
        return dims.add(extent, self.padding(k))

    def positions(self, k: int, extent: Dim, size: Dim) -> Dim:
        """The number of windows of `size` taps along axis `k`, padding included."""
        free = dims.sub(self.padded(k, extent), self.reach(k, size))
        return dims.add(dims.floordiv(free, self.strides[k]), 1)


def windows(
    subject: str,
    rank: int,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
) -> Windows:
    """The windows over `rank` axes.

    One value of `padding` is for all sides, `rank` values are for both sides of each axis, and
    ``2 · rank`` are those before the axes, then those after them.
    """
    if len(padding) not in (1, rank, 2 * rank):
        counts = f"1 or {2 * rank}" if rank == 1 else f"1, {rank} or {2 * rank}"
        raise IllTyped(f"{subject}: padding is {list(padding)}, needs {counts} values")
    if min(padding) < 0:
        raise IllTyped(f"{subject}: padding is {list(padding)}, needs values of 0 or more")
    both = padding * rank if len(padding) == 1 else padding
    return Windows(
        per_axis(subject, "strides", strides, rank),
        per_axis(subject, "dilation", dilation, rank),
        both[:rank],
        both[-rank:],
    )


def per_axis(
    subject: str, what: str, values: tuple[int, ...], rank: int, least: int = 1
) -> tuple[int, ...]:
    """A value of at least `least` for each of `rank` axes; one value is for all of them."""
    if len(values) not in (1, rank):
        counts = "1 value" if rank == 1 else f"1 or {rank} values"
        raise IllTyped(f"{subject}: {what} is {list(values)}, needs {counts}")
    if min(values) < least:
        raise IllTyped(f"{subject}: {what} is {list(values)}, needs values of {least} or more")
    return values * rank if len(values) == 1 else values


def order_of(subject: str, what: str, layout: str, letters: str) -> Order:
    """The place in `layout` of each of `letters`."""
    if sorted(layout) != sorted(letters):
        raise IllTyped(f"{subject}: {what} is {layout!r}, needs the letters of {letters!r}")
    return tuple(map(layout.index, letters))


def canonical(items: Sequence[T], order: Order) -> tuple[T, ...]:
    """The `items` of a layout's axes in canonical order."""
    return tuple(items[place] for place in order)


def laid_out(items: Sequence[T], order: Order) -> tuple[T, ...]:
    """The `items` in the order of the layout: ``laid_out(canonical(x, o), o) == x``."""
    placed = dict(zip(order, items, strict=True))
    return tuple(placed[k] for k in range(len(order)))


def check_rank(subject: str, operand: str, info: TensorStructInfo, ndim: int) -> None:
    """Raise `IllTyped` for an operand that is known to have another rank."""
    if info.ndim not in (-1, ndim):
        raise IllTyped(f"{subject}: needs {operand} of rank {ndim}")


def check_floating(subject: str, data: TensorStructInfo) -> None:
    """Raise `IllTyped` for data that is known not to be a floating-point tensor."""
    if data.dtype is not None and not is_float(data.dtype):
        raise IllTyped(f"{subject}: needs a floating-point tensor")


def check_fits(subject: str, letter: str, reach: Dim, extent: Dim, padding: int) -> None:
    """Raise `IllTyped` for a window that is proven to exceed an axis with its `padding`."""
    if overhangs(dims.sub(reach, padding), extent):
        raise IllTyped(
            f"{subject}: along {letter} the window of {dims.text(reach)} does not fit into "
            f"{dims.text(dims.add(extent, padding))}, padding included"
        )

"""The attributes of a convolution, checked, and the shape of its result."""

from dataclasses import dataclass

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.ops.window import (
    SPATIAL,
    Order,
    Windows,
    canonical,
    check_fits,
    check_rank,
    laid_out,
    order_of,
    per_axis,
    windows,
)
from relax_egraph.ir.requirements import differ, exceeds
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo, tensor


@dataclass(frozen=True, slots=True)
class Convolution:
    """The attributes of a convolution, transposed or not, over axes in canonical order.

    `out_dtype` is ``None`` for that of the operands; only transposed ones have an
    `output_padding`.
    """

    rank: int
    windows: Windows
    groups: int
    data: Order
    kernel: Order
    out: Order
    out_dtype: str | None
    output_padding: tuple[int, ...]

    @property
    def transposed(self) -> bool:
        """Whether the convolution is transposed."""
        return bool(self.output_padding)

    def extent(self, k: int, extent: Dim, size: Dim) -> Dim:
        """The result's extent along spatial axis `k`."""
        if not self.transposed:
            return self.windows.positions(k, extent, size)
        spread = dims.mul(dims.sub(extent, 1), self.windows.strides[k])
        end = dims.add(spread, dims.add(self.windows.reach(k, size), self.output_padding[k]))
        return dims.sub(end, self.windows.before[k] + self.windows.after[k])

    def channels(self, data: Dim, o: Dim, i: Dim) -> tuple[Dim, Dim, Dim]:
        """The channels that the data needs, those that split into groups, and those of the result.

        `o` and `i` are the extents of the kernel's axes ``O`` and ``I``.
        """
        if self.transposed:
            return i, data, dims.mul(o, self.groups)
        return dims.mul(i, self.groups), o, o

    def shape(self, data: Shape, weight: Shape) -> Shape:
        """The result's shape for operands that fit together."""
        batch, channels, *extents = canonical(data, self.data)
        o, i, *sizes = canonical(weight, self.kernel)
        pairs = enumerate(zip(extents, sizes, strict=True))
        spatial = [self.extent(k, extent, size) for k, (extent, size) in pairs]
        return laid_out((batch, self.channels(channels, o, i)[2], *spatial), self.out)


def convolution(
    subject: str,
    rank: int,
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    data_layout: str,
    kernel_layout: str,
    out_layout: str | None,
    out_dtype: str | None,
    output_padding: tuple[int, ...] | None = None,
) -> Convolution:
    """The attributes of a convolution over `rank` axes, transposed if it has an `output_padding`.

    Raises `IllTyped`, with a message about `subject`, for invalid attributes.
    """
    if groups < 1:
        raise IllTyped(f"{subject}: groups is {groups}, needs 1 or more")
    if out_dtype not in (None, "", "void", *DTYPES):
        raise IllTyped(f"{subject}: out_dtype is {out_dtype!r}, needs one of {', '.join(DTYPES)}")
    moving = windows(subject, rank, strides, padding, dilation)
    added: tuple[int, ...] = ()
    if output_padding is not None:
        added = per_axis(subject, "output_padding", output_padding, rank, least=0)
        if any(a >= s for a, s in zip(added, moving.strides, strict=True)):
            raise IllTyped(
                f"{subject}: output_padding is {list(added)}, needs values below the strides "
                f"{list(moving.strides)}"
            )
    letters = SPATIAL[rank]
    return Convolution(
        rank,
        moving,
        groups,
        order_of(subject, "data_layout", data_layout, f"NC{letters}"),
        order_of(subject, "kernel_layout", kernel_layout, f"OI{letters}"),
        order_of(subject, "out_layout", out_layout or data_layout, f"NC{letters}"),
        None if out_dtype in ("", "void") else out_dtype,
        added,
    )


def convolved(
    subject: str, attributes: Convolution, data: TensorStructInfo, weight: TensorStructInfo
) -> StructInfo:
    """The struct info of the result; raises `IllTyped` for operands proven not to fit together."""
    ndim = attributes.rank + 2
    check_rank(subject, "data", data, ndim)
    check_rank(subject, "a weight", weight, ndim)
    if attributes.out_dtype is None and data.dtype and weight.dtype and data.dtype != weight.dtype:
        raise IllTyped(f"{subject}: needs operands of one dtype, or an out_dtype")
    dtype = attributes.out_dtype or (data.dtype if weight.dtype else None)
    if data.dims is None or weight.dims is None:
        return tensor(None, dtype, ndim)
    _, channels, *extents = canonical(data.dims, attributes.data)
    o, i, *sizes = canonical(weight.dims, attributes.kernel)
    needed, split, _ = attributes.channels(channels, o, i)
    if differ(channels, needed):
        raise IllTyped(
            f"{subject}: the weight takes {dims.text(needed)} channels in "
            f"{attributes.groups} groups, the data has {dims.text(channels)}"
        )
    if differ(dims.mod(split, attributes.groups), 0):
        raise IllTyped(
            f"{subject}: {dims.text(split)} channels do not split into {attributes.groups} groups"
        )
    for k, (extent, size) in enumerate(zip(extents, sizes, strict=True)):
        letter = SPATIAL[attributes.rank][k]
        if exceeds(1, size):
            raise IllTyped(f"{subject}: along {letter} the window has no elements")
        if not attributes.transposed:
            check_fits(
                subject,
                letter,
                attributes.windows.reach(k, size),
                extent,
                attributes.windows.padding(k),
            )
        elif dims.prove_ge(-1, attributes.extent(k, extent, size)):
            raise IllTyped(f"{subject}: along {letter} the padding takes more than there is")
    return tensor(attributes.shape(data.dims, weight.dims), dtype)

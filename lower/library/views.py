"""Strided layouts of values that steps of a kernel only move.

Permuted, cut, split or joined axes become offsets and strides of the inputs: loops read the values
in place, without copies.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.kernel import Kernel, Step
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.manipulate import matched
from relax_egraph.lower.library.maps import axes_of
from relax_egraph.lower.library.proofs import equal, is_slice_inside, ones, same, shape_of

RESHAPES = frozenset({"reshape", "flatten", "expand_dims", "squeeze"})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a value in one tensor: its extents, and the strides of its axes in elements."""

    shape: Shape
    strides: tuple[Dim, ...]


@dataclass(frozen=True, slots=True)
class StridedLayout:
    """The layout of a value of `shape`: `pieces` joined along `axis`, mostly a single one."""

    shape: Shape
    pieces: tuple[Piece, ...]
    axis: int = 0

    def cuts(self) -> tuple[Dim, ...]:
        """The extents of the pieces along the axis; empty for a single piece."""
        several = len(self.pieces) > 1
        return tuple(p.shape[self.axis] for p in self.pieces) if several else ()


def layout_of(kernel: Kernel, value: int) -> StridedLayout | None:
    """The layout of `value` in the inputs of `kernel`; ``None`` if it has none."""
    step = kernel.step(value)
    if step is None:
        return contiguous(shape_of(kernel, value))
    below = [layout_of(kernel, v) for v in step.values]
    known = [b for b in below if b]
    if len(known) < len(below) or not known:
        return None
    if step.op.name == "concat":
        return _joined(step, known)
    (source,) = known
    match step.op.name:
        case "permute_dims":
            return permuted(source, axes_of(step))
        case "strided_slice":
            return _sliced(source, step) if is_slice_inside(kernel, step) else None
        case name if name in RESHAPES:
            return reshaped(source, step.struct_info.dims or ())
        case _:
            return None


def contiguous(shape: Shape) -> StridedLayout:
    """The layout of a tensor of `shape` in row-major order."""
    strides = tuple(dims.product(shape[k + 1 :]) for k in range(len(shape)))
    return StridedLayout(shape, (Piece(shape, strides),))


def permuted(x: StridedLayout, axes: Sequence[int]) -> StridedLayout:
    """The layout of `x` with axis ``axes[k]`` at position ``k``."""

    def moved(extents: Shape) -> Shape:
        return tuple(extents[a] for a in axes)

    pieces = tuple(Piece(moved(p.shape), moved(p.strides)) for p in x.pieces)
    axis = axes.index(x.axis) if len(pieces) > 1 else 0
    return StridedLayout(moved(x.shape), pieces, axis)


def reshaped(x: StridedLayout, shape: Shape) -> StridedLayout | None:
    """The layout of `x` in another `shape`; ``None`` if it merges axes that are not contiguous."""
    if not equal(dims.product(x.shape), dims.product(shape)):
        return None
    runs = matched(x.shape, shape)
    pieces = [_split(p, runs) for p in x.pieces]
    known = [p for p in pieces if p]
    if len(known) < len(pieces):
        return None
    if len(known) == 1:
        return StridedLayout(shape, (replace(known[0], shape=shape),))
    axis, place = x.axis, 0
    for inner, outer in runs:
        if axis < len(inner):
            kept = [k for k, d in enumerate(outer) if d == inner[axis]]
            alone = all(d == 1 for k, d in enumerate(inner) if k != axis)
            if len(kept) != 1 or not alone:
                return None
            place += kept[0]
            break
        axis, place = axis - len(inner), place + len(outer)
    whole = (
        Piece((*shape[:place], p.shape[x.axis], *shape[place + 1 :]), q.strides)
        for p, q in zip(x.pieces, known, strict=True)
    )
    return StridedLayout(shape, tuple(whole), place)


def _split(piece: Piece, runs: Sequence[tuple[Shape, Shape]]) -> Piece | None:
    """`piece` with the axes on the right of `runs`."""
    strides: list[Dim] = []
    position = 0
    for inner, outer in runs:
        here = slice(position, position + len(inner))
        wide = [(d, s) for d, s in zip(inner, piece.strides[here], strict=True) if d != 1]
        for (_, far), (extent, near) in pairwise(wide):
            if not equal(far, dims.mul(extent, near)):
                return None
        step = wide[-1][1] if wide else 1
        strides += [dims.mul(step, dims.product(outer[k + 1 :])) for k in range(len(outer))]
        position += len(inner)
    return Piece(piece.shape, tuple(strides))


def _sliced(x: StridedLayout, step: Step) -> StridedLayout | None:
    attrs = dict(step.attrs)
    axes, by = attrs["axes"], attrs["strides"] or ones(step)
    assert isinstance(axes, tuple)
    assert isinstance(by, tuple)
    (piece, *others), shape = x.pieces, step.struct_info.dims or ()
    if others:
        return None
    strides = list(piece.strides)
    for axis, stride in zip(axes, by, strict=True):
        strides[int(axis)] = dims.mul(strides[int(axis)], int(stride))
    return StridedLayout(shape, (Piece(shape, tuple(strides)),))


def _joined(step: Step, parts: Sequence[StridedLayout]) -> StridedLayout | None:
    axis, shape = dict(step.attrs)["axis"], step.struct_info.dims or ()
    if not isinstance(axis, int):
        return None
    axis %= len(shape)
    if any(len(p.pieces) > 1 for p in parts):
        return None
    for p in parts:
        rest = (*p.shape[:axis], *p.shape[axis + 1 :])
        if not same(rest, (*shape[:axis], *shape[axis + 1 :])):
            return None
    return StridedLayout(shape, tuple(p.pieces[0] for p in parts), axis)

"""The axes over which an expression is evaluated, and values that are aligned with them."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.ir.expr import Expr
from relax_egraph.ir.struct_info import Shape
from relax_egraph.raising.emitter import Emitter
from relax_egraph.raising.nests import Loops
from relax_egraph.tir.expr import TirVar

Labels = Sequence[TirVar | None]
"""The axis that each dimension of a tensor runs over; ``None`` for an extent of 1."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Axes in order: an expression over them is a tensor that broadcasts to their `shape`."""

    axes: tuple[TirVar, ...]
    extents: Loops

    @property
    def shape(self) -> Shape:
        """The extents of the axes."""
        return tuple(self.extents[a] for a in self.axes)

    def among(self, axes: Sequence[TirVar]) -> "Frame":
        """The frame of other axes of the same nest."""
        return Frame(tuple(axes), self.extents)


def aligned(emit: Emitter, value: Expr, labels: Labels, frame: Frame) -> Expr:
    """`value`, whose dimensions run over `labels`, as a tensor that broadcasts over `frame`."""
    if _fits(labels, frame):
        return value
    unit = tuple(k for k, label in enumerate(labels) if label is None)
    if unit:
        value = emit("squeeze", value, axis=unit)
    named = [label for label in labels if label is not None]
    order = sorted(named, key=frame.axes.index)
    if order != named:
        value = emit("permute_dims", value, axes=tuple(map(named.index, order)))
    behind = frame.axes[frame.axes.index(order[0]) :] if order else ()
    missing = tuple(k for k, axis in enumerate(behind) if axis not in order)
    return emit.expand(value, missing) if missing else value


def _fits(labels: Labels, frame: Frame) -> bool:
    """Whether each dimension is already at the place of its axis, from the last one."""
    if len(labels) > len(frame.axes):
        return False
    places = frame.axes[len(frame.axes) - len(labels) :]
    return all(label is None or label is axis for label, axis in zip(labels, places, strict=True))


def placed(emit: Emitter, value: Expr, labels: Labels, target: Labels) -> Expr:
    """`value` over `labels`, with its dimensions in the order of `target`.

    Both have the same axes; extents of 1 may be anywhere.
    """
    unit = tuple(k for k, label in enumerate(labels) if label is None)
    if tuple(labels) == tuple(target):
        return value
    if unit:
        value = emit("squeeze", value, axis=unit)
    named = [label for label in labels if label is not None]
    order = [label for label in target if label is not None]
    if order != named:
        value = emit("permute_dims", value, axes=tuple(map(named.index, order)))
    added = tuple(k for k, label in enumerate(target) if label is None)
    return emit("expand_dims", value, axis=added) if added else value

"""A load as operators: slices, lookups and transposes of a tensor."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, ShapeExpr
from relax_egraph.raising.emitter import Emitter, same_shape, shape_of
from relax_egraph.raising.frame import Frame, Labels, aligned
from relax_egraph.raising.indices import (
    Along,
    Digits,
    Index,
    Looked,
    Mixed,
    Point,
    axes_in,
    digits,
    divided,
    index_of,
)
from relax_egraph.raising.lookups import lookup_of
from relax_egraph.raising.unreadable import Unreadable
from relax_egraph.tir.expr import BufferLoad, TirExpr, TirVar

Evaluate = Callable[[TirExpr, Frame], Expr]
"""An expression as a tensor that has the shape of a frame."""


class Splits(Unreadable):
    """An index has digits of `axis`: its quotient and rest by `size`."""

    def __init__(self, axis: TirVar, size: Dim) -> None:
        super().__init__(f"the index has digits of {axis.name}")
        self.axis = axis
        self.size = size


def element(
    emit: Emitter, tensor: Expr, load: BufferLoad, frame: Frame, evaluate: Evaluate, sure: bool
) -> Expr:
    """The elements ``tensor[load.indices]`` over `frame`, as a tensor that broadcasts to it.

    Unless it is `sure` that each is within the tensor, that must be proven.
    """
    reading = _Reading(emit, tensor, [index_of(i, frame.extents) for i in load.indices], frame)
    reading.merge(load, sure)
    reading.slice(load, sure)
    reading.look_up(evaluate)
    reading.labels = [i.axis if isinstance(i, Along) else None for i in reading.indices]
    labels = reading.spread()
    named = [label for label in labels if label is not None]
    if len(set(named)) < len(named):
        raise Unreadable(f"{load.buffer.name} is read along one axis twice")
    return aligned(emit, reading.value, labels, frame)


@dataclass(slots=True)
class _Reading:
    """A tensor on the way; `indices` say what each of its dimensions runs over."""

    emit: Emitter
    value: Expr
    indices: list[Index]
    frame: Frame
    labels: list[TirVar | None] | None = None
    looked: tuple[int, tuple[TirVar, ...]] | None = None

    def merge(self, load: BufferLoad, sure: bool) -> None:
        """Reshape a run of dimensions, whose indices together are digits, to these."""
        mixed = [k for k, index in enumerate(self.indices) if isinstance(index, Mixed)]
        if not mixed:
            return
        shape, extents = shape_of(self.value), self.frame.extents
        for first, last in _runs(mixed, len(shape)):
            if any(isinstance(i, Looked) for i in self.indices[first : last + 1]):
                continue
            size = dims.product(shape[first : last + 1])
            place = digits(load.indices[first : last + 1], shape[first : last + 1], extents)
            if place is None or not (sure or _is_inside(place.offset, place.count, size)):
                continue
            flat = (*shape[:first], size, *shape[last + 1 :])
            inner = tuple(extents[a] for a in place.axes)
            self.value = self._part(self.emit.reshape(self.value, flat), first, place)
            self.value = self.emit.reshape(self.value, (*shape[:first], *inner, *shape[last + 1 :]))
            self.indices[first : last + 1] = [Along(a, 1, 0) for a in place.axes]
            return
        split = divided([i.index for i in self.indices if isinstance(i, Mixed)], extents)
        if split is not None:
            raise Splits(*split)
        name = load.buffer.name
        raise Unreadable(f"the part of {name} that is read is no slice, transpose or reshape")

    def _part(self, value: Expr, axis: int, place: Digits) -> Expr:
        """The places of `value` along `axis` that digits run over."""
        shape = shape_of(value)
        if place.offset == 0 and dims.equal(place.count, shape[axis]):
            return value
        end = dims.add(place.offset, place.count)
        counts = (*shape[:axis], place.count, *shape[axis + 1 :])
        return self._cut(value, (axis,), [place.offset], [end], (1,), counts)

    def slice(self, load: BufferLoad, sure: bool) -> None:
        """Take the part of each dimension that the axes run over."""
        shape = shape_of(self.value)
        axes: list[int] = []
        begin: list[Dim] = []
        end: list[Dim] = []
        steps: list[int] = []
        flipped: list[int] = []
        counts = list(shape)
        for k, (index, extent) in enumerate(zip(self.indices, shape, strict=True)):
            match index:
                case Point(at=at):
                    first, step, count = at, 1, 1
                case Along(axis=axis, step=step, offset=offset):
                    first, count = offset, self.frame.extents[axis]
                case _:
                    continue
            counts[k] = count
            if step == 1 and first == 0 and dims.equal(count, extent):
                continue
            length = dims.mul(abs(step), dims.sub(count, 1))
            if step < 0:
                flipped.append(k)
                first = dims.sub(first, length)
            last = dims.add(first, length)
            if not sure and not _is_inside(first, dims.add(length, 1), extent):
                raise Unreadable(
                    f"{load.buffer.name} is read on a condition, perhaps outside of it"
                )
            if step < 0 and first == 0 and step == -1 and dims.equal(count, extent):
                continue
            axes.append(k)
            begin.append(first)
            end.append(dims.add(last, 1))
            steps.append(abs(step))
        if axes:
            self.value = self._cut(self.value, tuple(axes), begin, end, tuple(steps), counts)
        for k in flipped:
            self.value = self.emit("flip", self.value, axis=k)

    def _cut(
        self,
        value: Expr,
        axes: tuple[int, ...],
        begin: Sequence[Dim],
        end: Sequence[Dim],
        steps: tuple[int, ...],
        counts: Sequence[Dim],
    ) -> Expr:
        bounds = ShapeExpr(tuple(begin)), ShapeExpr(tuple(end))
        strides = None if set(steps) == {1} else steps
        for assumed in (False, True):
            part = self.emit(
                "strided_slice",
                value,
                *bounds,
                axes=axes,
                strides=strides,
                assume_inbound=assumed,
            )
            if _known(part) and same_shape(part, tuple(counts)):
                return part
        raise Unreadable("the extent of a slice is known only at run time")

    def look_up(self, evaluate: Evaluate) -> None:
        """Gather along the dimension whose index is read from a tensor."""
        places = [k for k, index in enumerate(self.indices) if isinstance(index, Looked)]
        if not places:
            return
        if len(places) > 1:
            raise Unreadable("two indices are read from tensors")
        (place,) = places
        index = self.indices[place]
        assert isinstance(index, Looked)
        axes = axes_in(index.index, self.frame.axes)
        read, mode = lookup_of(index.index, shape_of(self.value)[place])
        indices = evaluate(read, self.frame.among(axes))
        self.value = self.emit("take", self.value, indices, axis=place, mode=mode)
        self.looked = place, axes

    def spread(self) -> Labels:
        """The axis of each dimension, with those of the lookup in its place."""
        assert self.labels is not None
        if self.looked is None:
            return self.labels
        place, axes = self.looked
        return [*self.labels[:place], *axes, *self.labels[place + 1 :]]


def _is_inside(first: Dim, count: Dim, extent: Dim) -> bool:
    """Whether `count` places from `first` on are proven to be within `extent`."""
    return dims.prove_ge(first, 0) and dims.prove_ge(extent, dims.add(first, count))


def _runs(mixed: Sequence[int], rank: int) -> list[tuple[int, int]]:
    """Runs of dimensions that contain all of `mixed`, the shortest first."""
    first, last = min(mixed), max(mixed)
    runs = [(a, b) for a in range(first + 1) for b in range(last, rank)]
    return sorted(runs, key=lambda run: run[1] - run[0])


def _known(value: Expr) -> bool:
    return getattr(value.struct_info, "dims", None) is not None

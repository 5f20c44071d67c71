"""Nests that each store a part of a buffer: together they are a concatenation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.raising.indices import linear
from relax_egraph.raising.nests import ZERO, Nest
from relax_egraph.tir.expr import Buffer, TirVar


@dataclass(frozen=True, slots=True)
class Part:
    """A nest that fills a buffer of its own, which is a part of another along `axis`."""

    nest: Nest
    axis: int


def parts_of(nests: Sequence[Nest]) -> list[Part] | None:
    """The parts of one buffer that the first of `nests` fill; ``None`` if they are none."""
    first = nests[0]
    filled: Dim = 0
    parts: list[Part] = []
    for nest in nests:
        if nest.buffer is not first.buffer or nest.reduced:
            break
        place = _place(nest)
        if place is None or (parts and place[0] != parts[0].axis):
            return None
        axis, begin, count = place
        if not dims.equal(begin, filled):
            return None
        filled = dims.add(filled, count)
        parts.append(Part(_alone(nest, axis, count), axis))
    if not parts or not dims.equal(filled, first.buffer.shape[parts[0].axis]):
        return None
    return parts if len(parts) > 1 else None


def _place(nest: Nest) -> tuple[int, Dim, Dim] | None:
    """The axis along which `nest` fills a part, its first index, and its extent."""
    for axis, (index, extent) in enumerate(zip(nest.at, nest.buffer.shape, strict=True)):
        terms = linear(index, nest.axes)
        if terms is None:
            return None
        steps, begin = terms
        match list(steps.items()):
            case []:
                count: Dim = 1
            case [(var, 1)]:
                count = nest.axes[var]
            case _:
                return None
        if not dims.equal(count, extent):
            return axis, begin, count
    return None


def _alone(nest: Nest, axis: int, count: Dim) -> Nest:
    """`nest` with a buffer of its part only."""
    shape = tuple(count if k == axis else d for k, d in enumerate(nest.buffer.shape))
    steps = linear(nest.at[axis], nest.axes)
    assert steps is not None
    own: TirVar | None = next(iter(steps[0]), None)
    at = tuple((own or ZERO) if k == axis else i for k, i in enumerate(nest.at))
    part = Buffer(nest.buffer.name, shape, nest.buffer.dtype)
    return replace(nest, buffer=part, at=at)

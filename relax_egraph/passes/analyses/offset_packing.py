"""Packs tensors into one arena, so that tensors that are live at the same time do not overlap.

Greedy by size (Pisarchyk and Lee, Efficient Memory Management for Deep Neural Net Inference, 2020):
the largest first, each at the lowest offset that is free during its lifetime.  Sizes are symbolic:
which of two is larger may be guessed, that an offset is free is proven.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from relax_egraph.ir.polynomial import Polynomial
from relax_egraph.passes.analyses.byte_sizes import ByteSizes, Extent


@dataclass(frozen=True, slots=True)
class Block:
    """A block of bytes that is needed from step `begin` to step `end`, both included."""

    size: Polynomial
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Packing:
    """The offset of each block, and the size of the arena."""

    offsets: tuple[Extent, ...]
    size: Extent


def pack(blocks: Sequence[Block], sizes: ByteSizes) -> Packing:
    """Offsets for `blocks`: the better of two orders, by size and by time."""
    by_size = sorted(
        range(len(blocks)), key=lambda k: (-sizes.guessed_size(blocks[k].size), blocks[k].begin)
    )
    by_time = sorted(
        range(len(blocks)), key=lambda k: (blocks[k].begin, -sizes.guessed_size(blocks[k].size))
    )
    packings = [_packed(blocks, order, sizes) for order in (by_size, by_time)]
    return min(packings, key=lambda p: sizes.guess(p.size))


def largest_live(blocks: Sequence[Block], sizes: ByteSizes) -> tuple[Polynomial, ...]:
    """The largest sum of the sizes of blocks that are live at one step.

    Several candidates, where the maximum depends on the symbols.
    """
    changes: dict[int, list[Polynomial]] = {}
    for block in blocks:
        changes.setdefault(block.begin, []).append(block.size)
        changes.setdefault(block.end + 1, []).append(block.size.times(-1))
    live, totals = Polynomial(), dict[Polynomial, None]()
    for step in sorted(changes):
        for change in changes[step]:
            live += change
        totals[live] = None
    return tuple(sizes.largest(totals))


def _packed(blocks: Sequence[Block], order: Iterable[int], sizes: ByteSizes) -> Packing:
    offsets: dict[int, Extent] = {}
    ends: dict[Extent, None] = {}
    alive: dict[int, list[int]] = {}
    for k in order:
        block = blocks[k]
        steps = range(block.begin, block.end + 1)
        beside = {other for step in steps for other in alive.get(step, ())}
        occupied = dict.fromkeys((offsets[other], blocks[other].size) for other in sorted(beside))
        offsets[k] = _free(block.size, list(occupied), sizes)
        ends[sizes.end(offsets[k], block.size)] = None
        for step in steps:
            alive.setdefault(step, []).append(k)
    return Packing(tuple(offsets[k] for k in range(len(blocks))), sizes.maximum(ends))


def _free(
    size: Polynomial, occupied: Sequence[tuple[Extent, Polynomial]], sizes: ByteSizes
) -> Extent:
    """The lowest offset at which `size` bytes are proven to be disjoint from `occupied`."""
    ends = dict.fromkeys(sizes.aligned_end(offset, other) for offset, other in occupied)
    for offset in sorted((Extent(), *ends), key=sizes.guess):
        end = sizes.end(offset, size)
        if all(
            sizes.is_behind(end, other) or sizes.is_behind(sizes.aligned_end(other, length), offset)
            for other, length in occupied
        ):
            return offset
    return sizes.maximum(ends)

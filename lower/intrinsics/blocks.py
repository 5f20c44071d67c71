"""Blocks of results of windows: in each step, a number of each row times vectors of columns."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.vector import first_lanes
from relax_egraph.lower.intrinsics.row import Row


@dataclass(frozen=True, slots=True)
class Block:
    """`rows` by `vectors` vectors of `lanes` floats; a single vector may be partly used."""

    rows: int
    vectors: int
    lanes: int

    @property
    def size(self) -> str:
        """The extents, for the name of the micro-kernel."""
        return f"{self.rows}x{self.vectors}"

    def row(self, f: Function, columns: Value) -> Row:
        """A row of the block, of which `columns` are used if it is a single vector."""
        mask = first_lanes(f, columns, self.lanes) if self.vectors == 1 else None
        return Row(self.vectors, self.lanes, mask)


def strips(target: Target) -> Sequence[tuple[int, list[Block]]]:
    """The vectors of a strip and its blocks by height, from the widest strips to the narrowest."""
    many = target.vector_registers == 32
    tallest = ((4, 6), (2, 8), (1, 8)) if many else ((2, 6), (1, 8))
    lanes = target.lanes(32)
    return [(v, [Block(h + 1, v, lanes) for h in range(most)]) for v, most in tallest]

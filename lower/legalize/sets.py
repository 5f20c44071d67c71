"""Partitions of the elements of a tensor into sets, each with one statistic."""

from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.tir import te
from relax_egraph.tir.expr import TirExpr, from_dim

Index = tuple[TirExpr, ...]


@dataclass(frozen=True, slots=True)
class Sets:
    """A partition of the elements of a tensor of `extents`.

    The axes `places` run within a set; so do `size` neighbours along the axis `channel`, unless it
    is -1. All other axes distinguish sets.
    """

    extents: Shape
    places: tuple[int, ...]
    channel: int = -1
    size: Dim = 1

    @property
    def shape(self) -> Shape:
        """The shape of a tensor with an element for each set."""
        return tuple(
            dims.floordiv(extent, self.size) if k == self.channel else extent
            for k, extent in enumerate(self.extents)
            if k not in self.places
        )

    @property
    def count(self) -> Dim:
        """The number of elements of a set."""
        return dims.product((self.size, *(self.extents[p] for p in self.places)))

    def of(self, i: Index) -> Index:
        """The set of the element at `i`."""
        return tuple(
            i[k] // from_dim(self.size) if k == self.channel else i[k]
            for k in range(len(i))
            if k not in self.places
        )

    def members(self, s: Index) -> tuple[Index, list[te.ReduceAxis]]:
        """The elements of the set `s`: an index, and the reduction axes in it."""
        axes = {p: te.reduce_axis(self.extents[p], f"k{n}") for n, p in enumerate(self.places)}
        rest = iter(s)
        index: list[TirExpr] = []
        for k in range(len(self.extents)):
            if k in self.places:
                index.append(axes[k])
            elif k == self.channel:
                axes[k] = te.reduce_axis(self.size, f"k{len(axes)}")
                index.append(next(rest) * from_dim(self.size) + axes[k])
            else:
                index.append(next(rest))
        return tuple(index), [*axes.values()]

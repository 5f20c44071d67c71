"""The product of a few rows with many rows, each contiguous along the depth: ``dot_tile``.

It reads the many in their order, as a stream; ``gemm_tile`` would need them transposed.
"""

import operator
from collections.abc import Sequence

from relax_egraph.lower.emit.emitter import Function
from relax_egraph.lower.emit.module_text import F32, I64, PTR, Module, Type
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.emit.value import Value
from relax_egraph.lower.emit.vector import first_lanes, masked_load, reduce
from relax_egraph.lower.intrinsics.across import across

NAME = "dot_tile"

PARAMS: tuple[Type, ...] = (PTR, PTR, PTR, I64, I64, I64, I64, I64, I64)
"""``a, b, c, a_row, b_row, c_row, rows, columns, depth``."""


def define_dot_tile(module: Module, target: Target) -> None:
    """Add ``dot_tile(a, b, c, a_row, b_row, c_row, rows, columns, depth)``.

    ``c[i·c_row + j] = Σₖ a[i·a_row + k] · b[j·b_row + k]`` for ``i < rows``, ``j < columns``,
    ``k < depth``, of float32.  `c` overlaps neither `a` nor `b`.
    """
    f = Function(module, NAME, PARAMS)
    a, b, c, a_row, b_row, c_row, rows, columns, depth = f.args
    type = F32.of(target.lanes(32))
    whole = columns - f.binary("urem", columns, type.lanes)

    def rows_of(j: Value, count: int) -> None:
        right = [f.address(b, (j + k) * b_row, F32) for k in range(count)]
        with f.loop(0, rows) as down:
            sums = _sums(f.address(a, down.index * a_row, F32), right, depth, type)
            total = across(sums, operator.add) if count > 1 else reduce("+", sums[0])
            f.store(total, f.address(c, down.index * c_row + j, F32))

    with f.loop(0, whole, type.lanes) as along:
        rows_of(along.index, type.lanes)
    with f.loop(whole, columns) as along:
        rows_of(along.index, 1)
    f.finish()


def _sums(left: Value, right: Sequence[Value], depth: Value, type: Type) -> Sequence[Value]:
    """The products of the row at `left` with each of the rows at `right`, added up by lanes."""
    f, lanes = left.function, type.lanes
    whole = depth - f.binary("urem", depth, lanes)
    with f.loop(0, whole, lanes, [f.const(type, 0)] * len(right)) as main:
        x = f.load(f.address(left, main.index, F32), type)
        terms = [f.load(f.address(p, main.index, F32), type) for p in right]
        main.carry(*(f.fma(x, y, total) for y, total in zip(terms, main.values, strict=True)))
    with f.loop(whole, depth, lanes, main.results) as rest:
        mask = first_lanes(f, depth - rest.index, lanes)
        x = masked_load(f.address(left, rest.index, F32), type, mask)
        terms = [masked_load(f.address(p, rest.index, F32), type, mask) for p in right]
        rest.carry(*(f.fma(x, y, total) for y, total in zip(terms, rest.values, strict=True)))
    return rest.results

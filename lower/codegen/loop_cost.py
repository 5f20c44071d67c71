"""A rough estimate of the time of a statement, as an expression in its run-time sizes.

The unit is the picosecond, on a core of 4 GHz with all data in the caches: within a factor of
three of measured maps, row reductions and products, which suffices to decide whether a loop is
worth sharing.
"""

from collections.abc import Callable, Mapping

from relax_egraph.lower.codegen.scope import MEMORY_TYPES
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics import sliding
from relax_egraph.tir.analysis import work
from relax_egraph.tir.expr import (
    BufferLoad,
    TirExpr,
    TirVar,
    as_expr,
    binary,
)
from relax_egraph.tir.rewrite import loads, nodes, rewrite
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

OPERATION = 125
"""A vector operation: two per cycle."""

BYTE = 5
"""Reading or writing a byte sequentially."""

MOVE = 200
"""Moving an element of a transpose."""

CALL = 50_000
"""An unknown tensor intrinsic."""

_Cost = Callable[[tuple[TirExpr, ...], int], TirExpr]


def _tile(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A product: multiplications, and reads of the right operand."""
    rows, columns, depth = scalars[5:8]
    column = rows * OPERATION // lanes + 4 * BYTE
    return columns * depth * column


def _double(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A product of numbers of 64 bits."""
    return _tile(scalars, max(1, lanes // 2))


def _streamed(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A product for each head."""
    heads, rows, columns, depth = scalars[4:8]
    return heads * columns * depth * (rows * OPERATION // lanes + 4 * BYTE)


def _softmax(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A softmax: row maxima, and exponentials."""
    return scalars[1] * scalars[2] * (24 * OPERATION) // lanes


def _window(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A convolution window: a product for each run of taps."""
    rows, columns, lines, taps, depth = scalars[6:11]
    return columns * lines * taps * depth * (rows * OPERATION // lanes + 4 * BYTE)


def _plane(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A convolution of planes: a product for each tap of each plane."""
    rows, columns, planes, lines, taps = scalars[5:]
    return columns * planes * lines * taps * (rows * OPERATION // lanes + 4 * BYTE)


def _depthwise(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """A depthwise convolution: multiplications alone, since its operand is in the first cache."""
    rows, columns, lines, taps = scalars[6:10]
    return rows * columns * lines * taps * OPERATION // lanes


def _sliding(taps: int) -> _Cost:
    def cost(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
        """A depthwise convolution by windows that slide, each line of which has `taps`."""
        rows, columns, lines = scalars[5:]
        return rows * columns * lines * (taps * OPERATION) // lanes

    return cost


def _transpose(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    return scalars[2] * scalars[3] * MOVE


INTRINSIC_COSTS: Mapping[str, _Cost] = {
    **dict.fromkeys(
        ("gemm_tile", "gemm_tile_bfloat16", "gemm_tile_int8", "gemm_tile_int32"), _tile
    ),
    "gemm_tile_float64": _double,
    **dict.fromkeys(("dot_tile", "axpy_tile"), _streamed),
    "softmax_tile": _softmax,
    "plane_tile": _plane,
    "window_tile": _window,
    "depthwise_tile": _depthwise,
    **{sliding.name_of(taps): _sliding(taps) for taps in sliding.TAPS},
    **{f"transpose_{bits}": _transpose for bits in (8, 16, 32, 64)},
}
"""The time of a tensor intrinsic, from its scalars and the float32 lanes of a vector."""

Bounds = Mapping[TirVar, TirExpr]


def picoseconds(stmt: Stmt, target: Target, inside: Mapping[TirVar, TirExpr]) -> TirExpr:
    """The time of `stmt`, a sum over its loops, for the values of variables in `inside`.

    A loop whose extent depends on an outer loop counts as in that loop's middle iteration; a loop
    whose extent depends on memory counts as one iteration.
    """
    return _Estimate(target).stmt(stmt, inside, 1)


class _Estimate:
    def __init__(self, target: Target) -> None:
        self.target = target

    def stmt(self, stmt: Stmt, inside: Bounds, lanes: int) -> TirExpr:
        """The time of `stmt` if `lanes` run at once."""
        match stmt:
            case Store(buffer=buffer, value=value):
                read = loads(value)
                moved = MEMORY_TYPES[buffer.dtype].bits + sum(
                    MEMORY_TYPES[r.buffer.dtype].bits for r in read
                )
                memory = BYTE * moved // 8
                scalar = OPERATION * (1 + len(read)) if lanes == 1 else 0
                return as_expr(OPERATION * work(value) // lanes + memory + scalar)
            case Seq(body=parts):
                return sum((self.stmt(part, inside, lanes) for part in parts), as_expr(0))
            case IfThenElse(then_case=then_case, else_case=None):
                return self.stmt(then_case, inside, lanes)
            case IfThenElse(then_case=then_case, else_case=else_case):
                assert else_case is not None
                cases = (self.stmt(case, inside, lanes) for case in (then_case, else_case))
                return binary("max", *cases)
            case TirBlock(axes=axes, body=body):
                middle = {a.var: _typical(a.binding, inside) for a in axes}
                return self.stmt(body, {**inside, **middle}, lanes)
            case For(var=var, kind=kind, body=body):
                if kind == "vectorized":
                    lanes *= self.target.lanes(32)
                extent = _typical(stmt.extent, inside)
                turn = self.stmt(body, {**inside, var: extent // 2}, lanes)
                return binary("max", extent, 0) * turn
            case TensorIntrinsic(name=name, scalars=scalars):
                if name not in INTRINSIC_COSTS:
                    return as_expr(CALL)
                typical = tuple(_typical(s, inside) for s in scalars)
                return INTRINSIC_COSTS[name](typical, self.target.lanes(32))


def _typical(expr: TirExpr, inside: Bounds) -> TirExpr:
    """`expr` with typical values of its variables; 1 if it depends on memory.

    Variables in `inside` are replaced, so the result can be computed outside their loops.
    """
    replaced = rewrite(expr, lambda e: inside.get(e, e) if isinstance(e, TirVar) else e)
    read = any(isinstance(n, BufferLoad) for n in nodes(replaced))
    return as_expr(1) if read else replaced

"""How long a statement takes, roughly, as an expression in the sizes known at run time.

The unit is the picosecond, of a core of 4 GHz with its data in the caches: within a factor of
three of what was measured for maps, rows and products, which is enough to tell whether a loop is
worth sharing.
"""

from collections.abc import Callable, Mapping

from relax_egraph.lower.codegen.scope import MEMORY_TYPES
from relax_egraph.lower.emit.target import Target
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
"""An operation on a vector: two in each cycle."""

BYTE = 5
"""Reading or writing a byte in order."""

MOVE = 200
"""Moving an element across a matrix."""

CALL = 50_000
"""A tensor intrinsic of which nothing is known."""

_Cost = Callable[[tuple[TirExpr, ...], int], TirExpr]


def _tile(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """Multiplications, and reading the right operand."""
    rows, columns, depth = scalars[4:7]
    column = rows * OPERATION // lanes + 4 * BYTE
    return columns * depth * column


def _streamed(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """The same, of all heads."""
    heads, rows, columns, depth = scalars[4:8]
    return heads * columns * depth * (rows * OPERATION // lanes + 4 * BYTE)


def _softmax(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """Highest scores, and exponentials."""
    return scalars[1] * scalars[2] * (24 * OPERATION) // lanes


def _window(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """The same as of a product, of all runs."""
    rows, columns, lines, taps, depth = scalars[5:10]
    return columns * lines * taps * depth * (rows * OPERATION // lanes + 4 * BYTE)


def _depthwise(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    """Multiplications: what is read is in the first cache."""
    rows, columns, lines, taps = scalars[6:10]
    return rows * columns * lines * taps * OPERATION // lanes


def _transpose(scalars: tuple[TirExpr, ...], lanes: int) -> TirExpr:
    return scalars[2] * scalars[3] * MOVE


INTRINSIC_COSTS: Mapping[str, _Cost] = {
    **dict.fromkeys(("gemm_tile", "gemm_tile_bfloat16", "gemm_tile_int8"), _tile),
    **dict.fromkeys(("dot_tile", "axpy_tile"), _streamed),
    "softmax_tile": _softmax,
    "window_tile": _window,
    "depthwise_tile": _depthwise,
    **{f"transpose_{bits}": _transpose for bits in (8, 16, 32, 64)},
}
"""The time of a tensor intrinsic, from its scalars and how many float32 fill a vector."""

Bounds = Mapping[TirVar, TirExpr]


def picoseconds(stmt: Stmt, target: Target, inside: Mapping[TirVar, TirExpr]) -> TirExpr:
    """What `stmt` takes, a sum over its loops; variables of `inside` count as their typical value.

    Of loops whose extent depends on other loops, a turn in the middle is taken.  What depends on
    memory counts as one turn.
    """
    return _Estimate(target).stmt(stmt, inside, 1)


class _Estimate:
    def __init__(self, target: Target) -> None:
        self.target = target

    def stmt(self, stmt: Stmt, inside: Bounds, lanes: int) -> TirExpr:
        """The time of `stmt` where so many `lanes` run at once."""
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
    """`expr` with typical values of the variables; 1 if it depends on memory, or on unknown ones.

    Axes and loops of `inside` are replaced, so that what is left can be computed outside of them.
    """
    changed = rewrite(expr, lambda e: inside.get(e, e) if isinstance(e, TirVar) else e)
    read = any(isinstance(n, BufferLoad) for n in nodes(changed))
    return as_expr(1) if read else changed

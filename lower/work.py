"""Counts of arithmetic operations of loop functions, as dimensions.

They are counted on stages, before schedules recompute or split anything: a product of (m, k) and
(k, n) is ``2·m·n·k``.  One operation is an addition, a multiplication, a division, a comparison, a
minimum, a logical or elementary function (``exp``, ``pow``, …) of elements; a fused multiply-add is
two.  Conversions, selections, and arithmetic on indices and sizes alone count nothing; both sides
of a selection are computed.
"""

import re
from collections.abc import Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.module import IRModule
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Binary, BufferLoad, Intrinsic, Not, TirExpr, TirVar
from relax_egraph.tir.rewrite import operands, postorder
from relax_egraph.tir.stmt import For, IfThenElse, PrimFunc, Seq, Stmt, Store, TirBlock

Loops = Mapping[TirVar, Dim]
"""The loops around a statement, with their extents."""


def work_of(staged: IRModule, scheduled: Mapping[str, PrimFunc]) -> dict[str, str]:
    """The operations of each kernel, if they are known, for `Executable.work`.

    `staged` is the module before constants were packed and loops scheduled.
    """
    counts: dict[str, str] = {}
    for name, kernel in scheduled.items():
        stages = staged.functions.get(name) or staged.functions.get(_unpacked(name))
        if isinstance(stages, PrimFunc) and (count := operations(stages)) is not None:
            slots = {s: dims.symbol(f"@{i}") for i, s in enumerate(kernel.symbols)}
            if dims.symbols(count) <= set(slots):
                counts[name] = dims.text(dims.substitute(count, slots))
    return counts


def operations(function: PrimFunc) -> Dim | None:
    """The operations of one call, over the symbols of `function`.

    ``None`` if they depend on data or on other loops, or if a tensor intrinsic is called.
    """
    return None if "schedule" in function.attrs else _of_stmt(function.body, {})


def _unpacked(name: str) -> str:
    """The original name of a variant `name` by `schedule_calls`."""
    return re.sub(r"_packed\d*$", "", name)


def _of_stmt(stmt: Stmt, loops: Loops) -> Dim | None:
    match stmt:
        case Store(value=value):
            return dims.mul(_of_value(value), dims.product(loops.values()))
        case For(var=var, body=body):
            extent = dim_of(stmt.extent)
            return None if extent is None else _of_stmt(body, {**loops, var: extent})
        case Seq(body=parts):
            return _sum([_of_stmt(part, loops) for part in parts])
        case IfThenElse(then_case=then_case, else_case=else_case):
            yes = _of_stmt(then_case, loops)
            no = 0 if else_case is None else _of_stmt(else_case, loops)
            return yes if yes == no else None
        case TirBlock(body=body, init=init):
            once = 0 if init is None else _of_init(stmt, init, loops)
            return _sum([_of_stmt(body, loops), once])
        case _:
            return None


def _of_init(block: TirBlock, init: Stmt, loops: Loops) -> Dim | None:
    """The operations before the first iteration of the loops that a block reduces over."""
    over = [axis.binding for axis in block.axes if axis.kind == "reduce"]
    if all(isinstance(binding, TirVar) for binding in over):
        return _of_stmt(init, {var: extent for var, extent in loops.items() if var not in over})
    return 0 if _of_stmt(init, loops) == 0 else None


def _sum(parts: list[Dim | None]) -> Dim | None:
    total: Dim = 0
    for part in parts:
        if part is None:
            return None
        total = dims.add(total, part)
    return total


def _of_value(value: TirExpr) -> int:
    """The operations on elements in `value`; a shared subexpression counts once."""
    of_elements: dict[int, bool] = {}
    for expr in postorder(value):
        below = any(of_elements[id(o)] for o in operands(expr))
        of_elements[id(expr)] = below or isinstance(expr, BufferLoad)
    total = 0
    seen: set[int] = set()
    todo = [value]
    while todo:
        expr = todo.pop()
        if id(expr) not in seen and not isinstance(expr, BufferLoad):
            seen.add(id(expr))
            todo.extend(operands(expr))
            total += of_elements[id(expr)] * _own(expr)
    return total


def _own(expr: TirExpr) -> int:
    match expr:
        case Intrinsic(name="fma"):
            return 2
        case Intrinsic() | Binary() | Not():
            return 1
        case _:
            return 0

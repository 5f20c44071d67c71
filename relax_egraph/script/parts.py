"""The text of a part of a program, as it is in the text of the whole module."""

from typing import cast

from relax_egraph.errors import IllFormed
from relax_egraph.ir.brief import brief
from relax_egraph.ir.expr import (
    BindingBlock,
    DataflowBlock,
    Expr,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.script.expression_printer import Constants
from relax_egraph.script.printer import FunctionPrinter, print_module
from relax_egraph.script.tir_printer import prim_func_lines
from relax_egraph.tir.stmt import PrimFunc


def print_part(part: object) -> str:
    """The text of a module, a function, a block, a binding or an expression.

    A function has the name ``main``.  A part that no script has, such as a conditional for an
    operand, is shortened to one line.
    """
    if isinstance(part, IRModule):
        return print_module(part)
    try:
        return "\n".join(_lines(part)) + "\n"
    except IllFormed:
        return brief(part)


def _lines(part: object) -> list[str]:
    printer = FunctionPrinter({}, Constants())
    match part:
        case PrimFunc():
            return prim_func_lines("main", part, "")
        case Function():
            return printer.lines("main", part, "")
        case SeqExpr():
            return printer.sequence(part, "")
        case BindingBlock() | DataflowBlock():
            return printer.block(part, "")
        case VarBinding() | MatchCast():
            return printer.binding(part, "")
        case If():
            return printer.binding(VarBinding(Var("_", part.struct_info), part), "")
        case _:
            return [printer.expressions.text(cast(Expr, part))]

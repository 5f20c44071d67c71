"""Whether the operators of a loop function are worth it: they need no more kernels than it has."""

from relax_egraph.ir.expr import Call, Constant, Expr, Function, PrimValue, ShapeExpr, Tuple
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import symbols_of
from relax_egraph.ir.walk import bindings_of

VIEWS = frozenset({"reshape", "expand_dims", "squeeze"})


def kernels_of(function: Function) -> int:
    """The least number of kernels that the operators of `function` run as.

    An operator that fuses with none is a kernel, all others may be one.  What is computed of
    nothing but constants is computed once.
    """
    alone, together = 0, False
    for binding in bindings_of(function.body):
        call = getattr(binding, "value", None)
        if isinstance(call, Call) and isinstance(call.op, Op) and not _is_constant(call):
            if not call.op.fusible:
                alone += 1
            elif call.op.name not in VIEWS:
                together = True
    return alone + together


def _is_constant(value: Expr) -> bool:
    match value:
        case Call(args=args):
            return all(map(_is_constant, args))
        case Tuple(fields=fields):
            return all(map(_is_constant, fields))
        case ShapeExpr() | PrimValue():
            return not symbols_of(value.struct_info)
        case _:
            return isinstance(value, Constant)

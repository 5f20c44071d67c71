"""Whether the operators of a loop function are worth it: few of them fuse with none."""

from relax_egraph.ir.expr import Call, Constant, Expr, Function, PrimValue, ShapeExpr, Tuple
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import symbols_of
from relax_egraph.ir.walk import bindings_of


def kernels_alone(function: Function) -> int:
    """The number of operators of `function` that are kernels of their own, as they fuse with none.

    All others may be a kernel with what is around the call.  What is computed of nothing but
    constants is computed once.
    """
    values = (getattr(binding, "value", None) for binding in bindings_of(function.body))
    return sum(
        isinstance(call, Call)
        and isinstance(call.op, Op)
        and not call.op.fusible
        and not _is_constant(call)
        for call in values
    )


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

"""The intrinsics of closures: functions of the module that carry some of their arguments."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.agreement import bind, substituted
from relax_egraph.ir.expr import Call, Expr, GlobalVar, Tuple, Var
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import FuncStructInfo, ObjectStructInfo, StructInfo


@intrinsic()
def make_closure(call: Call) -> StructInfo:
    """The function ``args[0]``, its last parameters bound to the fields of ``args[1]``."""
    function, captured = _function_and_operands("make_closure", call)
    info = function.struct_info
    if not isinstance(info, FuncStructInfo) or info.params is None:
        return info
    left = len(info.params) - len(captured)
    if left < 0:
        raise IllTyped(
            f"R.make_closure: {len(captured)} captured values, the function takes "
            f"{len(info.params)}"
        )
    values = bind(info.params[left:], [c.struct_info for c in captured])
    params = tuple(substituted(p, values) for p in info.params[:left])
    return FuncStructInfo(params, substituted(info.ret, values), info.purity)


@intrinsic(pure=False)
def invoke_closure(call: Call) -> StructInfo:
    """Call ``args[0]``, a closure, with the fields of ``args[1]``; ``sinfo_args`` say the result.

    The result is checked to be what they say.
    """
    return _result("invoke_closure", call)


@intrinsic()
def invoke_pure_closure(call: Call) -> StructInfo:
    """``R.invoke_closure`` of a function that has no effects."""
    return _result("invoke_pure_closure", call)


def _result(name: str, call: Call) -> StructInfo:
    function, args = _function_and_operands(name, call)
    if call.sinfo_args:
        return call.sinfo_args[0]
    info = function.struct_info
    if not isinstance(info, FuncStructInfo):
        return ObjectStructInfo()
    params = info.params or ()
    infos = [a.struct_info for a in args]
    return substituted(info.ret, bind(params, infos) if len(params) == len(infos) else {})


def _function_and_operands(name: str, call: Call) -> tuple[Expr, tuple[Expr, ...]]:
    if len(call.args) != 2 or not isinstance(call.args[0], GlobalVar | Var):
        raise IllTyped(f"R.{name} takes a function and a tuple of operands")
    function, operands = call.args
    info = function.struct_info
    if not isinstance(info, FuncStructInfo | ObjectStructInfo):
        raise IllTyped(f"R.{name}: the function is {info}, needs a function")
    if not isinstance(operands, Tuple):
        raise IllTyped(f"R.{name}: the operands are {operands.struct_info}, needs a tuple")
    return function, operands.fields

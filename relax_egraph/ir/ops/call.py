"""The intrinsics that call what lies below the graph: loop functions and packed functions."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.expr import Call, ExternFunc, GlobalVar, ShapeExpr, Tuple
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


@intrinsic()
def call_tir(call: Call) -> StructInfo:
    """Allocate outputs of ``out_sinfo``, run the loop function on operands and outputs.

    ``args`` are the `GlobalVar`, a `Tuple` of operands, and perhaps a `ShapeExpr` of ``tir_vars``.
    """
    if not 2 <= len(call.args) <= 3 or not isinstance(call.args[0], GlobalVar):
        raise IllTyped("R.call_tir takes a function of the module and a tuple of operands")
    if not isinstance(call.args[1], Tuple):
        raise IllTyped(f"R.call_tir: the operands are {call.args[1].struct_info}, needs a tuple")
    if len(call.args) == 3 and not isinstance(call.args[2], ShapeExpr):
        raise IllTyped("R.call_tir: tir_vars is no shape")
    return _out("call_tir", call)


@intrinsic()
def call_dps_packed(call: Call) -> StructInfo:
    """Allocate outputs of ``out_sinfo``, call the packed function on operands and outputs."""
    if len(call.args) != 2 or not isinstance(call.args[0], ExternFunc):
        raise IllTyped(
            "R.call_dps_packed takes the name of a packed function and a tuple of operands"
        )
    if not isinstance(call.args[1], Tuple):
        raise IllTyped(
            f"R.call_dps_packed: the operands are {call.args[1].struct_info}, needs a tuple"
        )
    return _out("call_dps_packed", call)


@intrinsic()
def call_pure_packed(call: Call) -> StructInfo:
    """Call a packed function that has no effects; its result is what ``sinfo_args`` say."""
    return _packed("call_pure_packed", call)


@intrinsic(pure=False)
def call_packed(call: Call) -> StructInfo:
    """Call a packed function; its result is what ``sinfo_args`` say."""
    return _packed("call_packed", call)


def _packed(name: str, call: Call) -> StructInfo:
    if not call.args or not isinstance(call.args[0], ExternFunc):
        raise IllTyped(f"R.{name} takes the name of a packed function first")
    return call.sinfo_args[0] if call.sinfo_args else ObjectStructInfo()


def _out(name: str, call: Call) -> StructInfo:
    if not call.sinfo_args:
        raise IllTyped(f"R.{name} needs out_sinfo: the struct info of what it returns")
    outputs = call.sinfo_args[0]
    for info in outputs.fields if isinstance(outputs, TupleStructInfo) else (outputs,):
        known = isinstance(info, TensorStructInfo) and info.shape is not None and info.dtype
        if not known or isinstance(info, ShapeStructInfo):
            raise IllTyped(
                f"R.{name}: out_sinfo is {info}, needs a tensor of known shape and dtype"
            )
    return outputs

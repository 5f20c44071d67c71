"""The intrinsics that call what lies below the graph: loop functions and packed functions."""

from collections.abc import Sequence

from relax_egraph.errors import IllTyped
from relax_egraph.ir.agreement import relation
from relax_egraph.ir.expr import Call, Expr, ExternFunc, GlobalVar, ShapeExpr, Tuple
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)


@intrinsic()
def call_tir(call: Call) -> StructInfo:
    """Allocate outputs of ``out_sinfo``, run the loop function on operands and outputs.

    ``args`` are the `GlobalVar`, a `Tuple` of operands, and perhaps a `ShapeExpr` of ``tir_vars``.
    """
    _loops("call_tir", call)
    return _out("call_tir", call)


@intrinsic(pure=False)
def call_tir_inplace(call: Call) -> StructInfo:
    """Run the loop function, which writes into operands: ``inplace_indices`` say which.

    Result ``i`` is operand ``inplace_indices[i]``, or is allocated where that is -1.  ``args`` are
    those of ``call_tir``.  Whatever else reads such an operand sees it changed.
    """
    operands = _loops("call_tir_inplace", call)
    out = _out("call_tir_inplace", call)
    _check_places("call_tir_inplace", "out_sinfo", call, operands, out)
    return out


def inplace_indices(call: Call) -> tuple[int, ...]:
    """The operand that each result of a call that writes in place is; -1 for a new tensor."""
    places = call.attrs.get("inplace_indices")
    if isinstance(places, int):
        return (places,)
    if not isinstance(places, tuple) or not all(isinstance(place, int) for place in places):
        raise IllTyped(f"{call.op}: inplace_indices is {places!r}, needs a list of ints")
    return tuple(place for place in places if isinstance(place, int))


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


@intrinsic(pure=False)
def call_inplace_packed(call: Call) -> StructInfo:
    """Call a packed function that writes into operands: ``inplace_indices`` say which.

    Result ``i`` is operand ``inplace_indices[i]``, or where that is -1 what the function returns.
    It returns all results, alone or in a tuple; those in place are ignored.  Whatever else
    reads such an operand sees it changed.
    """
    out = _packed("call_inplace_packed", call)
    if not call.sinfo_args:
        raise IllTyped("R.call_inplace_packed needs sinfo_args: the struct info of its results")
    _check_places("call_inplace_packed", "sinfo_args", call, call.args[1:], out)
    return out


def claims_besides_operands(call: Call) -> StructInfo:
    """The claimed results of an ``R.call_inplace_packed``, without claims for results in place.

    A function whose results are all in place need not return anything.
    """
    claim, places = call.sinfo_args[0], inplace_indices(call)
    if not isinstance(claim, TupleStructInfo) or min(places) >= 0:
        return TupleStructInfo(())
    fields = zip(claim.fields, places, strict=True)
    return TupleStructInfo(tuple(f if p < 0 else ObjectStructInfo() for f, p in fields))


def _check_places(
    name: str, claim: str, call: Call, operands: Sequence[Expr], out: StructInfo
) -> None:
    """Raise `IllTyped` if results in place contradict the operands that they are."""
    results = out.fields if isinstance(out, TupleStructInfo) else (out,)
    places = inplace_indices(call)
    if len(places) != len(results):
        raise IllTyped(
            f"R.{name}: inplace_indices {list(places)} name {len(places)} results, "
            f"{claim} has {len(results)}"
        )
    for place, result in zip(places, results, strict=True):
        if not -1 <= place < len(operands) or (place >= 0 and places.count(place) > 1):
            raise IllTyped(
                f"R.{name}: inplace_indices {list(places)}, needs -1 or the number "
                f"of one of {len(operands)} operands, each at most once"
            )
        if place >= 0 and relation(result, operands[place].struct_info) == "contradiction":
            raise IllTyped(
                f"R.{name}: operand {place} is {operands[place].struct_info}, "
                f"but {claim} says {result}"
            )
    if all(place == -1 for place in places):
        other = name.replace("_inplace", "")
        raise IllTyped(f"R.{name}: no result is in place, use R.{other}")


def _loops(name: str, call: Call) -> tuple[Expr, ...]:
    """The operands of a call of a loop function; raises `IllTyped` for arguments of other kinds."""
    if not 2 <= len(call.args) <= 3 or not isinstance(call.args[0], GlobalVar):
        raise IllTyped(f"R.{name} takes a function of the module and a tuple of operands")
    if not isinstance(call.args[1], Tuple):
        raise IllTyped(f"R.{name}: the operands are {call.args[1].struct_info}, needs a tuple")
    if len(call.args) == 3 and not isinstance(call.args[2], ShapeExpr):
        raise IllTyped(f"R.{name}: tir_vars is no shape")
    return call.args[1].fields


def _packed(name: str, call: Call) -> StructInfo:
    if not call.args or not isinstance(call.args[0], ExternFunc):
        raise IllTyped(f"R.{name} takes the name of a packed function first")
    return call.sinfo_args[0] if call.sinfo_args else ObjectStructInfo()


def _out(name: str, call: Call) -> StructInfo:
    if not call.sinfo_args:
        raise IllTyped(f"R.{name} needs out_sinfo: the struct info of what it returns")
    outputs = call.sinfo_args[0]
    for info in outputs.fields if isinstance(outputs, TupleStructInfo) else (outputs,):
        if not isinstance(info, TensorStructInfo) or info.shape is None:
            raise IllTyped(
                f"R.{name}: out_sinfo is {info}, needs a tensor of known shape and dtype"
            )
        if info.dtype is None and name != "call_dps_packed":
            raise IllTyped(f"R.{name}: out_sinfo is {info}, needs a tensor of known dtype")
    return outputs

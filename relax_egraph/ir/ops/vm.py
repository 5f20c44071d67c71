"""The intrinsics of the shape heap: symbolic dimensions at run time.

A heap is a list of integers, one for each dimension of a function.  Patterns and dimensions
are texts over its slots: ``n -> @0`` stores, ``n * 4 == @2`` compares, ``@0 * 4`` computes.
`where` and `expected` are parts of the message of a failed check.  Each is the
packed function ``vm.builtin.<name>``.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.expr import Call, PrimValue, StringImm, Var
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TupleStructInfo,
)

_NOTHING = TupleStructInfo(())


@intrinsic("vm", pure=False)
def alloc_shape_heap(call: Call) -> StructInfo:
    """``R.vm.alloc_shape_heap(size)``: a heap of `size` dimensions."""
    _constants("alloc_shape_heap", call, 0, PrimValue)
    return ObjectStructInfo()


@intrinsic("vm", pure=False)
def check_tensor_info(call: Call) -> StructInfo:
    """``R.vm.check_tensor_info(value, where, expected, ndim, dtype)``; -1 and "" take any."""
    _constants("check_tensor_info", call, 1, StringImm, StringImm, PrimValue, StringImm)
    return _NOTHING


@intrinsic("vm", pure=False)
def check_shape_info(call: Call) -> StructInfo:
    """``R.vm.check_shape_info(value, where, expected, ndim)``; -1 takes any."""
    _constants("check_shape_info", call, 1, StringImm, StringImm, PrimValue)
    return _NOTHING


@intrinsic("vm", pure=False)
def check_tuple_info(call: Call) -> StructInfo:
    """``R.vm.check_tuple_info(value, where, expected, count)``."""
    _constants("check_tuple_info", call, 1, StringImm, StringImm, PrimValue)
    return _NOTHING


@intrinsic("vm", pure=False)
def check_prim_info(call: Call) -> StructInfo:
    """``R.vm.check_prim_info(value, where, expected, dtype)``: a number of the host."""
    _constants("check_prim_info", call, 1, StringImm, StringImm, StringImm)
    return _NOTHING


@intrinsic("vm", pure=False)
def check_func_info(call: Call) -> StructInfo:
    """``R.vm.check_func_info(value, where, expected)``."""
    _constants("check_func_info", call, 1, StringImm, StringImm)
    return _NOTHING


@intrinsic("vm", pure=False)
def match_shape(call: Call) -> StructInfo:
    """``R.vm.match_shape(value, heap, where, expected, *patterns)``: one pattern for each axis."""
    patterns = (StringImm,) * (len(call.args) - 4)
    _constants("match_shape", call, 2, StringImm, StringImm, *patterns)
    return _NOTHING


@intrinsic("vm", pure=False)
def match_operand(call: Call) -> StructInfo:
    """``R.vm.match_operand(value, heap, refusal, *patterns)``: one pattern for each axis."""
    _constants("match_operand", call, 2, *(StringImm,) * (len(call.args) - 2))
    return _NOTHING


@intrinsic("vm", pure=False)
def match_prim(call: Call) -> StructInfo:
    """``R.vm.match_prim(value, heap, where, expected, pattern)``: an integer of the host."""
    _constants("match_prim", call, 2, StringImm, StringImm, StringImm)
    return _NOTHING


@intrinsic("vm", pure=False)
def compute_shapes(call: Call) -> StructInfo:
    """``R.vm.compute_shapes(heap, *slots_and_dims)``: evaluate each dimension into a slot."""
    pairs = len(call.args) // 2
    _constants("compute_shapes", call, 1, *(PrimValue, StringImm) * pairs)
    return _NOTHING


@intrinsic("vm", pure=False)
def make_shape(call: Call) -> StructInfo:
    """``R.vm.make_shape(heap, *dims)``: a shape, each extent a number or a slot."""
    _constants("make_shape", call, 1, *(StringImm,) * (len(call.args) - 1))
    return ShapeStructInfo(None, len(call.args) - 1)


@intrinsic("vm", pure=False)
def load_prim(call: Call) -> StructInfo:
    """``R.vm.load_prim(heap, slot)``: the dimension in a slot."""
    _constants("load_prim", call, 1, PrimValue)
    return PrimStructInfo("int64")


@intrinsic("vm", pure=False)
def kill_object(call: Call) -> StructInfo:
    """``R.vm.kill_object(value)``: release a value after its last use."""
    if len(call.args) != 1 or not isinstance(call.args[0], Var):
        raise IllTyped("R.vm.kill_object takes a variable")
    return _NOTHING


def _constants(name: str, call: Call, values: int, *kinds: type) -> None:
    """Raise `IllTyped` unless the operands after the first `values` are literals of `kinds`."""
    if len(call.args) != values + len(kinds):
        raise IllTyped(f"R.vm.{name} takes {values + len(kinds)} operands, got {len(call.args)}")
    for place, (arg, kind) in enumerate(zip(call.args[values:], kinds, strict=True), values):
        if not isinstance(arg, kind):
            noun = "a number" if kind is PrimValue else "a string"
            raise IllTyped(f"R.vm.{name}: operand {place} is {arg.struct_info}, needs {noun}")

"""The intrinsics of storage: lowering introduces them to place tensors.

Their operands are leaves, so that a script can print and parse them: sizes and offsets are
`PrimValue` in bytes, dtypes `StringImm`.
"""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.expr import Call, Expr, StringImm
from relax_egraph.ir.op import intrinsic
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    tensor,
)


@intrinsic("builtin", pure=False)
def alloc_tensor(call: Call) -> StructInfo:
    """``R.builtin.alloc_tensor(shape, dtype)``: a new tensor, its elements not initialised."""
    shape, dtype = _operands("builtin.alloc_tensor", call, "shape", "dtype")
    return _tensor("builtin.alloc_tensor", shape, dtype)


@intrinsic("memory", pure=False)
def alloc_storage(call: Call) -> StructInfo:
    """``R.memory.alloc_storage(size)``: `size` bytes, not initialised."""
    (size,) = _operands("memory.alloc_storage", call, "size")
    _integer("memory.alloc_storage", "size", size)
    return ObjectStructInfo()


@intrinsic("memory", pure=False)
def alloc_tensor_(call: Call) -> StructInfo:
    """``R.memory.alloc_tensor(storage, offset, shape, dtype)``: a tensor in a storage."""
    name = "memory.alloc_tensor"
    _, offset, shape, dtype = _operands(name, call, "storage", "offset", "shape", "dtype")
    _integer(name, "offset", offset)
    return _tensor(name, shape, dtype)


@intrinsic("memory")
def size_of(call: Call) -> StructInfo:
    """``R.memory.size_of(shape, dtype)``: the bytes of a tensor."""
    shape, dtype = _operands("memory.size_of", call, "shape", "dtype")
    _tensor("memory.size_of", shape, dtype)
    return PrimStructInfo("int64")


def _operands(name: str, call: Call, *params: str) -> tuple[Expr, ...]:
    if len(call.args) != len(params):
        raise IllTyped(
            f"R.{name} takes {len(params)} operands ({', '.join(params)}), got {len(call.args)}"
        )
    return call.args


def _integer(name: str, param: str, value: Expr) -> None:
    info = value.struct_info
    if not isinstance(info, PrimStructInfo) or info.dtype != "int64":
        raise IllTyped(f"R.{name}: operand {param} is {info}, needs an int64 scalar")


def _tensor(name: str, shape: Expr, dtype: Expr) -> StructInfo:
    info = shape.struct_info
    if not isinstance(info, ShapeStructInfo):
        raise IllTyped(f"R.{name}: operand shape is {info}, needs a shape")
    if not isinstance(dtype, StringImm) or dtype.value not in DTYPES:
        raise IllTyped(f"R.{name}: operand dtype is no dtype, needs one of {', '.join(DTYPES)}")
    return tensor(info.values, dtype.value, info.ndim)

"""Allocations become storages, and tensors that lie in them."""

import pytest

from relax_egraph.errors import IllTyped
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Expr, PrimValue, ShapeExpr, StringImm, Tuple, Var
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.vm_memory_lower import vm_memory_lower
from tests.support.lowered import f32, n, text


def test_each_tensor_gets_a_storage_of_its_size_in_bytes() -> None:
    bb = BlockBuilder()
    with bb.function("main", [x := Var("x", f32(n))]):
        a = bb.emit(call("builtin.alloc_tensor", ShapeExpr((n, 4)), StringImm("float32")), "a")
        b = bb.emit(call("builtin.alloc_tensor", ShapeExpr((3,)), StringImm("bool")), "b")
        bb.emit_func_output(Tuple((x, a, b)))
    before = bb.get()

    after = vm_memory_lower(before)

    assert not find_ill_formed(after)
    assert text(after).splitlines()[1:] == [
        "  block",
        "    storage: R.Object = R.memory.alloc_storage(n * 16)",
        '    a: R.Tensor((n, 4), "float32") = '
        "R.memory.alloc_tensor(storage, 0, shape(n, 4), 'float32')",
        "    storage1: R.Object = R.memory.alloc_storage(3)",
        "    b: R.Tensor((3,), \"bool\") = R.memory.alloc_tensor(storage1, 0, shape(3,), 'bool')",
        "  return (x, a, b)",
    ]


def test_the_size_of_a_computed_shape_is_computed() -> None:
    bb = BlockBuilder()
    s = Var("s", ShapeStructInfo(None, 2))
    with bb.function("main", [s]):
        a = bb.emit(call("builtin.alloc_tensor", s, StringImm("float64")), "a")
        bb.emit_func_output(a)

    after = vm_memory_lower(bb.get())

    assert text(after).splitlines()[1:] == [
        "  block",
        "    size: R.Prim(\"int64\") = R.memory.size_of(s, 'float64')",
        "    storage: R.Object = R.memory.alloc_storage(size)",
        '    a: R.Tensor(dtype="float64", ndim=2) = '
        "R.memory.alloc_tensor(storage, 0, s, 'float64')",
        "  return a",
    ]


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        (
            "builtin.alloc_tensor",
            [ShapeExpr((n,))],
            "R.builtin.alloc_tensor takes 2 operands (shape, dtype), got 1",
        ),
        (
            "builtin.alloc_tensor",
            [PrimValue(3), StringImm("float32")],
            "R.builtin.alloc_tensor: operand shape is R.Prim(value=3), needs a shape",
        ),
        (
            "memory.size_of",
            [ShapeExpr((n,)), StringImm("half")],
            "R.memory.size_of: operand dtype is no dtype, needs one of "
            "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
            "float16, bfloat16, float32, float64",
        ),
        (
            "memory.alloc_storage",
            [StringImm("4")],
            "R.memory.alloc_storage: operand size is R.Object, needs an int64 scalar",
        ),
    ],
)
def test_memory_intrinsics_refuse_other_operands(name: str, args: list[Expr], message: str) -> None:
    with pytest.raises(IllTyped) as error:
        call(name, *args)

    assert str(error.value) == message

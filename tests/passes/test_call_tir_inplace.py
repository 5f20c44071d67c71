"""Loop functions that write into their operands."""

from collections.abc import Sequence

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import IllTyped
from relax_egraph.ir.block_builder import BlockBuilder, call_tir
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import GlobalVar, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import StructInfo, tensor
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.tir.interpret import run_in_place

LOOPS = parse("""
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(x: T.Buffer(("n",), "float32")):
        T.func_attr({"num_outputs": 0})
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                x[v] = x[v] * T.float32(2)

    @T.prim_func(private=True)
    def double_and_add(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                x[v] = x[v] * T.float32(2)
        for i in range(n):
            with T.block("add"):
                v = T.axis.spatial(n, i)
                y[v] = x[v] + T.float32(1)
""")
VECTOR = tensor((4,), "float32")


def calling(
    name: str, places: Sequence[int], out: StructInfo | Sequence[StructInfo], *, pure: bool = False
) -> IRModule:
    bb = BlockBuilder(LOOPS)
    x = Var("x", VECTOR)
    callee = GlobalVar(name, LOOPS[name].struct_info)
    with bb.function("main", [x]):
        call = call_tir(callee, [x], out, inplace_indices=places)
        if pure:
            with bb.dataflow():
                gv = bb.emit_output(call)
        else:
            gv = bb.emit(call)
        bb.emit_func_output(gv)
    return bb.get()


@pytest.mark.parametrize("how", ["evaluated", "built"])
def test_a_result_in_place_is_the_operand_itself(how: str) -> None:
    module = calling("double", [0], VECTOR)
    x = np.arange(4, dtype=np.float32)

    if how == "built":
        out = VirtualMachine(build(module))["main"](x)
    else:
        out = evaluate(module, "main", x, prim_func=run_in_place)

    np.testing.assert_array_equal(out, [0, 2, 4, 6])
    np.testing.assert_array_equal(x, [0, 2, 4, 6])


@pytest.mark.parametrize("how", ["evaluated", "built"])
def test_other_results_are_allocated(how: str) -> None:
    module = calling("double_and_add", [0, -1], [VECTOR, VECTOR])
    x = np.arange(4, dtype=np.float32)

    if how == "built":
        doubled, more = VirtualMachine(build(module))["main"](x)
    else:
        doubled, more = evaluate(module, "main", x, prim_func=run_in_place)

    np.testing.assert_array_equal(doubled, [0, 2, 4, 6])
    np.testing.assert_array_equal(more, [1, 3, 5, 7])


def test_a_dataflow_block_does_not_allow_it() -> None:
    module = calling("double", [0], VECTOR, pure=True)

    assert find_ill_formed(module) == [
        "main: gv calls R.call_tir_inplace, which has side effects: move it out of the dataflow "
        "block"
    ]


def test_results_that_do_not_fit_the_loop_function_are_found() -> None:
    module = calling("double", [0, -1], [VECTOR, VECTOR])

    assert find_ill_formed(module) == ["main: gv calls cls.double with 1 outputs, it takes 0"]


@pytest.mark.parametrize(
    ("places", "out", "message"),
    [
        (
            [0],
            [VECTOR, VECTOR],
            "R.call_tir_inplace: inplace_indices [0] name 1 results, out_sinfo has 2",
        ),
        (
            [1],
            VECTOR,
            "R.call_tir_inplace: inplace_indices [1], needs -1 or the number of one of 1 "
            "operands, each at most once",
        ),
        (
            [0, 0],
            [VECTOR, VECTOR],
            "R.call_tir_inplace: inplace_indices [0, 0], needs -1 or the number of one of 1 "
            "operands, each at most once",
        ),
        ([-1], VECTOR, "R.call_tir_inplace: no result is in place, use R.call_tir"),
        (
            [0],
            tensor((5,), "float32"),
            'R.call_tir_inplace: operand 0 is R.Tensor((4,), "float32"), but out_sinfo says '
            'R.Tensor((5,), "float32")',
        ),
    ],
)
def test_places_that_cannot_be_are_refused(
    places: list[int], out: StructInfo | list[StructInfo], message: str
) -> None:
    with pytest.raises(IllTyped) as refused:
        calling("double", places, out)

    assert str(refused.value) == message

"""Dataflow blocks become binding blocks."""

from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from tests.support.lowered import f32, k, n, text


def two_blocks() -> IRModule:
    bb = BlockBuilder()
    x = Var("x", f32(n, 4))
    with bb.function("main", [x]):
        with bb.dataflow():
            lv = bb.emit(call("add", x, x))
            gv = bb.emit_output(call("nn.relu", lv))
        seen = bb.emit(call("add", gv, gv), "seen")
        with bb.dataflow():
            cast = bb.emit_match_cast(seen, f32(k, 4), "cast")
            out = bb.emit_output(call("nn.relu", cast), "out")
        bb.emit_func_output(out)
    return bb.get()


def test_variables_of_dataflow_blocks_become_variables_of_the_function() -> None:
    before = two_blocks()

    after = to_non_dataflow(before)

    assert not find_ill_formed(after)
    assert text(before) == (
        '(x: R.Tensor((n, 4), "float32")) -> R.Tensor((k, 4), "float32")\n'
        "  dataflow\n"
        '    local lv: R.Tensor((n, 4), "float32") = R.add(x, x)\n'
        '    gv: R.Tensor((n, 4), "float32") = R.nn.relu(lv)\n'
        "  block\n"
        '    seen: R.Tensor((n, 4), "float32") = R.add(gv, gv)\n'
        "  dataflow\n"
        '    local cast: R.Tensor((k, 4), "float32") = '
        'match_cast(seen, R.Tensor((k, 4), "float32"))\n'
        '    out: R.Tensor((k, 4), "float32") = R.nn.relu(cast)\n'
        "  return out"
    )
    assert text(after) == (
        '(x: R.Tensor((n, 4), "float32")) -> R.Tensor((k, 4), "float32")\n'
        "  block\n"
        '    lv: R.Tensor((n, 4), "float32") = R.add(x, x)\n'
        '    gv: R.Tensor((n, 4), "float32") = R.nn.relu(lv)\n'
        '    seen: R.Tensor((n, 4), "float32") = R.add(gv, gv)\n'
        '    cast: R.Tensor((k, 4), "float32") = match_cast(seen, R.Tensor((k, 4), "float32"))\n'
        '    out: R.Tensor((k, 4), "float32") = R.nn.relu(cast)\n'
        "  return out"
    )


def test_a_module_without_dataflow_is_returned_itself() -> None:
    module = to_non_dataflow(two_blocks())

    again = to_non_dataflow(module)

    assert again is module

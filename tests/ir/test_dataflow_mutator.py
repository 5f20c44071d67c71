"""A rewrite of dataflow blocks, as its user writes it."""

from typing import Any

import numpy as np

from relax_egraph.ir.block_builder import call, call_tir
from relax_egraph.ir.dataflow_mutator import DataflowMutator
from relax_egraph.ir.expr import Call, Constant, Expr, GlobalVar, VarBinding, const
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import dead_code_elimination
from relax_egraph.script import parse
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc, Seq
from tests.support.transformed import floats, same_value

BEFORE = """
@R.function
def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        lv0 = R.multiply(x, y)
        gv0 = R.add(lv0, y)
        R.output(gv0)
    return gv0
"""

FUSED = """
@R.function
def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        gv0 = R.ewise_fma(x, y, y)
        R.output(gv0)
    return gv0
"""


def whole(*shape: int) -> Any:
    """Whole numbers, of which products and sums are exact."""
    return np.round(floats(*shape))


def is_call(value: Any, name: str) -> bool:
    return isinstance(value, Call) and value.op is OPS[name]


class Fuse(DataflowMutator):
    """A product that is added to becomes one operator: two bindings become one."""

    def visit_dataflow_binding(self, binding: VarBinding) -> Expr:
        value = binding.value
        if not isinstance(value, Call) or not is_call(value, "add"):
            return value
        product = self.lookup_binding(value.args[0])
        if not isinstance(product, Call) or not is_call(product, "multiply"):
            return value
        return call("ewise_fma", *product.args, value.args[1])


class Split(DataflowMutator):
    """The reverse: one binding becomes two."""

    def visit_dataflow_binding(self, binding: VarBinding) -> Expr:
        value = binding.value
        if not isinstance(value, Call) or not is_call(value, "ewise_fma"):
            return value
        a, b, c = value.args
        product = self.builder.emit(call("multiply", a, b), "lv0")
        return call("add", product, c)


def test_two_bindings_become_one() -> None:
    before = parse(BEFORE)

    after = dead_code_elimination()(Fuse(before).transform())

    assert_structural_equal(after, parse(FUSED))
    same_value(before, after, whole(3, 4), whole(3, 4))


def test_one_binding_becomes_two() -> None:
    after = Split(parse(FUSED)).transform()

    assert_structural_equal(after, parse(BEFORE))
    assert after.script().count("lv0") == 2


def test_a_rewrite_that_changes_nothing_returns_the_module_itself() -> None:
    module = parse(BEFORE)

    assert Split(module).transform() is module


TWO_BLOCKS = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
    n = T.int64()
    m = T.int64()
    with R.dataflow():
        a = R.multiply(x, x)
        b = R.add(a, x)
        s = R.match_cast(b, R.Tensor((m, 4), "float32"))
        R.output(b, s)
    if c:
        with R.dataflow():
            d = R.multiply(s, s)
            e = R.add(d, s)
            R.output(e)
        r = R.exp(e)
    else:
        r = s
    return (r, b)
"""


def test_every_block_is_rewritten_and_its_outputs_are_read_after_it() -> None:
    before = parse(TWO_BLOCKS)

    after = dead_code_elimination()(Fuse(before).transform())

    expected = """
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), c: R.Tensor((), "bool")):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            b = R.ewise_fma(x, x, x)
            s = R.match_cast(b, R.Tensor((m, 4), "float32"))
            R.output(b, s)
        if c:
            with R.dataflow():
                e = R.ewise_fma(s, s, s)
                R.output(e)
            r = R.exp(e)
        else:
            r = s
        return (r, b)
    """
    assert_structural_equal(after, parse(expected))
    assert_well_formed(after)
    same_value(before, after, whole(2, 4), np.bool_(True))


def test_a_binding_may_become_a_leaf_and_an_output_keeps_its_name() -> None:
    class ToZero(DataflowMutator):
        def visit_dataflow_binding(self, binding: VarBinding) -> Expr:
            zero = const(np.zeros((3, 4), np.float32))
            return zero if is_call(binding.value, "multiply") else binding.value

    after = ToZero(parse(BEFORE)).transform()

    (block,) = next(iter(dict(after.relax_functions()).values())).body.blocks
    (last,) = block.bindings
    assert last.var.name == "gv0"
    assert isinstance(last.value, Call)
    assert isinstance(last.value.args[0], Constant)


def test_functions_are_added_by_the_builder() -> None:
    info = tensor((3, 4), "float32")
    loops = PrimFunc(tuple(Buffer(b, (3, 4), "float32") for b in "xyz"), Seq(()), 1)

    class ToLoops(DataflowMutator):
        def visit_dataflow_binding(self, binding: VarBinding) -> Expr:
            value = binding.value
            if not isinstance(value, Call):
                return value
            function = self.builder.add_func(loops, "loops")
            assert isinstance(function, GlobalVar)
            return call_tir(function, value.args, info)

    after = ToLoops(parse(BEFORE)).transform()

    assert isinstance(after, IRModule)
    assert list(after.functions) == ["loops", "loops1", "main"]
    assert_well_formed(after)

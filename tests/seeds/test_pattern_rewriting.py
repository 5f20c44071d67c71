"""A pattern found and replaced: by a mutator, and by a rule of one line."""

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, explain, parse, rules
from relax_egraph.ir.block_builder import call as apply
from relax_egraph.ir.brief import brief
from relax_egraph.ir.expr import Call, Constant, DataflowBlock, Expr, Function, SeqExpr, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import OPS
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import remove_all_unused
from tests.seeds.programs import floats, read

MY_MODULE = """
@tvm.script.ir_module 
class MyModule:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")): # type: ignore
        with R.dataflow():
            cls = MyModule
            lv0 = relax.op.multiply(x, y)
            gv0 = relax.op.add(lv0, y)
            R.output(gv0)
        return gv0
"""

HEAD = """\
@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((3, 4), "float32"),
        y: R.Tensor((3, 4), "float32"),
    ) -> R.Tensor((3, 4), "float32"):
        with R.dataflow():
"""

TAIL = """\
            R.output(gv0)
        return gv0
"""

LV0 = '            lv0: R.Tensor((3, 4), "float32") = R.multiply(x, y)\n'
SUM = '            gv0: R.Tensor((3, 4), "float32") = R.add(lv0, y)\n'
FMA = '            gv0: R.Tensor((3, 4), "float32") = R.ewise_fma(x, y, y)\n'


def main_of(module: IRModule) -> Function:
    function = module["main"]
    assert isinstance(function, Function)
    return function


# --- the data structure ---------------------------------------------------------------------


def test_the_module_prints_with_the_struct_info_of_every_variable() -> None:
    assert read(MY_MODULE).script() == HEAD + LV0 + SUM + TAIL


def test_a_module_holds_functions_and_a_function_parameters_and_a_body() -> None:
    relax_func = main_of(parse(MY_MODULE))

    assert type(relax_func) is Function
    assert str(list(relax_func.params)) == "[x, y]"
    assert type(relax_func.body) is SeqExpr
    assert relax_func.ret_struct_info == relax_func.body.body.struct_info


def test_the_body_is_blocks_of_bindings_and_a_binding_a_variable_and_a_value() -> None:
    func_body = main_of(parse(MY_MODULE)).body

    (dataflow_block,) = func_body.blocks
    binding = dataflow_block.bindings[0]

    assert type(dataflow_block) is DataflowBlock
    assert [b.var.name for b in dataflow_block.bindings] == ["lv0", "gv0"]
    assert type(binding) is VarBinding
    assert str(binding.var) == "lv0"
    assert brief(binding.value) == "R.multiply(x, y)"
    assert func_body.body is dataflow_block.bindings[1].var


def test_a_statement_is_a_tree_of_its_parts() -> None:
    """``a = b + 1``: an assignment, its target, an operation, its operands."""
    module = parse("""
@R.function
def main(b: R.Tensor((3,), "float32")):
    a = b + 1
    return a
""")
    function = main_of(module)

    ((assignment,),) = (block.bindings for block in function.body.blocks)

    assert isinstance(assignment, VarBinding)
    assert assignment.var.name == "a"
    operation = assignment.value
    assert isinstance(operation, Call)
    assert operation.op is OPS["add"]
    identifier, constant = operation.args
    assert identifier is function.params[0]
    assert isinstance(constant, Constant)
    np.testing.assert_array_equal(constant.data, np.float32(1), strict=True)


# --- EwiseFMARewriter -----------------------------------------------------------------------


class EwiseFMARewriter(ExprMutator):
    """The listing; the first statement is its ``visit_expr_post_order``."""

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        assert isinstance(visited, Call)
        if visited.op is not OPS["add"]:
            return visited
        value = self.lookup_binding(visited.args[0])
        if not isinstance(value, Call) or value.op is not OPS["multiply"]:
            return visited
        return apply("ewise_fma", value.args[0], value.args[1], visited.args[1])


def rewritten(module: IRModule) -> IRModule:
    function = EwiseFMARewriter().visit_expr(main_of(module))
    assert isinstance(function, Function)
    return IRModule({"main": function})


def test_the_rewriter_replaces_the_sum_and_leaves_the_product() -> None:
    updated = rewritten(parse(MY_MODULE))

    assert_well_formed(updated)
    assert updated.script() == HEAD + LV0 + FMA + TAIL


def test_remove_all_unused_drops_the_product() -> None:
    updated = remove_all_unused(rewritten(parse(MY_MODULE)))

    assert updated.script() == HEAD + FMA + TAIL


FMA_RULE = """
; a·b + c = fma(a, b, c); it rounds once
; float: reassociates
(rewrite (R.add (R.multiply a b) c) (R.ewise_fma a b c) :name "ewise-fma")
"""


def test_one_rule_does_what_the_rewriter_does() -> None:
    module = parse(MY_MODULE)

    explained = explain(module, [FMA_RULE], without=rules.FAMILIES)

    assert explained.rules == {"ewise-fma": 1}
    assert explained.module.script() == remove_all_unused(rewritten(module)).script()
    assert explained.module.script() == HEAD + FMA + TAIL


def test_the_module_and_both_rewritten_ones_compute_the_same() -> None:
    module = parse(MY_MODULE)
    x, y = floats(3, 4), 1 + floats(3, 4)
    candidates = [
        module,
        rewritten(module),
        remove_all_unused(rewritten(module)),
        explain(module, [FMA_RULE], without=rules.FAMILIES).module,
    ]

    results = [VirtualMachine(build(m))["main"](x, y) for m in candidates]

    for result in results:
        np.testing.assert_allclose(result, x * y + y, rtol=1e-6, atol=1e-6)


REJECTED = {
    "no sum": "lv0 = R.multiply(x, y)\n        gv0 = R.subtract(lv0, y)",
    "no product": "lv0 = R.subtract(x, y)\n        gv0 = R.add(lv0, y)",
    "a parameter": "lv0 = R.multiply(x, y)\n        gv0 = R.add(x, lv0)",
}


@pytest.mark.parametrize("case", REJECTED)
def test_what_does_not_match_stays_the_same_object(case: str) -> None:
    function = main_of(parse(function_of(REJECTED[case])))

    assert EwiseFMARewriter().visit_expr(function) is function


def test_the_rule_finds_the_product_on_either_side_once_sums_commute() -> None:
    """`canon` says ``a + b = b + a``: the mutator would need a second case."""
    module = parse(function_of(REJECTED["a parameter"]))

    explained = explain(module, [FMA_RULE], without=("shape", "fma", "idioms", "fusion"))

    assert explained.module.script() == HEAD + FMA.replace("(x, y, y)", "(x, y, x)") + TAIL


def function_of(statements: str) -> str:
    return f"""
@R.function
def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32")):
    with R.dataflow():
        {statements}
        R.output(gv0)
    return gv0
"""

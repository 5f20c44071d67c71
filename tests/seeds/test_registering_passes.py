"""A function made a pass: its name and level, sequences of passes, contexts."""

import numpy as np
import pytest

from relax_egraph import IRModule, parse
from relax_egraph.ir.block_builder import call as apply
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import (
    Function,
    If,
    SeqExpr,
    Var,
    const,
)
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import Pass, PassContext, Sequential, normalize
from tests.seeds.constant_folder import fold_constant_pass
from tests.seeds.programs import floats

INFO = tensor((2, 3), "float32")
X = Var("x", INFO)
ONE, TWO = const(1.0), const(2.0)

LET = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
    a = R.add(R.const(1.0, "float32"), R.const(2.0, "float32"))
    b = R.multiply(a, a)
    t = (b, x)
    d = t[0]
    e = R.add(x, d)
    if c:
        f = R.negative(b)
        g = R.add(e, f)
    else:
        g = e
    return g
"""

FOLDED = """
@R.function
def main(x: R.Tensor((2, 3), "float32"), c: R.Tensor((), "bool")):
    t = (R.const(9.0, "float32"), x)
    e = R.add(x, R.const(9.0, "float32"))
    if c:
        g = R.add(e, R.const(-9.0, "float32"))
    else:
        g = e
    return g
"""


def test_the_pass_has_a_name_a_level_and_needs_no_other() -> None:
    assert isinstance(fold_constant_pass, Pass)
    assert fold_constant_pass.name == "FoldConstant"
    assert fold_constant_pass.opt_level == 2
    assert fold_constant_pass.required == ()


def test_a_function_pass_is_applied_to_every_function_of_the_module() -> None:
    module = parse("""
@I.ir_module
class Module:
    @R.function
    def one(x: R.Tensor((2,), "float32")):
        y = R.add(R.const(1.0, "float32"), R.const(2.0, "float32"))
        z = R.add(x, y)
        return z

    @R.function
    def two(x: R.Tensor((2,), "float32")):
        y = R.negative(R.const(1.0, "float32"))
        z = R.add(x, y)
        return z
""")

    assert_structural_equal(
        fold_constant_pass(module),
        parse("""
@I.ir_module
class Module:
    @R.function
    def one(x: R.Tensor((2,), "float32")):
        z = R.add(x, R.const(3.0, "float32"))
        return z

    @R.function
    def two(x: R.Tensor((2,), "float32")):
        z = R.add(x, R.const(-1.0, "float32"))
        return z
"""),
    )


def nested() -> IRModule:
    """``x + exp(1 + 2 - x)``, nothing of it bound, and a branch for a value."""
    three = apply("add", ONE, TWO)
    inner = apply("exp", apply("subtract", three, X))
    branch = If(const(True), SeqExpr((), inner), SeqExpr((), X), INFO)
    value = apply("add", X, branch)
    return IRModule({"main": Function((X,), SeqExpr((), value), value.struct_info)})


NORMAL = """
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    if R.const(True, "bool"):
        a = R.subtract({three}, x)
        b = R.exp(a)
    else:
        b = x
    d = R.add(x, b)
    return d
"""


def sequential() -> Sequential:
    """``Sequential([FoldConstant(), ToANormalForm()])``."""
    return Sequential((fold_constant_pass, normalize))


def test_both_passes_of_the_sequence_are_applied_in_order() -> None:
    new_mod = sequential()(nested())

    assert_well_formed(new_mod)
    assert_structural_equal(new_mod, parse(NORMAL.format(three='R.const(3.0, "float32")')))
    assert_structural_equal(sequential()(new_mod), new_mod)
    x = floats(2, 3)
    np.testing.assert_allclose(evaluate(new_mod, "main", x), x + np.exp(3 - x), rtol=1e-6)


def test_a_context_of_a_lower_level_leaves_the_folding_out() -> None:
    with PassContext(opt_level=1):
        new_mod = sequential()(nested())

    unfolded = """
@R.function
def main(x: R.Tensor((2, 3), "float32")):
    if R.const(True, "bool"):
        s = R.add(R.const(1.0, "float32"), R.const(2.0, "float32"))
        a = R.subtract(s, x)
        b = R.exp(a)
    else:
        b = x
    d = R.add(x, b)
    return d
"""
    assert_structural_equal(new_mod, parse(unfolded))


@pytest.mark.parametrize(
    ("context", "runs"),
    [
        (PassContext(), ["FoldConstant", "normalize"]),
        (PassContext(opt_level=3), ["FoldConstant", "normalize"]),
        (PassContext(opt_level=0), ["normalize"]),
        (PassContext(opt_level=0, required_pass=["FoldConstant"]), ["FoldConstant", "normalize"]),
        (PassContext(disabled_pass=["FoldConstant"]), ["normalize"]),
    ],
    ids=["default", "3", "0", "0 and required", "disabled"],
)
def test_the_context_says_which_passes_run(context: PassContext, runs: list[str]) -> None:
    enabled = [p.name for p in (fold_constant_pass, normalize) if context.enables(p)]

    assert enabled == runs


def test_a_pass_that_is_called_runs_whatever_the_level() -> None:
    with PassContext(opt_level=0):
        assert_structural_equal(fold_constant_pass(parse(LET)), parse(FOLDED))


def test_a_pass_that_needs_another_runs_it_before() -> None:
    """``required``: what a pass depends on, as others depend on a normal form."""
    seen: list[str] = []

    def noting(name: str, *required: Pass) -> Pass:
        def run(module: IRModule) -> IRModule:
            seen.append(name)
            return module

        return Pass(name, 0, run, required)

    needed = noting("ToANormalForm")

    noting("Dependent", needed)(parse(LET))

    assert seen == ["ToANormalForm", "Dependent"]

"""What is declared and not known is checked, in every place where it can be declared."""

import numpy as np
import pytest

from relax_egraph.build import build
from relax_egraph.errors import RunError
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import BindingBlock, Function, If, MatchCast, SeqExpr, Var, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.passes.check_claims import check_claims
from relax_egraph.script import parse
from relax_egraph.vm import VirtualMachine
from tests.support.transformed import becomes, stays

CLAIMS = """
@I.ir_module
class Module:
    @R.function
    def distinct(x: R.Tensor(("n",), "float32")) -> R.Tensor((2,), "float32"):
        y = R.unique(x)
        return y
    @R.function
    def called(x: R.Tensor(("n",), "float32")):
        cls = Module
        y = cls.distinct(x)
        z = R.add(y, y)
        return z
    @R.function
    def declared(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y: R.Tensor((2,), "float32") = R.unique(x)
            z = R.add(y, y)
            R.output(z)
        return z
    @R.function
    def said(x: R.Tensor(("n",), "float32")):
        cls = Module
        y: R.Tensor((3,), "float32") = cls.anything(x)
        z = R.add(y, y)
        return z
    @R.function(private=True)
    def anything(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.unique(x)
        return y
"""

CHECKED = """
@I.ir_module
class Module:
    @R.function
    def distinct(x: R.Tensor(("n",), "float32")) -> R.Tensor((2,), "float32"):
        y = R.unique(x)
        result = R.match_cast(y, R.Tensor((2,), "float32"))
        return result
    @R.function
    def called(x: R.Tensor(("n",), "float32")):
        cls = Module
        y = cls.distinct(x)
        z = R.add(y, y)
        return z
    @R.function
    def declared(x: R.Tensor(("n",), "float32")):
        with R.dataflow():
            y1 = R.unique(x)
            y = R.match_cast(y1, R.Tensor((2,), "float32"))
            z = R.add(y, y)
            R.output(z)
        return z
    @R.function
    def said(x: R.Tensor(("n",), "float32")):
        cls = Module
        y1: R.Object = cls.anything(x)
        y = R.match_cast(y1, R.Tensor((3,), "float32"))
        z = R.add(y, y)
        return z
    @R.function(private=True)
    def anything(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.unique(x)
        return y
"""


def test_claims_become_casts() -> None:
    becomes(check_claims, CLAIMS, CHECKED)


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("called", "distinct: match_cast result"),
        ("declared", "declared: match_cast y"),
        ("said", "said: match_cast y"),
    ],
)
def test_a_claim_that_is_not_true_is_an_error_and_no_kernel_sees_it(name: str, where: str) -> None:
    module = parse(CLAIMS)
    x = np.zeros(5, np.float32)
    count = 3 if name == "said" else 2

    with pytest.raises(RunError) as error:
        evaluate(module, name, x)
    assert str(error.value) == (
        f'{where} is R.Tensor((1,), "float32"), needs R.Tensor(({count},), "float32")'
    )
    with pytest.raises(RunError) as error:
        VirtualMachine(build(module))[name](x)
    assert str(error.value) == (
        f'{where}: expected R.Tensor(({count},), "float32"), '
        f'got R.Tensor((1,), "float32"): dimension 0 is 1, needs {count}'
    )


def test_what_is_known_or_checked_elsewhere_stays() -> None:
    stays(
        check_claims,
        """
@I.ir_module
class Module:
    @R.function(private=True)
    def kernel(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"primitive": True})
        with R.dataflow():
            y: R.Tensor((n,), "float32") = R.exp(x)
            R.output(y)
        return y
    @R.function
    def main(x: R.Tensor(("n",), "float32"), f: R.Callable((R.Tensor,), R.Tensor)):
        n = T.int64()
        cls = Module
        a: R.Tensor("float32", ndim=1) = R.exp(x)
        b = cls.kernel(x)
        c = R.match_cast(a, R.Tensor((n,), "float32"))
        d = R.call_pure_packed("f", c, sinfo_args=(R.Tensor((n,), "float32"),))
        g: R.Callable((R.Tensor((n,)),), R.Tensor((n,))) = f
        return (a, b, d, g)
""".replace("            y: R.Tensor((n,)", "            y: R.Tensor((n,)").replace(
            '    def kernel(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):\n',
            '    def kernel(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):\n'
            "        n = T.int64()\n",
        ),
    )


def test_a_conditional_is_checked_in_the_branch_that_is_not_known() -> None:
    info, cond = tensor((2,), "float32"), Var("c", tensor((), "bool"))
    x, y, u = Var("x", info), Var("y", info), Var("u", tensor(None, "float32", 1))
    unknown = SeqExpr((BindingBlock((VarBinding(u, call("unique", x)),)),), u)
    value = If(cond, unknown, SeqExpr((), x), info)
    body = SeqExpr((BindingBlock((VarBinding(y, value),)),), y)
    module = IRModule({"main": Function((x, cond), body, info)})

    after = check_claims(module)

    result = Var("result", info)
    cast = BindingBlock((VarBinding(u, call("unique", x)), MatchCast(result, u, info)))
    checked = If(cond, SeqExpr((cast,), result), SeqExpr((), x), info)
    body = SeqExpr((BindingBlock((VarBinding(y, checked),)),), y)
    assert_structural_equal(after, IRModule({"main": Function((x, cond), body, info)}))


def test_a_cast_whose_variable_claims_more_is_followed_by_another() -> None:
    x, y = Var("x", tensor(None, "float32")), Var("y", tensor((2,), "float32"))
    weak = tensor(None, "float32", 1)
    body = SeqExpr((BindingBlock((MatchCast(y, x, weak),)),), y)
    module = IRModule({"main": Function((x,), body, y.struct_info)})

    after = check_claims(module)

    first = Var("first", weak)
    casts = (MatchCast(first, x, weak), MatchCast(y, first, y.struct_info))
    body = SeqExpr((BindingBlock(casts),), y)
    assert_structural_equal(after, IRModule({"main": Function((x,), body, y.struct_info)}))


EXTENTS = """
@R.function
def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
    with R.dataflow():
        y = R.zeros(R.shape([n - 4, n + 2]), "float32")
        z = R.exp(y)
        R.output(z)
    if c:
        a = R.ones(R.shape([n - 3]), "float32")
        r = R.sum(a)
    else:
        b = R.ones(R.shape([n - 3, n - 4]), "float32")
        r = R.sum(b)
    return z, r
"""

CHECKED_EXTENTS = """
@R.function
def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool")):
    with R.dataflow():
        y_shape = R.match_cast(R.shape([n - 4]), R.Shape((max(0, n - 4),)))
        y = R.zeros(R.shape([n - 4, n + 2]), "float32")
        z = R.exp(y)
        R.output(z)
    if c:
        a_shape = R.match_cast(R.shape([n - 3]), R.Shape((max(0, n - 3),)))
        a = R.ones(R.shape([n - 3]), "float32")
        r = R.sum(a)
    else:
        b_shape = R.match_cast(R.shape([n - 3]), R.Shape((max(0, n - 3),)))
        b = R.ones(R.shape([n - 3, n - 4]), "float32")
        r = R.sum(b)
    return z, r
"""


def test_an_extent_that_may_be_negative_is_checked_once_before_it_is_needed() -> None:
    becomes(check_claims, EXTENTS, CHECKED_EXTENTS)
    stays(check_claims, CHECKED_EXTENTS)


def test_extents_of_what_is_there_are_not_negative() -> None:
    stays(
        check_claims,
        """
@R.function
def main(x: R.Tensor(("n", "n - 4"), "float32"), w: R.Tensor(ndim=1, dtype="float32")):
    n = T.int64()
    v = R.match_cast(w, R.Tensor((n - 3,), "float32"))
    y = R.zeros(R.shape([n - 3, n - 4]), "float32")
    return y, v
""",
    )

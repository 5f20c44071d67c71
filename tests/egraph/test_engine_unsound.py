"""A rule that equates what cannot be equal stops the run, and is named."""

import pytest

from relax_egraph.egraph.engine import RuleBook, saturate
from relax_egraph.egraph.view import View
from relax_egraph.errors import SaturationError
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import tensor
from tests.support.hand_made import N, leaf, operation, ops, root, view


def unsound(*rules: str, program: View | None = None) -> str:
    with pytest.raises(SaturationError) as error:
        saturate(program or view(leaf(0), operation("nn.relu", 0)), RuleBook.default(rules))
    return str(error.value)


def test_a_rule_that_equates_different_shapes_is_named() -> None:
    assert unsound('(rewrite (R.nn.relu x) (R.sum x (vec-of 0) false) :name "relu-is-sum")') == (
        "rule relu-is-sum (<rules>:1:1) is unsound: it equates values of shapes (n, 4) and (4,)"
    )


def test_a_rule_that_equates_different_dtypes_is_named() -> None:
    assert unsound('(rewrite (R.nn.relu x) (R.astype x "int32") :name "relu-is-int")') == (
        "rule relu-is-int (<rules>:1:1) is unsound: it equates values of dtypes float32 and int32"
    )


def test_a_rule_that_leaves_a_broadcast_implicit_is_named() -> None:
    assert unsound(
        '(rewrite (R.nn.relu x) (R.maximum x (R.const 0.0 "float32")) :name "to-max")'
    ) == (
        "rule to-max (<rules>:1:1) is unsound: it applies R.maximum to shapes (n, 4) and (); "
        "a rule writes the broadcast out, (R.broadcast_to x s)"
    )


def test_the_rule_to_blame_is_the_one_that_breaks_not_one_that_helps() -> None:
    program = view(
        leaf(0), operation("permute_dims", 0, axes=(1, 0), info=tensor((4, N), "float32"))
    )
    helpers = (
        '(rewrite (R.permute_dims x p) (R.abs (R.permute_dims x p)) :name "still-well-typed")',
        '(rewrite (R.abs (R.permute_dims x axes)) x :name "drops-the-permutation")',
        '(rewrite (R.negative (R.abs x)) x :name "never-fires")',
    )

    message = unsound(*helpers, program=program)

    assert message == (
        "rule drops-the-permutation (<rules-2>:1:1) is unsound: "
        "it equates values of shapes (n, 4) and (4, n)"
    )


def test_shapes_that_could_be_equal_but_need_not_are_a_conflict() -> None:
    m = dims.symbol("m")
    program = view(
        leaf(0),
        leaf(1, tensor((m, 4), "float32")),
        operation("add", 0, 0),
        operation("exp", 1, info=tensor((m, 4), "float32")),
    )
    swapped = View(program.classes, (2, 3), program.leaves)

    message = unsound('(rewrite (R.add x x) (R.exp (Leaf 1)) :name "n-is-m")', program=swapped)

    assert message.endswith("it equates values of shapes (n, 4) and (m, 4)")


def test_after_an_unsound_rule_the_engine_works_on() -> None:
    unsound('(rewrite (R.nn.relu x) (R.sum x (vec-of 0) false) :name "relu-is-sum")')

    saturated = saturate(view(leaf(0), operation("nn.relu", 0)))

    assert "store" in ops(root(saturated))


def test_an_ill_typed_block_is_no_rules_fault() -> None:
    program = view(leaf(0), operation("exp", 0, info=tensor((N, 5), "float32")))

    with pytest.raises(SaturationError) as error:
        saturate(program)

    assert str(error.value) == (
        "the block is ill-typed: it equates values of shapes (n, 5) and (n, 4)"
    )


def test_a_rule_at_which_egglog_fails_is_named() -> None:
    rule = """
        (function pick (Tensor) i64 :no-merge)
        (rule ((= t (R.nn.relu x))) ((set (pick x) 1) (set (pick x) 2)) :name "picks-two")
    """

    message = unsound(rule)

    assert message.startswith("rule picks-two (<rules>:3:9) fails: egglog: ")


def test_a_rule_that_explodes_beside_an_unsound_one_does_not_hide_it() -> None:
    exploding = '(rewrite (R.nn.relu x) (R.nn.relu (R.add (R.nn.relu x) x)) :name "explodes")'
    broken = '(rewrite (R.nn.relu x) (R.sum x (vec-of 0) false) :name "relu-is-sum")'

    assert unsound(exploding, broken).startswith("rule relu-is-sum (<rules-2>:1:1) is unsound")


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (
            "(R.max x (vec-of 7) false)",
            'makes an ill-typed value: R.max of R.Tensor((n, 4), "float32"): '
            "axis 7 is outside of rank 2",
        ),
        (
            "(R.nn.softmax x 7)",
            'makes an ill-typed value: R.nn.softmax of R.Tensor((n, 4), "float32"): '
            "axis 7 is outside of rank 2",
        ),
        ("(R.max x (vec-of -1) true)", "equates values of shapes (n, 4) and (n, 1)"),
        ("(R.sum x (vec-of -2) false)", "equates values of shapes (n, 4) and (4,)"),
    ],
)
def test_a_rule_that_applies_an_operator_to_what_it_refuses_is_named(made: str, wrong: str) -> None:
    message = unsound(f'(rewrite (R.nn.relu x) {made} :name "refused")')

    assert message == f"rule refused (<rules>:1:1) is unsound: it {wrong}"

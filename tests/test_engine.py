"""Saturation: what goes in comes out, with all that the rules prove equal to it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from relax_egraph.egraph.engine import Budget, RuleBook, Saturated, StopReason, saturate
from relax_egraph.egraph.view import EClass, ENode, View
from relax_egraph.errors import SaturationError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Constant, Var
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor

N = dims.symbol("n")
TABLE = tensor((N, 4), "float32")


def leaf(key: int, info: TensorStructInfo = TABLE, scalar: float | None = None) -> EClass:
    return EClass("tensor", (ENode("leaf", key=key),), info, scalar is not None, scalar)


def made(
    op: str,
    *children: int | ShapeStructInfo,
    info: TensorStructInfo = TABLE,
    **attrs: Attr,
) -> EClass:
    return EClass("tensor", (ENode(op, children, tuple(attrs.items())),), info)


def view(*classes: EClass) -> View:
    """A view whose root is its last class; leaves are variables, or constants if scalars."""
    leaves = tuple(
        Var(f"x{k}", c.struct_info) if c.scalar is None else Constant(np.float32(c.scalar))
        for k, c in enumerate(classes)
        if c.nodes[0].op == "leaf"
    )
    return View(dict(enumerate(classes)), (len(classes) - 1,), leaves)


def shape(*values: Dim) -> ShapeStructInfo:
    return ShapeStructInfo(values, len(values))


def root(saturated: Saturated) -> EClass:
    return saturated.view.classes[saturated.view.roots[0]]


def ops(eclass: EClass) -> set[str]:
    return {node.op for node in eclass.nodes}


def without_rules() -> RuleBook:
    return RuleBook.default(families=())


FMA = '(rewrite (R.add (R.multiply a b) c) (R.ewise_fma a b c) :ruleset {} :name "mine")'


def test_a_product_that_is_added_to_is_a_multiply_add() -> None:
    program = view(leaf(0), leaf(1), leaf(2), made("multiply", 0, 1), made("add", 3, 2))

    saturated = saturate(program, RuleBook.default(families=["fma", "fusion"]))

    tensors = {
        number: eclass
        for number, eclass in saturated.view.classes.items()
        if eclass.sort == "tensor"
    }
    a, b, c, product, total = (saturated.became[k] for k in range(5))
    assert set(tensors) == {a, b, c, product, total}
    assert ENode("ewise_fma", (a, b, c)) in tensors[total].nodes
    assert ENode("add", (product, c)) in tensors[total].nodes
    assert saturated.report.matches == {"fma-from-add-multiply": 1, "load-of-store": 1}
    assert saturated.report.stop_reason == "saturated"


def test_every_class_has_the_struct_info_of_its_value() -> None:
    program = view(leaf(0), leaf(1), leaf(2), made("multiply", 0, 1), made("add", 3, 2))

    saturated = saturate(program)

    assert {c.struct_info for c in saturated.view.classes.values()} == {TABLE}
    assert {c.sort for c in saturated.view.classes.values()} == {"tensor", "kernel"}


def test_without_rules_each_operator_is_one_kernel() -> None:
    swapped = tensor((4, N), "float32")
    program = view(leaf(0), made("exp", 0), made("permute_dims", 1, info=swapped, axes=(1, 0)))

    saturated = saturate(program, without_rules())

    (store,) = [n for n in root(saturated).nodes if n.op == "store"]
    (kernel,) = saturated.view.classes[store.classes[0]].nodes
    assert (kernel.op, kernel.attrs) == ("permute_dims", (("axes", (1, 0)),))
    assert saturated.view.classes[kernel.classes[0]].nodes == (
        ENode("load", (saturated.became[1],)),
    )


def test_fusion_makes_a_chain_one_kernel() -> None:
    program = view(leaf(0), made("exp", 0), made("negative", 1))

    saturated = saturate(program)

    (store,) = [n for n in root(saturated).nodes if n.op == "store"]
    (negative,) = saturated.view.classes[store.classes[0]].nodes
    assert ops(saturated.view.classes[negative.classes[0]]) == {"load", "exp"}


def test_all_kinds_of_operands_and_attributes_survive() -> None:
    reduced = tensor((1, 4), "float64")
    wide = tensor((N, 4), "float64")
    program = view(
        leaf(0),
        made("astype", 0, info=wide, dtype="float64"),
        made("sum", 1, info=reduced, axis=(0,), keepdims=True),
        made("broadcast_to", 2, shape(N, 4), info=wide),
        made("nn.softmax", 3, info=wide, axis=1),
    )

    saturated = saturate(program, without_rules())

    for number, eclass in program.classes.items():
        result = saturated.view.classes[saturated.became[number]]
        expected = tuple(
            saturated.became[c] if isinstance(c, int) else c for c in eclass.nodes[0].children
        )
        assert result.struct_info == eclass.struct_info
        assert any(
            (node.op, node.children, node.attrs)
            == (eclass.nodes[0].op, expected, eclass.nodes[0].attrs)
            for node in result.nodes
        )


def test_an_opaque_value_keeps_its_operands_and_is_not_lowered() -> None:
    program = View(
        {
            0: leaf(0),
            1: EClass("tensor", (ENode("opaque", (0,), key=0),), TensorStructInfo(None, None, 2)),
            2: EClass("tensor", (ENode("opaque", (), key=1),), tensor((N,), "int64")),
            3: made("exp", 1, info=TensorStructInfo(None, "float32", 2)),
        },
        (3, 2),
        (Var("x0", TABLE),),
    )

    saturated = saturate(program)

    first, second = (saturated.view.classes[r] for r in saturated.view.roots)
    assert first.nodes == (ENode("exp", (saturated.became[1],)),)
    assert first.struct_info == TensorStructInfo(None, "float32", 2)
    assert second.nodes == (ENode("opaque", (), key=1),)
    assert saturated.view.classes[saturated.became[1]].struct_info.ndim == 2


def test_constants_are_known_through_operators_and_broadcasts() -> None:
    scalar = tensor((), "float32")
    weight = tensor((4,), "float32")
    program = view(
        leaf(0, scalar, scalar=0.5),
        made("broadcast_to", 0, shape(4), info=weight),
        made("exp", 1, info=weight),
        made("broadcast_to", 2, shape(N, 4)),
    )

    saturated = saturate(program, without_rules())

    known = {
        k: (c.is_const, c.scalar)
        for k in range(4)
        for c in (saturated.view.classes[saturated.became[k]],)
    }
    assert known == {0: (True, 0.5), 1: (True, 0.5), 2: (True, None), 3: (False, None)}


def test_equal_scalars_are_one_class() -> None:
    scalar = tensor((), "float32")
    program = view(leaf(0, scalar, 0.5), leaf(1, scalar, 0.5), made("add", 0, 1, info=scalar))

    saturated = saturate(program, without_rules())

    assert saturated.became[0] == saturated.became[1]
    constant = saturated.view.classes[saturated.became[0]]
    assert constant.nodes == (
        ENode("leaf", key=0),
        ENode("leaf", key=1),
        ENode("scalar", scalar=0.5),
    )


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), -1e-45, 3.4e38])
def test_unusual_constants_survive(value: float) -> None:
    scalar = tensor((), "float32")

    saturated = saturate(view(leaf(0, scalar, value)), without_rules())

    assert root(saturated).scalar == value


def test_not_a_number_survives() -> None:
    saturated = saturate(view(leaf(0, tensor((), "float32"), float("nan"))), without_rules())

    assert str(root(saturated).scalar) == "nan"


def test_what_no_root_needs_is_left_out() -> None:
    program = View({0: leaf(0), 1: made("exp", 0), 2: made("log", 0)}, (1,), (Var("x", TABLE),))

    saturated = saturate(program, without_rules())

    assert set(saturated.became) == {0, 1}
    assert "log" not in {op for c in saturated.view.classes.values() for op in ops(c)}


def test_a_shape_operand_that_is_not_known_is_refused() -> None:
    program = view(leaf(0), made("reshape", 0, ShapeStructInfo(None, 1)))

    with pytest.raises(ValueError, match=r"R\.reshape: a shape operand is not known: R\.Shape"):
        saturate(program)


def test_an_attribute_that_is_not_canonical_is_refused() -> None:
    program = view(leaf(0), made("sum", 0, axis=None, keepdims=False))

    with pytest.raises(ValueError, match=r"R\.sum: attribute axis is None, which is not canonical"):
        saturate(program)


def test_a_rule_of_the_user_in_its_own_ruleset_and_in_one_of_the_book() -> None:
    program = view(leaf(0), leaf(1), leaf(2), made("multiply", 0, 1), made("add", 3, 2))

    for ruleset in ("canon", "fusion", "lower"):
        book = RuleBook.default([FMA.format(ruleset)], without=["fma"])
        assert "ewise_fma" in ops(root(saturate(program, book)))
    own = f"(ruleset my-own) {FMA.format('my-own')}"
    assert "ewise_fma" in ops(root(saturate(program, RuleBook.default([own], without=["fma"]))))


def test_equality_of_shapes_is_a_proof() -> None:
    flat = tensor((dims.mul(N, 4),), "float32")
    program = view(
        leaf(0, flat),
        made("reshape", 0, shape(dims.mul(N, 2), 2), info=tensor((dims.mul(N, 2), 2), "float32")),
        made("flatten", 1, info=flat),
    )

    saturated = saturate(program)

    assert saturated.view.roots[0] == saturated.became[0]


def test_a_subsumed_node_is_left_out() -> None:
    rule = '(rewrite (R.log (R.exp x)) (R.abs x) :subsume :name "for-the-test")'
    program = view(leaf(0), made("exp", 0), made("log", 1))

    saturated = saturate(program, RuleBook.default([rule], families=()))

    assert ops(root(saturated)) == {"abs", "store"}


GROWING = '(rewrite (R.exp x) (R.exp (R.abs x)) :name "always-one-more")'


def test_a_rule_that_feeds_itself_stops_at_the_node_budget_and_is_named() -> None:
    program = view(leaf(0), made("exp", 0))
    book = RuleBook.default([GROWING], families=["fusion"])

    report = saturate(program, book, Budget(nodes=200, iterations=100_000)).report

    first, *others = report.phases
    assert (first.stop, first.busiest) == (StopReason.NODES, "always-one-more")
    assert 200 < first.nodes < 250
    assert [p.name for p in others] == ["lower", "fusion"]
    assert report.stop_reason == "node budget (phase rewrite, most matches: always-one-more)"


REGROUP = '(birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")'


def test_rules_that_explode_are_stopped_before_the_iteration_that_does() -> None:
    book = RuleBook.default(
        ['(birewrite (R.add (R.add a b) c) (R.add a (R.add b c)) :name "regroup")']
    )
    chain = [made("add", 0, 1), *(made("add", 39 + k, k) for k in range(1, 39))]
    program = view(*(leaf(k) for k in range(39)), *chain)

    report = saturate(program, book, Budget(nodes=5_000)).report

    assert report.phases[0].stop is StopReason.NODES
    assert report.phases[0].busiest in {"regroup=>", "regroup<="}
    assert report.phases[0].nodes < 10_000


def test_the_time_budget_ends_a_phase_and_loses_no_program() -> None:
    program = view(leaf(0), made("exp", 0))
    book = RuleBook.default([GROWING])

    saturated = saturate(program, book, Budget(seconds=0.0, iterations=100_000))

    assert saturated.report.phases[0].stop is StopReason.TIME
    assert "store" in ops(root(saturated))


def test_the_iteration_budget_ends_a_phase() -> None:
    program = view(leaf(0), made("exp", 0))

    report = saturate(program, RuleBook.default([GROWING]), Budget(iterations=3)).report

    assert (report.phases[0].stop, report.phases[0].iterations) == (StopReason.ITERATIONS, 3)
    assert not report.saturated


def test_a_run_leaves_nothing_behind_for_the_next() -> None:
    program = view(leaf(0), leaf(1), made("add", 0, 1))
    book = RuleBook.default()

    first, second = saturate(program, book), saturate(program, book)

    assert (first.view, first.became) == (second.view, second.became)
    assert first.report.matches == second.report.matches


def test_the_result_is_the_same_in_every_process() -> None:
    program = view(leaf(0), leaf(1), leaf(2), made("multiply", 0, 1), made("add", 3, 2))
    script = (
        "from tests.test_engine import *\n"
        "p = view(leaf(0), leaf(1), leaf(2), made('multiply', 0, 1), made('add', 3, 2))\n"
        "print(saturate(p).view.classes)"
    )

    other = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "12345", "PYTHONPATH": "."},
        capture_output=True,
        check=True,
        text=True,
    ).stdout

    assert other == f"{saturate(program).view.classes}\n"


def test_runs_in_threads_do_not_disturb_each_other() -> None:
    program = view(leaf(0), leaf(1), made("add", 0, 1))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: saturate(program).view, range(12)))

    assert all(result == saturate(program).view for result in results)


def unsound(*rules: str, program: View | None = None) -> str:
    with pytest.raises(SaturationError) as error:
        saturate(program or view(leaf(0), made("nn.relu", 0)), RuleBook.default(rules))
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
    program = view(leaf(0), made("permute_dims", 0, axes=(1, 0), info=tensor((4, N), "float32")))
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
        made("add", 0, 0),
        made("exp", 1, info=tensor((m, 4), "float32")),
    )
    swapped = View(program.classes, (2, 3), program.leaves)

    message = unsound('(rewrite (R.add x x) (R.exp (Leaf 1)) :name "n-is-m")', program=swapped)

    assert message.endswith("it equates values of shapes (n, 4) and (m, 4)")


def test_after_an_unsound_rule_the_engine_works_on() -> None:
    unsound('(rewrite (R.nn.relu x) (R.sum x (vec-of 0) false) :name "relu-is-sum")')

    saturated = saturate(view(leaf(0), made("nn.relu", 0)))

    assert "store" in ops(root(saturated))


def test_an_ill_typed_block_is_no_rules_fault() -> None:
    program = view(leaf(0), made("exp", 0, info=tensor((N, 5), "float32")))

    with pytest.raises(SaturationError) as error:
        saturate(program)

    assert str(error.value) == (
        "the block is ill-typed: it equates values of shapes (n, 5) and (n, 4)"
    )

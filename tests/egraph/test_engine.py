"""Saturation: what goes in comes out, with all that the rules prove equal to it."""

import gc
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from relax_egraph.egraph.engine import RuleBook, saturate
from relax_egraph.egraph.node import Node, leaf_node, opaque_node, scalar_node
from relax_egraph.egraph.saturation import in_process as saturation
from relax_egraph.egraph.view import EClass, View
from relax_egraph.errors import SaturationError
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Var
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor
from tests.support.hand_made import TABLE, N, leaf, operation, ops, root, shape, view


def without_rules() -> RuleBook:
    return RuleBook.default(families=())


FMA = '(rewrite (R.add (R.multiply a b) c) (R.ewise_fma a b c) :ruleset {} :name "mine")'


def test_a_product_that_is_added_to_is_a_multiply_add() -> None:
    program = view(leaf(0), leaf(1), leaf(2), operation("multiply", 0, 1), operation("add", 3, 2))

    saturated = saturate(program, RuleBook.default(families=["fma", "fusion"]))

    tensors = {
        number: eclass
        for number, eclass in saturated.view.classes.items()
        if eclass.sort == "tensor"
    }
    a, b, c, product, total = (saturated.became[k] for k in range(5))
    assert set(tensors) == {a, b, c, product, total}
    assert Node("ewise_fma", (a, b, c)) in tensors[total].nodes
    assert Node("add", (product, c)) in tensors[total].nodes
    assert saturated.report.matches == {"fma-from-add-multiply": 1, "load-of-store": 1}
    assert saturated.report.stop_reason == "saturated"


def test_every_class_has_the_struct_info_of_its_value() -> None:
    program = view(leaf(0), leaf(1), leaf(2), operation("multiply", 0, 1), operation("add", 3, 2))

    saturated = saturate(program)

    assert {c.struct_info for c in saturated.view.classes.values()} == {TABLE}
    assert {c.sort for c in saturated.view.classes.values()} == {"tensor", "kernel"}


def test_without_rules_each_operator_is_one_kernel() -> None:
    swapped = tensor((4, N), "float32")
    program = view(
        leaf(0), operation("exp", 0), operation("permute_dims", 1, info=swapped, axes=(1, 0))
    )

    saturated = saturate(program, without_rules())

    (store,) = [n for n in root(saturated).nodes if n.op == "store"]
    (kernel,) = saturated.view.classes[store.operands[0]].nodes
    assert (kernel.op, kernel.attrs) == ("permute_dims", (("axes", (1, 0)),))
    assert saturated.view.classes[kernel.operands[0]].nodes == (
        Node("load", (saturated.became[1],)),
    )


def test_fusion_makes_a_chain_one_kernel() -> None:
    program = view(leaf(0), operation("exp", 0), operation("negative", 1))

    saturated = saturate(program)

    (store,) = [n for n in root(saturated).nodes if n.op == "store"]
    (negative,) = saturated.view.classes[store.operands[0]].nodes
    assert ops(saturated.view.classes[negative.operands[0]]) == {"load", "exp"}


def test_all_kinds_of_operands_and_attributes_survive() -> None:
    reduced = tensor((1, 4), "float64")
    wide = tensor((N, 4), "float64")
    program = view(
        leaf(0),
        operation("astype", 0, info=wide, dtype="float64"),
        operation("sum", 1, info=reduced, axis=(0,), keepdims=True),
        operation("broadcast_to", 2, shape(N, 4), info=wide),
        operation("nn.softmax", 3, info=wide, axis=1),
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
            1: EClass("tensor", (opaque_node(0, (0,)),), TensorStructInfo(None, None, 2)),
            2: EClass("tensor", (opaque_node(1, ()),), tensor((N,), "int64")),
            3: operation("exp", 1, info=TensorStructInfo(None, "float32", 2)),
        },
        (3, 2),
        (Var("x0", TABLE),),
    )

    saturated = saturate(program)

    first, second = (saturated.view.classes[r] for r in saturated.view.roots)
    assert first.nodes == (Node("exp", (saturated.became[1],)),)
    assert first.struct_info == TensorStructInfo(None, "float32", 2)
    assert second.nodes == (opaque_node(1, ()),)
    assert saturated.view.classes[saturated.became[1]].struct_info.ndim == 2


def test_constants_are_known_through_operators_and_broadcasts() -> None:
    scalar = tensor((), "float32")
    weight = tensor((4,), "float32")
    program = view(
        leaf(0, scalar, scalar=0.5),
        operation("broadcast_to", 0, shape(4), info=weight),
        operation("exp", 1, info=weight),
        operation("broadcast_to", 2, shape(N, 4)),
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
    program = view(leaf(0, scalar, 0.5), leaf(1, scalar, 0.5), operation("add", 0, 1, info=scalar))

    saturated = saturate(program, without_rules())

    assert saturated.became[0] == saturated.became[1]
    constant = saturated.view.classes[saturated.became[0]]
    assert constant.nodes == (
        leaf_node(0),
        leaf_node(1),
        scalar_node(0.5, "float32"),
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
    program = View(
        {0: leaf(0), 1: operation("exp", 0), 2: operation("log", 0)}, (1,), (Var("x", TABLE),)
    )

    saturated = saturate(program, without_rules())

    assert set(saturated.became) == {0, 1}
    assert "log" not in {op for c in saturated.view.classes.values() for op in ops(c)}


def test_a_shape_operand_that_is_not_known_is_refused() -> None:
    program = view(leaf(0), operation("reshape", 0, ShapeStructInfo(None, 1)))

    with pytest.raises(ValueError, match=r"R\.reshape: a shape operand is not known: R\.Shape"):
        saturate(program)


def test_an_attribute_that_is_not_canonical_is_refused() -> None:
    program = view(leaf(0), operation("sum", 0, axis=None, keepdims=False))

    with pytest.raises(ValueError, match=r"R\.sum: attribute axis is None, which is not canonical"):
        saturate(program)


def test_a_rule_of_the_user_in_its_own_ruleset_and_in_one_of_the_book() -> None:
    program = view(leaf(0), leaf(1), leaf(2), operation("multiply", 0, 1), operation("add", 3, 2))

    for ruleset in ("canon", "fusion", "lower"):
        book = RuleBook.default([FMA.format(ruleset)], without=["fma"])
        assert "ewise_fma" in ops(root(saturate(program, book)))
    own = f"(ruleset my-own) {FMA.format('my-own')}"
    assert "ewise_fma" in ops(root(saturate(program, RuleBook.default([own], without=["fma"]))))


def test_equality_of_shapes_is_a_proof() -> None:
    flat = tensor((dims.mul(N, 4),), "float32")
    program = view(
        leaf(0, flat),
        operation(
            "reshape", 0, shape(dims.mul(N, 2), 2), info=tensor((dims.mul(N, 2), 2), "float32")
        ),
        operation("flatten", 1, info=flat),
    )

    saturated = saturate(program)

    assert saturated.view.roots[0] == saturated.became[0]


def test_a_subsumed_node_is_left_out() -> None:
    rule = '(rewrite (R.log (R.exp x)) (R.abs x) :subsume :name "for-the-test")'
    program = view(leaf(0), operation("exp", 0), operation("log", 1))

    saturated = saturate(program, RuleBook.default([rule], families=()))

    assert ops(root(saturated)) == {"abs", "store"}


def test_a_run_leaves_nothing_behind_for_the_next() -> None:
    program = view(leaf(0), leaf(1), operation("add", 0, 1))
    book = RuleBook.default()

    first, second = saturate(program, book), saturate(program, book)

    assert (first.view, first.became) == (second.view, second.became)
    assert first.report.matches == second.report.matches


def test_the_result_is_the_same_in_every_process() -> None:
    program = view(leaf(0), leaf(1), leaf(2), operation("multiply", 0, 1), operation("add", 3, 2))
    script = (
        "from tests.support.hand_made import *\n"
        "from relax_egraph.egraph.engine import saturate\n"
        "p = view(leaf(0), leaf(1), leaf(2), operation('multiply', 0, 1), operation('add', 3, 2))\n"
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
    program = view(leaf(0), leaf(1), operation("add", 0, 1))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(saturate, [program] * 12))

    assert all(result.view == saturate(program).view for result in results)


def test_garbage_is_collected_again_after_a_run_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def fails(*_: object) -> None:
        seen.append(gc.isenabled())
        raise SaturationError("planned")

    monkeypatch.setattr(saturation, "load_view", fails)

    with pytest.raises(SaturationError, match="planned"):
        saturate(View({}, ()))

    assert seen == [False]
    assert gc.isenabled()

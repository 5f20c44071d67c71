"""A proof re-executed: what holds is counted, what does not hold is shown."""

import json

import numpy as np
import pytest

from relax_egraph.errors import ReplayError
from relax_egraph.ir import assumptions
from relax_egraph.ir.struct_info import ShapeStructInfo, tensor
from relax_egraph.proof.replay import LARGE, Replayed, replay
from relax_egraph.proof.text import trace_data, trace_text
from relax_egraph.proof.trace import Deduction, Step, Trace
from tests.support.traces import N, Sketch


def doubled() -> Trace:
    """``(x · 2) @ w``, then ``(x + x) @ w``, then that as a kernel."""
    s = Sketch()
    x, w = s.variable("x", (N, 4)), s.constant(np.arange(12).reshape(4, 3))
    product, added = s("multiply", x, s.scalar(2, (N, 4))), s("add", x, x)
    kernel = s("matmul", s.load(added), s.load(w))
    rule = s.rule("two-times", "x · 2 = x + x")
    return s.trace(
        s("matmul", product, w),
        Step(rule, product, added),
        Step("lower-matmul", s("matmul", added, w), s.store(kernel)),
        result=s.store(kernel),
    )


def test_a_proof_that_holds() -> None:
    replayed = replay(doubled(), sizes={"n": 5})

    # 5 rows of 4 and of 3, on four kinds of values
    assert replayed == Replayed(
        steps=2,
        values=4 * (20 + 15),
        error=0.0,
        needs="exact",
        kinds=("ordinary", "large", "nan", "infinite"),
        sizes={"n": 5},
    )
    assert json.dumps(replayed.as_dict())


def test_the_same_seed_draws_the_same() -> None:
    assert replay(doubled(), seed=3) == replay(doubled(), seed=3)


def test_a_step_that_does_not_hold() -> None:
    s = Sketch()
    x = s.constant([[1.0, 3.0]])
    product, square = s("multiply", x, s.scalar(2, (1, 2))), s("multiply", x, x)
    half, quarter = (s.scalar(c, (1, 2)) for c in (0.5, 0.25))
    shifted, wrong = (s("add", t, half) for t in (product, square))
    trace = s.trace(
        s("add", product, quarter),
        Step(s.rule("quarter-is-half"), quarter, half),
        Step(s.rule("two-is-x", "x · 2 = x · x", "reassociates"), product, square),
        result=wrong,
    )
    later = s.trace(shifted, trace.steps[1], result=wrong)

    with pytest.raises(ReplayError) as first:
        replay(trace)
    with pytest.raises(ReplayError) as second:
        replay(later)

    assert str(first.value) == (
        "main, output gv, step 1 of 2: at [0, 0] before is 0.25, after is 0.5\n"
        "  quarter-is-half (my.egg:1:1; exact)\n"
        "    broadcast_to(0.25, (1, 2))\n"
        "  → broadcast_to(0.5, (1, 2))"
    )
    assert str(second.value) == (
        "main, output gv, step 1 of 1: at [0, 1] before is 6.0, after is 9.0\n"
        "  two-is-x (my.egg:2:1; reassociates): x · 2 = x · x\n"
        "    multiply(constant0, broadcast_to(2, (1, 2)))\n"
        "  → multiply(constant0, constant0)"
    )


def test_a_rule_is_held_to_its_float_class() -> None:
    def sums(stated: str) -> Trace:
        s = Sketch()
        x, y, z = (s.variable(name, (8, 8)) for name in "xyz")
        left, right = s("add", s("add", x, y), z), s("add", x, s("add", y, z))
        rule = s.rule("associate", "", stated)  # pyright: ignore[reportArgumentType]
        return s.trace(left, Step(rule, left, right), result=right)

    assert replay(sums("reassociates")).needs == "reassociates"
    with pytest.raises(ReplayError, match="step 1 of 1: is stated exact, needs reassociates: at "):
        replay(sums("exact"))


def test_a_relation_is_of_all_that_is_equal() -> None:
    def sums(deduces: bool) -> Trace:
        s = Sketch()
        x, y, z = (s.variable(name, (8, 8)) for name in "xyz")
        left, right = s("add", s("add", x, y), z), s("add", x, s("add", y, z))
        rule = s.rule("take-other-sum")
        deduced = Deduction(s.rule("find-other-sum"), "other-sum", (left, right))
        step = Step(rule, left, right, deduced=(deduced,) * deduces)
        return s.trace(left, step, result=right)

    assert replay(sums(deduces=True)).needs == "reassociates"
    with pytest.raises(ReplayError, match="is stated exact, needs reassociates"):
        replay(sums(deduces=False))


def test_a_number_that_was_deduced_is_replayed() -> None:
    def of(number: float) -> Trace:
        s = Sketch()
        x, two = s.variable("x", (6,)), s.scalar(2, (6,))
        product = s("multiply", x, s("subtract", two, s.scalar(1, (6,))))
        (_, difference) = product.operands
        deduced = Deduction(s.rule("fold"), "const-scalar", (difference, number))
        step = Step(s.rule("multiply-one"), product, x, deduced=(deduced,))
        return s.trace(product, step, result=x)

    assert replay(of(1.0)).steps == 1
    with pytest.raises(ReplayError) as error:
        replay(of(3.0))
    first, second, third, *_ = str(error.value).splitlines()
    assert first.endswith(
        "step 1 of 1: what it reads is not so: at [0] it is 1.0, the number is 3.0"
    )
    assert second.strip().startswith("fold (")
    assert third.startswith("  deduced (const-scalar subtract(")
    assert error.value.rules == ("fold",)


def test_what_is_given_to_a_step_is_replayed_with_it() -> None:
    def of(wrong: bool) -> Trace:
        s = Sketch()
        x, y = s.variable("x", (6,)), s.variable("y", (6,))
        once, twice = s("nn.relu", x), s("nn.relu", s("nn.relu", x))
        given = Step(s.rule("relu-of-relu"), twice, y if wrong else once)
        both, double = s("add", twice, once), s("multiply", once, s.scalar(2, (6,)))
        return s.trace(both, Step(s.rule("same"), both, double, given=(given,)), result=double)

    assert replay(of(wrong=False)).steps == 1
    with pytest.raises(ReplayError, match="step 1 of 1, a step of its premises: at "):
        replay(of(wrong=True))


def test_a_rule_applied_backwards() -> None:
    s = Sketch()
    x, half = s.variable("x", (9,)), s.scalar(0.5, (9,))
    root, power = s("sqrt", x), s("power", x, half)
    rule = s.rule("power-is-sqrt", float_class="reassociates")
    trace = s.trace(root, Step(rule, root, power, backwards=True), result=power)

    assert replay(trace).steps == 1


def test_another_shape_and_another_dtype() -> None:
    s = Sketch()
    x = s.variable("x", (2, 3))
    ints = s("astype", x, dtype="int32")
    flat = s("reshape", x, ShapeStructInfo((6,), 1))

    with pytest.raises(ReplayError, match=r"before is float32\(2, 3\), after is int32\(2, 3\)"):
        replay(s.trace(x, Step("cast", x, ints), result=ints))
    with pytest.raises(ReplayError, match=r"before is float32\(2, 3\), after is float32\(6,\)"):
        replay(s.trace(x, Step("flatten", x, flat), result=flat))


def test_a_right_side_without_a_value() -> None:
    s = Sketch()
    x = s.variable("x", (2, 3))
    broken = s("matmul", x, x)
    trace = s.trace(x, Step(s.rule("square"), x, broken), result=broken)

    with pytest.raises(ReplayError, match=r"step 1 of 1: after has no value: R\.matmul of "):
        replay(trace)


def test_the_form_of_the_chain() -> None:
    s = Sketch()
    x = s.variable("x", (3,))
    once, twice = s("nn.relu", x), s("nn.relu", s("nn.relu", x))
    applied = Step("relu-of-relu", twice, once)

    with pytest.raises(ReplayError, match="step 1 of main, output gv: relu-of-relu is applied to "):
        replay(s.trace(once, applied, result=once))
    with pytest.raises(ReplayError, match="the last of 1 steps does not make the result"):
        replay(s.trace(twice, applied, result=x))


def test_a_step_holds_everywhere_that_its_term_stands() -> None:
    s = Sketch()
    x = s.variable("x", (3,))
    twice, once = s("nn.relu", s("nn.relu", x)), s("nn.relu", x)
    step = Step("relu-of-relu", twice, once)

    trace = s.trace(s("add", twice, s("abs", twice)), step, result=s("add", once, s("abs", once)))

    assert replay(trace).steps == 1


def test_symbols_obey_what_is_assumed_and_the_shapes() -> None:
    def of(*assumed: str) -> Trace:
        s = Sketch()
        x = s.variable("x", (N, 2))
        folded = s("reshape", x, ShapeStructInfo((N // 4, 8), 2))
        back = s("reshape", folded, ShapeStructInfo((N, 2), 2))
        return s.trace(back, Step("undo", back, x), result=x, assumed=assumptions.parse(assumed))

    for seed in range(5):
        assert replay(of("n % 4 == 0", "n >= 5"), seed=seed).sizes["n"] in (8, 12, 16, 20, 24, 28)
        assert replay(of(), seed=seed).sizes["n"] % 4 == 0  # or it has no value
    with pytest.raises(ValueError, match="n is 6, which contradicts what is assumed of it"):
        replay(of("n % 4 == 0"), sizes={"n": 6})
    with pytest.raises(ValueError, match="no symbol is named m; there are: n"):
        replay(of(), sizes={"m": 4})
    assert replay(of(), sizes={"n": 3}).uncomputed == (1,)


def test_integers_that_are_indices() -> None:
    s = Sketch()
    x, at = s.variable("x", (1, 4)), s.variable("at", (6,), "int64")
    rows = s("take", x, at, axis=0)
    copied = s("add", rows, s.scalar(0, (6, 4)))

    assert replay(s.trace(copied, Step("add-zero", copied, rows), result=rows)).uncomputed == ()


def test_what_rules_cannot_look_into_is_one_value() -> None:
    s = Sketch()
    x = s.variable("x", (3,))
    zero = s("add", x, s.scalar(0, (3,)))
    info = tensor((N, 2), "float32")
    before = s.call("lv", zero, info=info)
    after = s.terms.over(before, (x,))
    other = s.terms.over(before, (s("negative", x),))

    holds = s.trace(before, Step("add-zero", zero, x), result=after)
    wrong = s.trace(before, Step("guess", before, other), result=other)

    assert replay(holds).steps == 1
    with pytest.raises(ReplayError, match="has no value: opaque binding 0 reads other "):
        replay(wrong)


def test_products_within_the_tolerance() -> None:
    def stored(tolerance: float) -> Trace:
        s = Sketch()
        x, w = s.variable("x", (4, 16)), s.constant(np.linspace(-1, 1, 48).reshape(16, 3))
        narrow = s("astype", s("astype", w, dtype="bfloat16"), dtype="float32")
        before, after = s("matmul", x, w), s("matmul", x, narrow)
        rule = s.rule("weight-in-bfloat16", float_class="bounded")
        return s.trace(before, Step(rule, before, after), result=after, tolerance=tolerance)

    assert replay(stored(0.004)).steps == 1
    with pytest.raises(ReplayError, match="step 1 of 1: "):
        replay(stored(1e-5))


def test_a_large_source_is_replayed_on_one_kind_of_values() -> None:
    s = Sketch()
    x = s.variable("x", (LARGE,))
    plus, same = s("add", x, s.scalar(0, (LARGE,))), x

    assert replay(s.trace(plus, Step("add-zero", plus, same), result=x)).kinds == ("ordinary",)


def test_text() -> None:
    assert trace_text(doubled()) == (
        "main, output gv: 2 steps\n"
        "source\n"
        "  matmul(multiply(x, broadcast_to(2, (n, 4))), constant1)\n"
        "1. two-times (my.egg:1:1; exact): x · 2 = x + x\n"
        "     multiply(x, broadcast_to(2, (n, 4)))\n"
        "   → add(x, x)\n"
        "2. lower-matmul\n"
        "     matmul(%0, constant1)\n"
        "   → store(K.matmul(K.load(%0), K.load(constant1)))\n"
        "     where %0 = add(x, x)\n"
        "result\n"
        "  store(K.matmul(K.load(add(x, x)), K.load(constant1)))"
    )


def test_data() -> None:
    data = trace_data(doubled())

    assert json.loads(json.dumps(data)) == data
    assert [n["op"] for n in data["nodes"][:5]] == [
        *("leaf", "scalar", "broadcast_to", "multiply", "leaf")
    ]
    assert data["nodes"][2] == {
        "op": "broadcast_to",
        "sort": "tensor",
        "operands": [1, "(n, 4)"],
        "attributes": {},
    }
    assert data["nodes"][data["source"]]["operands"] == [3, 4]
    assert data["steps"][0] == {
        "number": 1,
        "rule": "two-times",
        "place": "my.egg:1:1",
        "law": "x · 2 = x + x",
        "float": "exact",
        "backwards": False,
        "deduced": [],
        "before": 3,
        "after": data["nodes"].index(
            {"op": "add", "sort": "tensor", "operands": [0, 0], "attributes": {}}
        ),
        "text": ["  multiply(x, broadcast_to(2, (n, 4)))", "→ add(x, x)"],
    }


def test_the_text_of_a_graph_is_no_tree() -> None:
    s = Sketch()
    term = s.variable("x", (2,))
    for _ in range(60):
        term = s("add", term, term)
    done = s("negative", s("negative", term))

    text = trace_text(s.trace(done, Step("negative-of-negative", done, term), result=term))

    assert text.splitlines()[2:5] == [
        "  %0 = add(x, x)",
        "  %1 = add(%0, %0)",
        "  %2 = add(%1, %1)",
    ]
    assert len(text.splitlines()) < 2 * 60 + 10  # source and result, each node once

"""Why a rule did not match: what users are told, and that it is so."""

import re
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.egraph.engine import Budget, Phase
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.reasons.kernels import running_in
from relax_egraph.reasons.why_not import WhyNot, why_not
from relax_egraph.workers.pool import close_worker

ONE = 'x: R.Tensor(("n", 4), "float32")'
TWO = f'{ONE}, y: R.Tensor(("n", 4), "float32")'
COLUMN = f'{ONE}, y: R.Tensor(("n", 1), "float32")'


def program(*lines: str, params: str = ONE) -> rx.IRModule:
    body = "\n        ".join(lines)
    return rx.parse(f"""
@R.function
def main({params}):
    with R.dataflow():
        {body}
        R.output(gv)
    return gv
""")


def told(answer: WhyNot) -> str:
    """The text, without the lines in files of the book."""
    return re.sub(r"(rules/\w+\.egg):\d+", r"\1", str(answer))


def planted(rule: str, *lines: str, params: str = TWO, at: str | None = None) -> str:
    """What is told of a user's own `rule` in a program, run in this process."""
    named = f'{rule[:-1]} :name "mine")'
    return told(why_not("mine", program(*lines, params=params), at, rules=[named], isolate=False))


def gelu(root: float = 1.4142135, last: str = "gv = R.multiply(h, g)") -> rx.IRModule:
    return program(
        f'd = R.divide(x, R.const({root}, "float32"))',
        "e = R.erf(d)",
        'g = R.add(e, R.const(1.0, "float32"))',
        'h = R.multiply(x, R.const(0.5, "float32"))',
        last,
    )


# --- a: it did fire -----------------------------------------------------------------


def test_a_rule_that_fired() -> None:
    module = gelu()

    answer = why_not("gelu-from-erf", module)

    assert (answer.kind, answer.fired, answer.near) == ("fired", ("gv",), ())
    with_it, without_it = answer.costs or (0, 0)
    assert with_it == rx.explain(module).cost
    assert without_it == rx.explain(module, without=["gelu-from-erf"]).cost
    assert told(answer) == (
        "rule gelu-from-erf (rules/idioms.egg) fired once at gv\n"
        f"  the program costs {with_it * 1e6:.2f} µs with it, {without_it * 1e6:.2f} µs without it"
        " at n = 64 (assumed)"
    )


def test_a_result_that_is_no_cheaper() -> None:
    answer = why_not("add-commutes", program("gv = R.add(x, y)", params=TWO))

    assert answer.costs
    cost = f"{answer.costs[0] * 1e6:.2f} µs"
    assert told(answer) == (
        "rule add-commutes (rules/canon.egg) fired 2 times at gv\n"
        f"  the program costs {cost} with and without it at n = 64 (assumed): "
        "none of its results is cheaper"
    )


def test_a_rule_that_fired_elsewhere() -> None:
    assert (
        told(why_not("gelu-from-erf", gelu(), "g"))
        == """\
rule gelu-from-erf (rules/idioms.egg) did not match at g; it fired at gv
  at g of main: 0 of its 1 nodes match
    (gelu-product t "erf" x)
    ^^^^^^^^^^^^^^^^^^^^^^^^ not known of g; gelu-product-of-half (rules/idioms.egg) would \
deduce it (2 other rules, too)
      (= t (R.multiply h g))
           ^^^^^^^^^^^^^^^^ g has no multiply; it holds add(1.0, e), add(e, 1.0)"""
    )


def test_a_rule_has_its_place() -> None:
    (rule,) = (r for r in RuleBook.default().rules if r.name == "gelu-from-erf")

    assert why_not("gelu-from-erf", gelu(), "g").place == f"rules/idioms.egg:{rule.span.line}"


# --- b: it matches, and was held back -----------------------------------------------


def test_a_rule_that_was_banned() -> None:
    grows = '(rewrite (R.cos x) (R.cos (R.sin x)) :name "grows")'
    module = program("a = R.exp(x)", "gv = R.cos(a)")

    answer = why_not("grows", module, rules=[grows], budget=Budget(nodes=30))

    assert answer.said == (
        "fired 6 times at gv; it was then banned from iteration 7 on: 15 nodes grew to 31"
    )


def test_a_rule_whose_turn_did_not_come() -> None:
    two = '(rewrite (R.cos x) (R.sin x)) (rewrite (R.sin x) (R.tan x) :name "mine")'
    module = program("a = R.exp(x)", "gv = R.cos(a)")

    answer = why_not("mine", module, rules=[two], budget=Budget(iterations=1), isolate=False)

    assert told(answer) == (
        "rule mine (<rules>:1) matches at gv, but the run ended before it could: "
        "iterations (phase rewrite, most matches: addend-of-program)"
    )


def test_a_process_that_does_not_live_to_run_it() -> None:
    close_worker()  # one that runs has memory enough

    answer = why_not("mine", program("gv = R.exp(x)"), rules=[MINE], budget=Budget(memory=1 << 20))

    assert told(answer) == (
        "rule mine (<rules>:1) was not tried: this block is not rewritten: the worker process "
        "ran out of its 0.00 GiB of memory before it began"
    )


MINE = '(rewrite (R.exp x) (R.cos x) :name "mine")'


# --- c: it is not in the run --------------------------------------------------------

POWERS = ("a = R.exp(x)", 'b = R.add(a, R.const(1.0, "float32"))', "gv = R.divide(a, b)")
RELU = ('gv = R.maximum(x, R.const(0.0, "float32"))',)


@pytest.mark.parametrize(
    ("rule", "module", "how", "said"),
    [
        (
            "sigmoid-from-powers",
            program(*POWERS),
            {},
            "it is fast, and used only with fast_math. It matches at gv",
        ),
        ("weight-in-int8", program(*RELU), {}, "it is bounded, and used only with a tolerance"),
        (
            "relu-from-maximum",
            program(*RELU),
            {"without": ["idioms"]},
            "its family, idioms, is left out. It matches at gv",
        ),
        (
            "relu-from-maximum",
            program(*RELU),
            {"without": ["relu-from-maximum"]},
            "it is left out by its name. It matches at gv",
        ),
        (
            "relu-from-maximum",
            program(*RELU),
            {"schedule": (Phase("canonical", ("canon",)), Phase("lower", ("lower",)))},
            "no phase of the schedule runs its family, idioms. It matches at gv",
        ),
        (
            "mine",
            program(*RELU),
            {"rules": ['(rewrite (K.maximum x y) (K.add x y) :name "mine")'], "isolate": False},
            "it matches kernels (K.maximum), which exist only after its phase, rewrite; "
            "it needs :ruleset fusion",
        ),
    ],
)
def test_a_rule_that_is_not_in_the_run(
    rule: str, module: rx.IRModule, how: dict[str, Any], said: str
) -> None:
    answer = why_not(rule, module, **how)

    assert str(answer) == f"rule {rule} ({answer.place}) is not in the run: {said}"
    assert answer.kind == "not in the run"


# --- d: it partly matched -----------------------------------------------------------


def test_what_a_class_holds_instead() -> None:
    rule = "(rewrite (R.add (R.exp x) (R.cos y)) (R.exp x))"

    assert (
        planted(rule, "a = R.exp(x)", "b = R.sin(y)", "gv = R.add(a, b)")
        == """\
rule mine (<rules>:1) cannot match: the program has no R.cos, and no rule makes one
  at gv of main: 2 of its 3 nodes match
    (R.add (R.exp x) (R.cos y))
                     ^^^^^^^^^ b has no cos; it holds sin(y); the program has no cos at all
    x = x: float32[n, 4]"""
    )


def test_the_deepest_candidates_come_first() -> None:
    rule = "(rewrite (R.cos (R.sin (R.tan x))) (R.exp x))"
    lines = (
        *("a = R.tan(x)", "b = R.sin(a)", "c = R.exp(b)"),
        *("d = R.sin(y)", "e = R.cos(d)", "gv = R.add(c, e)"),
    )

    assert (
        planted(rule, *lines)
        == """\
rule mine (<rules>:1) did not match
  at e of main: 2 of its 3 nodes match
    (R.cos (R.sin (R.tan x)))
                  ^^^^^^^^^ y is an input, no tan"""
    )


def test_a_constant_that_is_nearly_right() -> None:
    assert (
        told(why_not("gelu-from-erf", gelu(1.4142)))
        == """\
rule gelu-from-erf (rules/idioms.egg) did not match
  at gv of main: its 4 nodes match, 1 premise fails
    (gelu-product t "erf" x)
    ^^^^^^^^^^^^^^^^^^^^^^^^ not known of gv; gelu-product-of-half (rules/idioms.egg) would \
deduce it (2 other rules, too)
      (gelu-factor g f x)
      ^^^^^^^^^^^^^^^^^^^ not known of g, x; gelu-factor-erf-divide (rules/idioms.egg) would \
deduce it (2 other rules, too)
        (is-number root 1.4142135623730951)
        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ not known of 1.4142; number-in-float32 \
(rules/idioms.egg) would deduce it (another rule, too)
          (<= (abs (- v c)) (* 1e-7 c))
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ 1.361406224e-05 <= 1.414213562e-07 is false, \
for c = 1.414213562, v = 1.4142: near, but off by 9.6e-06 of it"""
    )


def test_a_constant_that_only_fast_math_takes() -> None:
    first = why_not("gelu-from-erf", gelu(1.414213), "gv").near[0].misses[0]

    assert first.would
    assert first.would.misses[0].would
    said = first.would.misses[0].would.misses[0].said
    assert re.sub(r":\d+", "", said) == (
        "not known of 1.414213; number-in-seven-digits (rules/idioms.egg) would deduce it, "
        "but is not in the run: it is fast, and used only with fast_math"
    )


def test_operands_in_the_other_order() -> None:
    rule = "(rewrite (R.subtract (R.exp x) (R.negative y)) (R.exp x))"

    assert (
        planted(rule, "a = R.exp(x)", "b = R.negative(y)", "gv = R.subtract(b, a)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 2 of its 3 nodes match
    (R.subtract (R.exp x) (R.negative y))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ the operands are in the other order: gv is subtract(b, a)
    x = x: float32[n, 4], y = y: float32[n, 4]"""
    )


def test_a_broadcast_that_stands_between() -> None:
    rule = "(rewrite (R.add (R.exp x) (R.exp y)) (R.exp x))"
    lines = ("a = R.exp(x)", "b = R.exp(y)", "gv = R.add(a, b)")

    assert (
        planted(rule, *lines, params=COLUMN)
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 2 of its 3 nodes match
    (R.add (R.exp x) (R.exp y))
                     ^^^^^^^^^ a broadcast stands between: broadcast_to(b, (n, 4))
    x = x: float32[n, 4], y = y: float32[n, 1]"""
    )


def test_a_broadcast_that_is_not_there() -> None:
    rule = "(rewrite (R.add (R.exp x) (R.broadcast_to y s)) (R.exp x))"

    assert (
        planted(rule, "a = R.exp(x)", "gv = R.add(a, y)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 2 of its 3 nodes match
    (R.add (R.exp x) (R.broadcast_to y s))
                     ^^^^^^^^^^^^^^^^^^^^ there is no broadcast: y is float32[n, 4] as it is
    x = x: float32[n, 4], y = y: float32[n, 4]"""
    )


def test_a_cast_that_stands_between() -> None:
    rule = "(rewrite (R.cos (R.exp x)) x)"

    assert (
        planted(rule, "a = R.exp(x)", 'b = R.astype(a, "float16")', "gv = R.cos(b)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 1 of its 2 nodes match
    (R.cos (R.exp x))
           ^^^^^^^^^ a cast stands between: b is astype of a
    x = x: float32[n, 4]"""
    )


def test_two_shapes_that_differ() -> None:
    rule = (
        "(rewrite (R.add (R.exp x) (R.broadcast_to y s)) (R.exp x)"
        " :when ((= (shape-of x) (shape-of y))))"
    )

    assert (
        planted(rule, "a = R.exp(x)", "gv = R.add(a, y)", params=COLUMN)
        == """\
rule mine (<rules>:1) did not match
  at gv of main: its 3 nodes match, 1 premise fails
    (= (shape-of x) (shape-of y))
                    ^^^^^^^^^^^^ the shape of y is (n, 1), that of x is (n, 4): \
a broadcast is missing, to (n, 4)
    x = x: float32[n, 4], y = y: float32[n, 1]"""
    )


def test_another_dtype() -> None:
    rule = '(rewrite (R.cos (R.exp x)) (R.cos x) :when ((= "float64" (dtype-of x))))'

    assert (
        planted(rule, "a = R.exp(x)", "gv = R.cos(a)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: its 2 nodes match, 1 premise fails
    (= "float64" (dtype-of x))
                 ^^^^^^^^^^^^ the dtype of x is "float32"; needed is "float64"
    x = x: float32[n, 4]"""
    )


def test_integers_where_floats_are_needed() -> None:
    integers = 'x: R.Tensor(("n", 4), "int32")'
    module = program('gv = R.maximum(x, R.multiply(x, R.const(1, "int32")))', params=integers)
    rule = '(rewrite (R.maximum x y) (R.nn.leakyrelu x 0.5) :when ((is-float x)) :name "mine")'

    answer = why_not("mine", module, rules=[rule], isolate=False)

    assert answer.near[0].first.said == "x is int32, and no float32 or float64"


def test_another_attribute() -> None:
    rule = "(rewrite (R.sum (R.exp x) (vec-of 0) false) (R.cos x))"

    assert (
        planted(rule, "a = R.exp(x)", "gv = R.sum(a, axis=1)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 1 of its 2 nodes match
    (R.sum (R.exp x) (vec-of 0) false)
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ axis of gv is (1,); needed is (0,)
    x = x: float32[n, 4]"""
    )


def test_one_variable_for_two_values() -> None:
    rule = "(rewrite (R.add (R.exp x) x) (R.exp x))"

    assert (
        planted(rule, "a = R.exp(x)", "gv = R.add(a, y)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 1 of its 2 nodes match
    (R.add (R.exp x) x)
           ^^^^^^^^^ operand x of a is x; needed is y
    x = y: float32[n, 4]"""
    )


def test_a_guard_that_is_not_proven() -> None:
    rule = (
        "(rewrite (R.cos (R.exp x)) (R.cos x) :when ((= s (shape-of x))"
        ' (dim-ge (vec-get s 0) (DimSym "1"))) :name "mine")'
    )
    module = program("a = R.exp(x)", "gv = R.cos(a)")

    assert (
        told(why_not("mine", module, rules=[rule], isolate=False))
        == """\
rule mine (<rules>:1) did not match
  at gv of main: its 2 nodes match, 1 premise fails
    (dim-ge (vec-get s 0) (DimSym "1"))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ n >= 1 is not proven; it can be assumed
    x = x: float32[n, 4]"""
    )
    assert why_not("mine", module, rules=[rule], isolate=False, assume=["n >= 1"]).kind == "fired"


def test_what_is_not_constant() -> None:
    rule = "(rewrite (R.cos x) (R.exp x) :when ((is-const x)))"

    assert (
        planted(rule, "a = R.add(x, y)", "gv = R.cos(a)")
        == """\
rule mine (<rules>:1) did not match
  at gv of main: its node matches, 1 premise fails
    (is-const x)
    ^^^^^^^^^^^^ a is not constant: it depends on x, y
    x = a: float32[n, 4]"""
    )


# --- e: what it needs is absent -----------------------------------------------------


def test_an_operator_that_the_program_has_not() -> None:
    answer = why_not("relu-from-maximum", program("gv = R.exp(x)"))

    assert answer.kind == "absent"
    assert told(answer) == (
        "rule relu-from-maximum (rules/idioms.egg) cannot match: the program has no R.maximum,"
        " and no rule makes one"
    )


def test_a_relation_that_no_rule_deduces() -> None:
    rule = (
        '(relation is-nice (Tensor)) (rewrite (R.cos x) (R.exp x) :when ((is-nice x)) :name "mine")'
    )

    answer = why_not("mine", program("gv = R.cos(x)"), rules=[rule], isolate=False)

    assert (
        str(answer)
        == """\
rule mine (<rules>:1) cannot match: no rule deduces is-nice
  at gv of main: its node matches, 1 premise fails
    (is-nice x)
    ^^^^^^^^^^^ not known of x, and no rule deduces it
    x = x: float32[n, 4]"""
    )


def test_an_axis_that_counts_from_the_end_is_told_without_asking_where() -> None:
    softmax = ("a = R.exp(x)", "gv = R.nn.softmax(a, axis=-1)")

    assert planted("(rewrite (R.nn.softmax x -1) x)", *softmax) == (
        "rule mine (<rules>:1) did not match\n"
        "  at gv of main: 0 of its 1 nodes match\n"
        "    (R.nn.softmax x -1)\n"
        "    ^^^^^^^^^^^^^^^^^^^ axis of gv is 1; needed is -1\n"
        "    x = a: float32[n, 4]"
    )
    both = planted("(rewrite (R.nn.softmax (R.exp (R.cos x)) -1) x)", *softmax, at="gv")
    assert "axis of gv is 1; needed is -1" in both


# --- where --------------------------------------------------------------------------

FUNCTIONS = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.cos(x)
            b = R.nn.relu(a)
            R.output(b)
        return b

    @R.function
    def other(x: R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            a = R.sin(x)
            b = R.cos(a)
            R.output(b)
        return b
"""

SIN_IN_RELU = '(rewrite (R.nn.relu (R.sin x)) (R.sin x) :name "mine")'


def missed_at(at: str, module: rx.IRModule | None = None) -> list[str]:
    answer = why_not("mine", module or rx.parse(FUNCTIONS), at, rules=[SIN_IN_RELU])
    return [answer.said, *(near.summary() for near in answer.near)]


def test_a_value_of_one_function() -> None:
    assert missed_at("other.b")[1] == "at b of other: 0 of its 2 nodes match"
    assert missed_at("main.b")[1] == "at b of main: 1 of its 2 nodes match"


def test_a_value_is_called_what_it_was_asked_about_as() -> None:
    module = program("a = R.exp(x)", "b = R.nn.relu(a)", "gv = R.cos(b)")

    for name in ("a", "b"):  # nothing that is exponential is negative: they are one value
        assert missed_at(name, module)[1] == f"at {name} of main: 1 of its 2 nodes match"


def test_a_value_by_its_number() -> None:
    first, last = missed_at("main.0"), missed_at("main.-1")

    assert first == missed_at("main.a")
    assert last == missed_at("main.b")
    assert missed_at("-1", gelu()) == missed_at("gv", gelu())


def test_a_kernel_is_all_values_that_it_stands_for() -> None:
    kernel = "fused_cos_relu"

    assert [one.callee for one in running_in(rx.explain(rx.parse(FUNCTIONS)))][:1] == [kernel]
    assert missed_at(kernel) == [f"did not match at {kernel}", missed_at("main.b")[1]]


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("3", "3 may be of any of the functions main, other: needs main.3"),
        (
            "main.2",
            "no value has number 2: the dataflow blocks of main bind 2, counted from 0",
        ),
        ("other.c", "no value of a dataflow block of other is named 'c'; there are a, b"),
        ("fused_tan", "no value of a dataflow block is named 'fused_tan'; there are a, b"),
    ],
)
def test_where_there_is_nothing(at: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        missed_at(at)


# --- what cannot be answered --------------------------------------------------------


def test_no_such_rule() -> None:
    with pytest.raises(ValueError, match=r"^no rule is named 'gelu-from-erff'; did you mean gelu"):
        why_not("gelu-from-erff", gelu())


def test_no_such_value() -> None:
    message = r"^no value of a dataflow block is named 'other'; there are d, e, g, h, gv$"
    with pytest.raises(ValueError, match=message):
        why_not("gelu-from-erf", gelu(), "other")


def test_nothing_to_rewrite() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32")):
    return x
""")

    with pytest.raises(ValueError, match=r"^the model has no operator without effects"):
        why_not("gelu-from-erf", module)


def test_a_long_premise_is_shown_around_what_failed() -> None:
    inner = "x"
    for _ in range(16):
        inner = f"(R.sin {inner})"
    lines = [f"a{k} = R.sin({'x' if k == 0 else f'a{k - 1}'})" for k in range(15)]

    shown = planted(f"(rewrite (R.cos {inner}) x)", *lines, "gv = R.cos(a14)")

    assert (
        shown
        == """\
rule mine (<rules>:1) did not match
  at gv of main: 16 of its 17 nodes match
    …R.sin (R.sin (R.sin (R.sin (R.sin (R.sin (R.sin (R.sin (R.sin (R.sin (R.sin x)))))))))))))))))
                                                                          ^^^^^^^^^ \
x is an input, no sin"""
    )

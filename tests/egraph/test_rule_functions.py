"""Functions that rules call: those of the engine, and those that users declare in Python."""

import math
import pickle
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import relax_egraph as rx
from relax_egraph.egraph.functions.builtin import OF_ENGINE
from relax_egraph.egraph.functions.function import FUNCTIONS, Axes, Function
from relax_egraph.egraph.rulebook.calls import demands
from relax_egraph.egraph.rulebook.forms import written
from relax_egraph.errors import RuleError, SaturationError
from relax_egraph.ir.dims import Dim, symbol
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.struct_info import Shape
from tests.support.entries import rule_of

n = symbol("n")

DOUBLED = """
@R.function
def main(x: R.Tensor(("n", 4), "int32")):
    with R.dataflow():
        lv = R.multiply(x, R.const(8, "int32"))
        gv = R.multiply(lv, R.const(3, "int32"))
        R.output(gv)
    return gv
"""

SHIFT = """
; x · 2ᵏ is x, shifted by k
; float: exact
(rewrite (R.multiply x y) (R.left_shift x (R.broadcast_to (R.const k "int32") s))
  :when ((= "int32" (dtype-of x)) (= s (shape-of x)) (= k (exponent-of (const-scalar y))))
  :name "multiply-as-shift")
"""


@pytest.fixture(autouse=True)
def declared() -> Iterator[None]:
    """What a test declares is not there for the next."""
    before = dict(FUNCTIONS)
    yield
    FUNCTIONS.clear()
    FUNCTIONS.update(before)


def exponent_of(number: float) -> float | None:
    """The whole number whose power of two `number` is."""
    mantissa, exponent = math.frexp(number)
    return float(exponent - 1) if mantissa == 0.5 and 0 < exponent < 31 else None


def test_a_rule_calls_a_function_of_the_user() -> None:
    rx.rules.function(exponent_of)

    report = rx.explain(rx.parse(DOUBLED), rules=[SHIFT], without=["canon", "constants"])

    assert report.rules["multiply-as-shift"] == 1


def test_the_check_instantiates_a_rule_by_its_functions() -> None:
    rx.rules.function(exponent_of)

    (verdict,) = rx.rules.check(SHIFT, processes=1)

    assert verdict.sound
    assert verdict.fired >= 20


def test_a_rule_whose_function_says_something_wrong_is_unsound() -> None:
    def exponent_of(number: float) -> float | None:
        """One too many."""
        return 1 + math.log2(number) if number > 0 and number == int(number) else None

    rx.rules.function(exponent_of)

    (verdict,) = rx.rules.check(SHIFT, processes=1)

    assert verdict.kind == "unsound"


def test_the_check_finds_a_function_that_is_not_pure() -> None:
    drawn = count()

    def exponent_of(number: float) -> float:
        """Another number each time."""
        return float(next(drawn))

    rx.rules.function(exponent_of)

    (verdict,) = rx.rules.check(SHIFT, processes=1)

    assert verdict.kind == "unsound"
    assert "is not pure: it returns" in verdict.reason


def test_a_function_that_fails_stops_the_run() -> None:
    def exponent_of(number: float) -> float:
        """Of no number."""
        raise OverflowError("too large")

    rx.rules.function(exponent_of)

    with pytest.raises(SaturationError, match=r"function exponent-of\(.*\) fails: OverflowError"):
        rx.optimize(rx.parse(DOUBLED), rules=[SHIFT])


def test_a_function_that_returns_another_sort_stops_the_run() -> None:
    def exponent_of(number: float) -> float:
        """A text instead."""
        return cast(Any, str(number))

    rx.rules.function(exponent_of)

    with pytest.raises(SaturationError, match=r"returns '.*', which is not of sort f64"):
        rx.optimize(rx.parse(DOUBLED), rules=[SHIFT])


def test_a_file_that_calls_what_nobody_declared_says_so() -> None:
    with pytest.raises(RuleError, match="exponent-of"):
        rx.rules.load(SHIFT)


def test_a_call_stands_in_a_premise() -> None:
    text = '(rewrite (R.permute_dims x p) (R.permute_dims x (inverse-of p)) :name "turned")'

    with pytest.raises(RuleError) as told:
        rx.rules.load(text)

    assert str(told.value) == (
        "<rules>:1:49: inverse-of is computed of what is matched, and only in a premise\n"
        f"    {text}\n"
        f"    {' ' * 48}^\n"
        "bind it first: :when ((= value (inverse-of p)))"
    )


def unannotated(x: int) -> int:
    return x


del unannotated.__annotations__["x"]


def of_lists(x: list[int]) -> int:
    return len(x)


def inverse_of(x: int) -> int:
    return x


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (unannotated, "unannotated: x has no annotation, and so no sort"),
        (
            of_lists,
            "of-lists: the annotation of x is no sort; those are int, float, str, bool, "
            "tuple[int, ...], tuple[float, ...], Dim and Shape",
        ),
        (inverse_of, "inverse-of is a function of the engine; choose another name"),
    ],
)
def test_what_is_no_function_of_rules_is_refused(compute: Callable[..., Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as told:
        rx.rules.function(compute)

    assert str(told.value) == message


def demanded_by(rule: str) -> list[str]:
    return [written(demand.form) for demand in demands(rule_of(rule))]


def test_a_function_is_asked_for_what_the_other_premises_match() -> None:
    rule = "(rewrite (R.nn.pad (R.permute_dims x p) w mode value) x :when ((= q (inverse-of p))))"

    assert demanded_by(rule) == [
        "(rule ((R.nn.pad (R.permute_dims x p) w mode value)) ((engine/asked/inverse-of p)))"
    ]


def test_what_a_value_is_needed_for_is_asked_after_it() -> None:
    rule = "(rule ((f t p) (= k (number-of d)) (= d (g t)) (= q (inverse-of (vec-of k)))) ((h q)))"

    assert demanded_by(rule) == [
        "(rule ((f t p) (= d (g t))) ((engine/asked/number-of d)))",
        "(rule ((f t p) (= d (g t)) (= k (number-of d)) (= engine-argument-0 (vec-of k)))"
        " ((engine/asked/inverse-of engine-argument-0)))",
    ]


VALUES: list[tuple[str, tuple[Any, ...], Any]] = [
    ("inverse-of", ((2, 0, 1),), (1, 2, 0)),
    ("axes-before", ((0, 3, 1, 2), (2, 3)), (1, 2)),
    ("permutation-without", ((0, 3, 1, 2), (1,)), (0, 1, 2)),
    ("permutation-without", ((0, 3, 1, 2), (0, 2)), (1, 0)),
    ("axes-of-both", ((0,), (0,), False), (0, 1)),
    ("axes-of-both", ((1,), (0,), False), (0, 1)),
    ("axes-of-both", ((2,), (0,), True), (0, 2)),
    ("axes-of-both", ((2,), (2,), True), None),
    ("only-units-move", ((1, n, 4), (2, 0, 1)), True),
    ("only-units-move", ((4, n, 1), (1, 0, 2)), False),
    ("units-of", (2,), (1, 1)),
    ("dims-of", ((0, 3),), (0, 3)),
    ("number-of", (7,), 7),
    ("number-of", (n,), None),
    ("product-along", ((n, 4, 2), (0, 2)), 2 * n),
    ("shape-without", ((n, 4, 2), (0, 2)), (4,)),
    ("shape-keeping", ((n, 4, 2), (0, 2)), (1, 4, 1)),
    ("axis-without", ((n, 1, 4, 1), (n, 1, 4)), 3),
    ("axis-without", ((n, 4), (n,)), None),
    ("varying-axes", ((4, 1), (n, 4, 2)), (1,)),
    ("varying-axes", ((3,), (n, 4)), None),
    ("common-shape", ((1, 1, 4), (4,)), (1, 1, 4)),
    ("common-shape", ((), (n, 4)), (n, 4)),
    ("common-shape", ((2, 4), (4,)), None),
    ("position-on", (2**62, n), n),
    ("position-on", (-1, n), None),
    ("position-on", (-1, n + 4), n + 3),
    ("position-on", (2, 8), 2),
    ("position-on", (9, 8), 8),
    ("axis-of", ("C", "NHWC"), 3),
    ("axis-of", ("C", "NCHW4c"), None),
    ("all-zero", ((0, 0),), True),
    ("all-one", ((1, 2),), False),
    ("layout-permuted", ("NHWC", (0, 3, 1, 2)), "NCHW"),
    ("layout-before", ("NCHW", (0, 3, 1, 2)), "NHWC"),
    ("layout-permuted", ("NHWC", (1, 0, 2, 3)), None),
    ("dtype-holds", ("float32", "int16"), True),
    ("dtype-holds", ("float32", "int32"), False),
    ("dtype-holds", ("int64", "uint32"), True),
    ("dtype-holds", ("float16", "bfloat16"), False),
    ("dtype-holds", ("bfloat16", "bfloat16"), True),
]


@pytest.mark.parametrize(("name", "args", "value"), VALUES)
def test_functions_of_the_engine(name: str, args: tuple[Any, ...], value: Any) -> None:
    assert FUNCTIONS[name].twice(args) == value


_DIMS = st.one_of(st.integers(0, 5), st.sampled_from((n, 2 * n, n + 1)))
_OF_SORT: dict[str, st.SearchStrategy[Any]] = {
    "Axes": st.lists(st.integers(-2, 5), max_size=4).map(tuple),
    "Shape": st.lists(_DIMS, max_size=4).map(tuple),
    "Dim": st.one_of(_DIMS, st.integers(-3, 3), st.just(2**63 - 1)),
    "i64": st.integers(0, 5),
    "bool": st.booleans(),
    "String": st.sampled_from((*DTYPES, "", "void", "NCHW", "NHWC", "NCHW4c", "OIHW", "C")),
}


@pytest.mark.parametrize("function", OF_ENGINE, ids=lambda f: f.name)
@settings(max_examples=60)
@given(st.data())
def test_functions_of_the_engine_fail_for_no_arguments(
    function: Function, data: st.DataObject
) -> None:
    args = tuple(data.draw(_OF_SORT[sort]) for _, sort in function.params)

    function.twice(args)  # which raises where the function fails, or is not pure


def test_a_function_crosses_to_another_process_by_value() -> None:
    def squared(shape: Shape, by: Dim, axes: Axes) -> Dim:
        """A product."""
        return by * by

    rx.rules.function(squared)
    sent = pickle.dumps(FUNCTIONS["squared"])
    del FUNCTIONS["squared"]

    received = pickle.loads(sent)

    assert received is FUNCTIONS["squared"]
    assert received.params == (("shape", "Shape"), ("by", "Dim"), ("axes", "Axes"))
    assert received.value(((), n, ())) == n**2

"""Assumptions on symbols: how they read, what is decided under them, and that it holds."""

import pickle
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from relax_egraph.egraph.saturation.infos import inferred
from relax_egraph.errors import AssumptionError
from relax_egraph.ir import dims
from relax_egraph.ir.assumptions import active, assuming, parse
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import TupleStructInfo, tensor
from relax_egraph.ir.symbol_ranges import Assumptions, Range
from tests.ir.test_dims import DIMS

GREATEST = 30


def _values(texts: Sequence[str]) -> list[dict[str, int]]:
    """The small values of n and m for which all of `texts` hold, by trying."""
    every = ({"n": n, "m": m} for n in range(GREATEST) for m in range(GREATEST))
    holds = compile(" and ".join(texts) or "True", "conditions", "eval")
    return [values for values in every if eval(holds, {}, dict(values))]


def _conditions(name: str) -> st.SearchStrategy[str]:
    number = st.integers(0, 12)
    return st.one_of(
        st.builds("{} >= {}".format, st.just(name), number),
        st.builds("{} < {}".format, st.just(name), st.integers(8, 30)),
        st.builds("{1} <= {0} * 2".format, st.just(name), number),
        st.builds("{} % {} == 0".format, st.just(name), st.integers(1, 6)),
        st.builds("({} + 1) % {} == 1".format, st.just(name), st.integers(2, 4)),
        st.builds("3 * {} % 4 == {}".format, st.just(name), st.integers(0, 3)),
    )


CONDITIONS = st.lists(
    st.one_of(_conditions("n"), _conditions("m"), st.just("m == 2*n")), max_size=3
)


@settings(max_examples=60)
@given(CONDITIONS)
def test_what_is_read_holds_for_the_values_that_satisfy_the_conditions(texts: list[str]) -> None:
    satisfying = _values(texts)
    assume(satisfying)

    known = parse(texts)

    ranges, values = dict(known.ranges), dict(known.values)
    for value in satisfying:
        assert all(_within(value[name], r) for name, r in ranges.items())
        assert all(dims.evaluate(dims.canonical(v), value) == value[k] for k, v in values.items())


@settings(max_examples=60)
@given(st.lists(_conditions("n"), max_size=3))
def test_conditions_on_one_symbol_are_read_to_the_last_value(texts: list[str]) -> None:
    satisfying = {values["n"] for values in _values(texts)}

    try:
        found = dict(parse(texts).ranges).get("n", Range())
    except AssumptionError:
        assert not satisfying
        return

    assert {n for n in range(GREATEST) if _within(n, found)} == satisfying


def _within(value: int, r: Range) -> bool:
    below = r.most is None or value <= r.most
    return r.least <= value and below and (value - r.least) % r.step == 0


@settings(max_examples=60)
@given(CONDITIONS, DIMS, DIMS, st.data())
def test_what_is_proven_holds(texts: list[str], a: Dim, b: Dim, data: st.DataObject) -> None:
    satisfying = _values(texts)
    assume(satisfying)

    with assuming(parse(texts)):
        equal, distinct = dims.equal(a, b), dims.distinct(a, b)
        greater, divides = dims.prove_ge(a, b), dims.divides(a, b)

    for values in data.draw(st.lists(st.sampled_from(satisfying), min_size=5, max_size=5)):
        x, y = dims.evaluate(a, values), dims.evaluate(b, values)
        assert x == y or not equal
        assert x != y or not distinct
        assert x >= y or not greater
        assert not divides or (y % x == 0 if x else y == 0)


@settings(max_examples=60)
@given(CONDITIONS, DIMS, DIMS, st.data())
def test_canonical_form_has_the_value_of_what_it_is_made_of(
    texts: list[str], a: Dim, b: Dim, data: st.DataObject
) -> None:
    satisfying = _values(texts)
    assume(satisfying)

    with assuming(parse(texts)):
        made = [dims.canonical(a), dims.add(a, b), dims.mul(a, b), dims.minimum(a, b)]
        made += [dims.maximum(a, b), dims.floordiv(a, 3), dims.mod(a, 3)]
        read = [dims.parse(dims.text(d)) for d in made]

    assert read == made
    for values in data.draw(st.lists(st.sampled_from(satisfying), min_size=5, max_size=5)):
        x, y = dims.evaluate(a, values), dims.evaluate(b, values)
        expected = [x, x + y, x * y, min(x, y), max(x, y), x // 3, x % 3]
        assert [dims.evaluate(d, values) for d in made] == expected


@pytest.mark.parametrize(
    ("texts", "written", "canonical"),
    [
        (["s % 8 == 0"], "(s // 8) * 8", "s"),
        (["s % 8 == 0"], "((s + 7) // 8) * 8", "s"),
        (["s % 8 == 0"], "s // 8", "s // 8"),
        (["s % 8 == 0"], "n * (s // 8) * 8 + s % 4", "n * s"),
        (["s % 8 == 3"], "(s // 8) * 8", "s - 3"),
        (["n >= 1"], "max(n, 1)", "n"),
        (["n <= 512"], "min(n, 512)", "n"),
        (["n <= 512"], "n % 600", "n"),
        (["n < 512"], "n // 512", "0"),
        (["m == 2*n"], "m // 2", "n"),
        (["n == 4"], "n * 2", "8"),
        ([], "max(n, 1)", "max(1, n)"),
    ],
)
def test_canonical_form_is_in_the_symbols_of_the_user(
    texts: list[str], written: str, canonical: str
) -> None:
    with assuming(parse(texts)):
        assert dims.text(dims.parse(written)) == canonical


@pytest.mark.parametrize(
    ("texts", "question", "a", "b"),
    [
        (["n >= 1"], dims.prove_ge, "n", "1"),
        (["n >= 1"], dims.distinct, "n", "0"),
        (["n <= 512"], dims.prove_ge, "512", "n"),
        (["n <= 512"], dims.prove_ge, "512 * m", "n * m"),
        (["n <= 512"], dims.prove_ge, "64", "n // 8"),
        (["s % 8 == 0"], dims.divides, "4", "s"),
        (["s % 8 == 0", "m % 4 == 0"], dims.divides, "4", "min(s, m)"),
        (["s % 8 == 0"], dims.divides, "16", "s * 2"),
        (["s % 8 == 0"], dims.equal, "(s // 8) * 8", "s"),
        (["m == 2*n"], dims.equal, "m", "n + n"),
        (["m == n - 4"], dims.prove_ge, "n", "4"),
    ],
)
def test_a_proof_holds_under_its_assumptions_only(
    texts: list[str], question: Callable[[Dim, Dim], bool], a: str, b: str
) -> None:
    x, y = dims.parse(a), dims.parse(b)

    without = question(x, y)
    with assuming(parse(texts)):
        under = question(x, y)

    assert (without, under, question(x, y)) == (False, True, False)


def test_assumptions_end_with_the_block_and_do_not_add_up() -> None:
    first, second = parse(["n >= 1"]), parse(["m >= 1"])

    with assuming(first):
        with assuming(second):
            inner = active()
        outer = active()

    assert (inner, outer, active()) == (second, first, None)


def test_a_function_is_told_only_of_its_own_symbols() -> None:
    known = parse(["n >= 1", "s % 8 == 0", "m == 2*n"])

    assert known.about(["m", "s"]) == parse(["s % 8 == 0"])
    assert known.about(["m", "n"]) == parse(["n >= 1", "m == 2*n"])


def test_assumptions_are_values() -> None:
    known = parse(["n >= 1", "m == 2*n"])

    copy = pickle.loads(pickle.dumps(known))

    assert copy == known == parse(["m == 2 * n", "1 <= n"])
    assert hash(copy) == hash(known)
    assert known.texts == ("n >= 1", "m == 2*n")


FORMS = "conditions are written n >= 1, n <= 512, 1 <= n <= 512, s % 8 == 0, m == 2*n"


@pytest.mark.parametrize(
    ("texts", "column", "said"),
    [
        (["n >= 3", "n <= 2"], 1, "no n is left for which this holds"),
        (["n % 2 == 1", "n % 4 == 2"], 1, "no n is left for which this holds"),
        (["m == 2*n", "m == 3"], 1, "no n is left for which this holds"),
        (["1 <= n <= 0"], 6, "no n is left for which this holds"),
        (["3 >= 4"], 1, "this contradicts what is assumed besides"),
        (["n"], 1, "this is no condition"),
        (["n >="], 1, "this does not read"),
        (["n != 3"], 1, "this comparison is not understood"),
        (["n * n >= 4"], 1, "a condition is on one symbol, with numbers"),
        (["n >= m"], 1, "a condition is on one symbol, with numbers"),
        (["n % 0 == 0"], 5, "a remainder is of a division by a number, 1 or more"),
        (["n % 2 == 3"], 10, "no remainder of a division by 2 is this"),
        (
            ["n >= 1.5"],
            6,
            "`1.5` is no dimension: it is not built of + - * // % min max",
        ),
    ],
)
def test_what_is_wrong_is_said_where_it_is(texts: list[str], column: int, said: str) -> None:
    with pytest.raises(AssumptionError) as refusal:
        parse(texts)

    place = f"assume[{len(texts) - 1}]:1:{column}: "
    caret = f"\n    {texts[-1]}\n    {' ' * (column - 1)}^"
    assert str(refusal.value).startswith(place + said + caret)


@pytest.mark.parametrize(
    ("texts", "note"),
    [
        (["n >= 3", "n % 2 == 0", "n < 4"], "n is 0 or more; assumed besides: n >= 3, n % 2 == 0"),
        (["n < 0"], "n is 0 or more"),
        (["n >= m"], FORMS),
    ],
)
def test_an_error_says_what_it_contradicts_or_what_is_understood(
    texts: list[str], note: str
) -> None:
    with pytest.raises(AssumptionError) as refusal:
        parse(texts)

    assert refusal.value.note == note


def test_nothing_assumed_is_nothing() -> None:
    assert parse([]) == Assumptions() == parse(["n >= 0", "n % 1 == 0"])


@pytest.mark.parametrize("values", [{"n": 0}, {"n": 7}])
def test_what_a_dimension_is_for_numbers_is_not_assumed(values: Mapping[str, int]) -> None:
    with assuming(parse(["n >= 9"])):
        assert dims.evaluate(dims.symbol("n"), values) == values["n"]


def test_a_shape_that_was_deduced_under_assumptions_is_deduced_anew_without() -> None:
    y = tensor((dims.symbol("m"),), "float32")
    joined = (OPS["concat"], (TupleStructInfo((y, y)),), (("axis", 0),))

    with assuming(parse(["m == 2*n"])):
        assert inferred(*joined) == tensor((dims.parse("n * 4"),), "float32")

    assert inferred(*joined) == tensor((dims.parse("m * 2"),), "float32")

"""Dimensions: canonical form, proofs, text."""

import ast
from collections.abc import Mapping

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim, symbol
from tests.support.random_dims import ATOMS, DIMS, VALUES

n, m = symbol("n"), symbol("m")


@settings(max_examples=60, deadline=None)
@given(DIMS)
def test_what_text_writes_parse_reads(dim: Dim) -> None:
    assert dims.parse(dims.text(dim)) == dim


@settings(max_examples=60, deadline=None)
@given(DIMS, VALUES)
def test_text_is_the_arithmetic_of_python(dim: Dim, values: Mapping[str, int]) -> None:
    written = eval(dims.text(dim), {"min": min, "max": max}, dict(values))

    assert written == dims.evaluate(dim, values)


@settings(max_examples=60, deadline=None)
@given(ATOMS, DIMS, st.integers(1, 5), VALUES)
def test_operations_are_those_of_integers(
    a: Dim, b: Dim, c: int, values: Mapping[str, int]
) -> None:
    x, y = dims.evaluate(a, values), dims.evaluate(b, values)

    made = [
        dims.add(a, b),
        dims.sub(a, b),
        dims.mul(a, b),
        dims.floordiv(b, c),
        dims.mod(b, c),
        dims.minimum(a, b),
        dims.maximum(a, b),
        dims.product([a, b, c]),
    ]

    expected = [x + y, x - y, x * y, y // c, y % c, min(x, y), max(x, y), x * y * c]
    assert [dims.evaluate(d, values) for d in made] == expected


@settings(max_examples=60, deadline=None)
@given(DIMS, DIMS, VALUES)
def test_what_is_proven_holds(a: Dim, b: Dim, values: Mapping[str, int]) -> None:
    x, y = dims.evaluate(a, values), dims.evaluate(b, values)

    assert x == y or not dims.equal(a, b)
    assert x != y or not dims.distinct(a, b)
    assert x >= y or not dims.prove_ge(a, b)
    assert not dims.divides(a, b) or (y % x == 0 if x else y == 0)


@settings(max_examples=40, deadline=None)
@given(DIMS, DIMS, VALUES)
def test_substitution_commutes_with_evaluation(
    dim: Dim, new: Dim, values: Mapping[str, int]
) -> None:
    inner = dims.evaluate(new, values)

    replaced = dims.substitute(dim, {"n": new})

    assert dims.evaluate(replaced, values) == dims.evaluate(dim, {**values, "n": inner})


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (dims.mul(dims.add(n, 1), 2), dims.add(dims.mul(2, n), 2)),
        (dims.sub(dims.add(n, m), m), n),
        (dims.mul(n, 0), 0),
        (dims.floordiv(dims.mul(n, 4), 4), n),
        (dims.mod(dims.mul(n, 4), 4), 0),
        (dims.minimum(n, n), n),
        (dims.maximum(n, 0), n),
        (dims.parse("(n + 1) * (n - 1)"), dims.parse("n * n - 1")),
    ],
)
def test_equal_polynomials_have_one_form(a: Dim, b: Dim) -> None:
    assert a == b


def test_canonical_form_makes_numbers_of_python() -> None:
    assert type(dims.sub(dims.add(n, 3), n)) is int


@pytest.mark.parametrize(
    ("a", "b", "proven"),
    [
        ("n - min(1, n)", "max(0, n - 1)", True),
        ("min(n, m) + max(n, m)", "n + m", True),
        ("max(0, min(2, n // 4) - 1)", "min(2, n // 4) - min(1, n // 4)", True),
        ("max(n, m) - n", "m - min(m, n)", True),
        ("(n + (32 - n % 32) % 32) // 32 * 32", "n + (32 - n % 32) % 32", True),
        ("m * ((n + n * 15 % 16) // 16) * 64", "m * (n + n * 15 % 16) * 4", True),
        ("(n + n * 14 % 16) // 16 * 16", "n + n * 14 % 16", False),
        ("max(0, min(1, n) * 2 - 1)", "min(1, n) * 2 - min(1, n * 2)", True),
        ("max(0, n - 1)", "max(0, n - 2)", False),
        ("n - min(1, n)", "n - 1", False),
        ("max(n, m)", "n", False),
    ],
)
def test_equality_of_minima_and_maxima_is_proven(a: str, b: str, proven: bool) -> None:
    assert dims.equal(dims.parse(a), dims.parse(b)) is proven


def test_minima_of_minima_are_decided_at_once() -> None:
    a = dims.parse("max(0, min(2, (min(1, max(0, min(2, n) - 1)) + 1) // 2) - 1)")

    assert dims.equal(dims.sub(a, a), 0)
    assert not dims.prove_ge(a, 2)


@pytest.mark.parametrize(
    ("a", "b", "proven"),
    [
        (dims.add(n, 1), n, True),
        (dims.mul(n, 2), n, True),
        (n, 0, True),
        (n, m, False),
        (n, 1, False),
        (3, 2, True),
        (n, dims.floordiv(dims.add(n, 1), 2), True),
        (n, dims.floordiv(dims.add(n, 2), 2), False),
        (dims.mul(n, m), dims.floordiv(dims.add(dims.mul(n, m), 3), 4), True),
        (dims.add(dims.floordiv(n, 2), dims.floordiv(dims.add(n, 1), 2)), n, True),
    ],
)
def test_greater_or_equal_is_proven(a: Dim, b: Dim, proven: bool) -> None:
    assert dims.prove_ge(a, b) is proven


@pytest.mark.parametrize(
    ("a", "b", "proven"),
    [(n, dims.add(n, 1), True), (n, m, False), (n, 0, False), (2, 3, True), (3, 3, False)],
)
def test_distinct_is_proven(a: Dim, b: Dim, proven: bool) -> None:
    assert dims.distinct(a, b) is proven


@pytest.mark.parametrize(
    ("a", "b", "proven"),
    [
        (4, dims.mul(n, 8), True),
        (4, n, False),
        (0, 0, False),
        (3, 9, True),
        (3, dims.maximum(dims.mul(n, 2), 2), False),
    ],
)
def test_divisibility_is_proven(a: Dim, b: Dim, proven: bool) -> None:
    assert dims.divides(a, b) is proven


@pytest.mark.parametrize(
    ("dim", "written"),
    [
        (7, "7"),
        (n, "n"),
        (dims.mul(n, 4), "n * 4"),
        (dims.add(dims.mul(n, m), 1), "m * n + 1"),
        (dims.maximum(dims.mul(n, 2), 6), "max(3, n) * 2"),
        (dims.floordiv(dims.maximum(dims.mul(n, 2), 2), 6), "max(1, n) // 3"),
        (dims.sub(n, 1), "n - 1"),
        (dims.sub(1, n), "1 - n"),
        (dims.mul(n, n), "n * n"),
        (dims.floordiv(n, 2), "n // 2"),
        (dims.mul(dims.floordiv(dims.add(n, 1), 2), 2), "((n + 1) // 2) * 2"),
        (dims.mod(n, 8), "n % 8"),
        (dims.minimum(n, 4), "min(4, n)"),
        (dims.maximum(n, m), "max(m, n)"),
    ],
)
def test_a_dimension_is_written_as_script_writes_it(dim: Dim, written: str) -> None:
    assert dims.text(dim) == written


@pytest.mark.parametrize(
    "written", ["n / 2", "f(n, 2)", "n + 1.5", "n[0]", "True", "min(n)", "n ** 2"]
)
def test_what_is_no_dimension_is_refused(written: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011  # the whole text is compared
        dims.parse(written)

    shown = ast.unparse(ast.parse(written, mode="eval"))
    if written == "n + 1.5":
        shown = "1.5"
    assert str(refusal.value) == (
        f"`{shown}` is no dimension: it is not built of + - * // % min max"
    )


def test_a_symbol_without_a_value_is_named() -> None:
    with pytest.raises(KeyError) as missing:
        dims.evaluate(dims.add(n, m), {"n": 1})

    assert missing.value.args == ("m",)


def test_the_symbols_of_a_dimension_are_its_names() -> None:
    assert dims.symbols(dims.add(dims.mul(n, m), dims.floordiv(n, 2))) == {"n", "m"}
    assert dims.symbols(3) == frozenset()


def _frames(samples: Dim) -> list[Dim]:
    """The extents of a chain of convolutions, each of the one before."""
    frames = [samples]
    for kernel, stride in ((10, 5), (8, 4), (4, 4), (4, 2)):
        frames.append(dims.add(dims.floordiv(dims.sub(frames[-1], kernel), stride), 1))
    return frames[1:]


SIZES = st.lists(st.tuples(*[st.integers(0, 3)] * 4, st.integers(0, 900)), min_size=1, max_size=6)


@given(SIZES, st.integers(0, 40), st.integers(400, 9000))
@settings(max_examples=30, deadline=None)
def test_extremes_of_sums_over_nested_floors_are_those_of_their_values(
    sizes: list[tuple[int, ...]], batch: int, samples: int
) -> None:
    frames, values = _frames(n), {"n": samples, "m": batch}
    sums = [
        dims.add(rest, dims.mul(m, sum(map(dims.mul, factors, frames)))) for *factors, rest in sizes
    ]
    expected = [dims.evaluate(d, values) for d in sums]

    assert dims.evaluate(dims.maximum(*sums), values) == max(expected)
    assert dims.evaluate(dims.minimum(*sums), values) == min(expected)


def test_of_two_sums_one_difference_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What sympy does instead takes seconds for a few sums over nested floors."""

    def refuse(*_: object) -> None:
        raise AssertionError("sympy compares the parts")

    monkeypatch.setattr(sympy.Max, "_find_localzeros", refuse)
    a, b, c, d = (dims.mul(m, f) for f in _frames(n))

    largest = dims.maximum(
        dims.add(a, 64), dims.add(dims.mul(c, 3), d), dims.add(b, dims.mul(d, 2)), dims.mul(c, 3)
    )

    assert dims.symbols(dims.substitute(largest, {"n": symbol("k"), "m": 7})) == {"k"}


# --- one extent, two spellings ------------------------------------------------------

STEPS, ENDS = st.integers(2, 6), st.integers(0, 1200)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[Dim, Dim]:
    """One extent of slices and parts of slices, written in two ways."""
    k, j, end, start = draw(STEPS), draw(STEPS), draw(ENDS), draw(st.integers(0, 9))
    n = dims.add(dims.mul(draw(st.integers(1, 3)), dims.symbol("n")), draw(st.integers(0, 5)))
    up = dims.floordiv(dims.add(n, k - 1), k)
    match draw(st.integers(0, 6)):
        case 0:  # every k-th of the first elements
            cut = dims.floordiv(dims.add(dims.minimum(end, n), k - 1), k)
            return cut, dims.minimum((end + k - 1) // k, up)
        case 1:  # every j-th of every k-th
            again = dims.floordiv(dims.add(up, j - 1), j)
            return again, dims.floordiv(dims.add(n, j * k - 1), j * k)
        case 2:  # counted from another element
            return dims.add(dims.floordiv(dims.sub(n, k * start), k), start), dims.floordiv(n, k)
        case 3:  # what is left of whole parts
            return dims.mod(n, k), dims.sub(n, dims.mul(k, dims.floordiv(n, k)))
        case 4:  # the last part of two
            return dims.sub(n, dims.floordiv(dims.add(n, 1), 2)), dims.floordiv(n, 2)
        case 5:  # the longer of two, sampled
            longer = dims.floordiv(dims.maximum(n, dims.symbol("m")), k)
            return longer, dims.maximum(dims.floordiv(n, k), dims.floordiv(dims.symbol("m"), k))
        case _:  # whole elements, and those of a part
            more = dims.add(dims.mul(n, k * start + 1), k - 1)
            return dims.floordiv(more, k), dims.add(dims.mul(n, start), up)


@given(spellings())
@settings(max_examples=60)
def test_one_extent_in_two_spellings_is_equal(both: tuple[Dim, Dim]) -> None:
    a, b = both

    assert dims.equal(a, b)
    for n in range(0, 40, 3):
        values = {"n": n, "m": (7 * n) % 31}
        assert dims.evaluate(a, values) == dims.evaluate(b, values)


@given(spellings(), spellings(), st.integers(-1, 1))
@settings(max_examples=40)
def test_what_is_equal_has_one_value(a: tuple[Dim, Dim], b: tuple[Dim, Dim], more: int) -> None:
    left, right = a[0], dims.add(b[1], more)

    if dims.equal(left, right):
        for n in range(0, 40, 3):
            values = {"n": n, "m": (7 * n) % 31}
            assert dims.evaluate(left, values) == dims.evaluate(right, values)

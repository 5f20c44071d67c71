"""Minima and maxima of one symbol are compared at all points at which they bend."""

from random import Random

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

N = dims.symbol("n")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("max(0, min(n + 1, n + min(1, n)) - 1)", "n"),
        ("min(n, 3) + max(n, 3)", "n + 3"),
        ("max(0, n - 2) + min(2, n)", "n"),
        ("max(0, min(1, n)) * 5", "min(5, 5 * n)"),
    ],
)
def test_equal_minima_are_seen_to_be_equal(a: str, b: str) -> None:
    assert dims.equal(dims.parse(a), dims.parse(b))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("min(n, 100)", "n"),  # from 101 on they differ
        ("max(0, n - 1) + 1", "n"),  # at 0 alone
        ("min(n, 40) + min(m, 40)", "n + m"),
    ],
)
def test_others_are_not(a: str, b: str) -> None:
    assert not dims.equal(dims.parse(a), dims.parse(b))


def drawn(random: Random, depth: int) -> Dim:
    if depth == 0:
        return random.choice([N, random.randrange(-4, 5)])
    a, b = drawn(random, depth - 1), drawn(random, depth - 1)
    if random.random() < 0.2:
        return dims.mul(random.randrange(-3, 4), a)
    return random.choice([dims.minimum, dims.maximum, dims.add])(a, b)


def test_what_is_equal_is_equal_everywhere() -> None:
    random, equal = Random(0), 0
    for _ in range(80):
        a, other = drawn(random, 2), drawn(random, 1)
        b = random.choice([dims.minimum, dims.maximum])(a, other)
        values = [(dims.evaluate(a, {"n": n}), dims.evaluate(b, {"n": n})) for n in range(60)]
        is_equal = all(x == y for x, y in values)
        equal += is_equal

        assert dims.equal(a, b) == is_equal

    assert equal > 10

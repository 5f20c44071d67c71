"""What is concluded from an equation holds at every size at which the equation does."""

from itertools import product
from random import Random

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.equations import Equation
from relax_egraph.ir.solving import condition, consequence

N, M = dims.symbol("n"), dims.symbol("m")


def equation(left: str, right: str, repeated: str = "") -> Equation:
    """``left == right``, unless an extent of those that `repeated` names, ``l`` and ``r``, is 1."""
    sides = {"l": dims.parse(left), "r": dims.parse(right)}
    return Equation(sides["l"], sides["r"], tuple(sides[k] for k in repeated), "")


@pytest.mark.parametrize(
    ("left", "right", "repeated", "expected"),
    [
        ("min(64, n)", "n", "", "n <= 64"),
        ("min(64, n)", "n", "lr", "n <= 64"),
        ("min(64, n)", "m", "", "m == min(64, n)"),
        ("min(64, m, n)", "n", "", "n <= 64 and n <= m"),
        ("max(2, n)", "n", "", "n >= 2"),
        ("max(0, n // 2 - 3)", "n // 2 - 3", "lr", "n // 2 - 3 >= 0"),
        ("n", "m", "", "m == n"),
        ("n", "8", "", "n == 8"),
        ("n", "2 * m", "", "n == m * 2"),
        ("(n + 7) // 8 * 8", "n", "", "n % 8 == 0"),
        ("n // 4 * 4", "n", "", "n % 4 == 0"),
        ("24 * min(64, n)", "24 * n", "", "n <= 64"),
        ("min(8, n)", "8", "", "n >= 8"),
        ("m * min(64, n)", "m * n", "", "m * n == m * min(64, n)"),
    ],
)
def test_a_condition_follows(left: str, right: str, repeated: str, expected: str) -> None:
    found = consequence(equation(left, right, repeated))

    assert found is not None
    assert condition(*found) == expected


@pytest.mark.parametrize(
    ("left", "right", "repeated"),
    [
        ("n", "m", "lr"),  # either may be 1
        ("n", "8", "l"),
        ("min(64, n)", "m", "lr"),
        ("(n + 7) // 8 * 8", "n", "lr"),  # 8 and 1 broadcast
        ("max(2, n)", "n", "lr"),  # so do 2 and 1
        ("min(8, n)", "8", "lr"),  # so do 1 and 8
        ("min(64, m, n)", "n", "lr"),
        ("n + m", "n", "lr"),
        ("-(-n // 2)", "n", "lr"),  # 1 and 2 broadcast
        ("8 % n", "n", "lr"),
    ],
)
def test_nothing_follows_where_the_equation_may_hold_otherwise(
    left: str, right: str, repeated: str
) -> None:
    assert consequence(equation(left, right, repeated)) is None


def drawn(random: Random, depth: int = 2) -> Dim:
    if depth == 0 or random.random() < 0.3:
        return random.choice([N, N, M, random.randrange(1, 9)])
    a, b, k = drawn(random, depth - 1), drawn(random, depth - 1), random.randrange(1, 5)
    return random.choice(
        [
            lambda: dims.minimum(a, b),
            lambda: dims.maximum(a, b),
            lambda: dims.add(a, k),
            lambda: dims.mul(a, b),
            lambda: dims.floordiv(dims.add(a, k - 1), k),
            lambda: dims.mul(k, dims.floordiv(a, k)),
            lambda: dims.mul(-1, dims.floordiv(dims.mul(-1, a), k)),
            lambda: dims.mod(a, k),
            lambda: dims.maximum(0, dims.sub(k, a)),
        ]
    )()


@pytest.mark.parametrize("count", [40, pytest.param(2000, marks=pytest.mark.fuzz)])
def test_what_follows_is_necessary(count: int) -> None:
    random, followed = Random(0), 0
    while followed < count:
        left, right = drawn(random), drawn(random)
        repeated = random.choice([(), (left,), (left, right)])
        found = consequence(Equation(left, right, repeated, ""))
        if found is None or dims.equal(left, right):
            continue
        followed += 1
        for n, m in product((0, 1, 2, 3, 8, 65), repeat=2):
            a, b, c, d = (dims.evaluate(x, {"n": n, "m": m}) for x in (left, right, *found))
            holds = a == b or 1 in (dims.evaluate(x, {"n": n, "m": m}) for x in repeated)
            assert c == d or not holds, (left, right, repeated, found, n, m)

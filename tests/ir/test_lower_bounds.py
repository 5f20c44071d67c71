"""What checks say of sizes is known behind them."""

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.lower_bounds import LowerBounds


def bounds(*nonnegative: str) -> LowerBounds:
    known = LowerBounds()
    for text in nonnegative:
        known.add(dims.parse(text))
    return known


@pytest.mark.parametrize(
    ("known", "dim"),
    [
        ([], "n + 3"),
        (["n - 10"], "n - 10"),
        (["n - 10"], "n // 5 - 2"),
        (["n - 10"], "2 * n + m - 20"),
        (["n - m - 3"], "n - m"),
        (["2 * n - m"], "2 * n - m + 1"),
        (["n - 10", "n // 5 - 9"], "(n // 5 - 9) // 4 + 1"),
        (["n // 5 - 9", "(n // 5 - 9) // 4 - 3"], "((n // 5 - 9) // 4 - 3) // 4"),
    ],
)
def test_it_is_proven(known: list[str], dim: str) -> None:
    assert bounds(*known).prove_nonnegative(dims.parse(dim))


@pytest.mark.parametrize(
    ("known", "dim"),
    [
        ([], "n - 1"),
        (["n - 10"], "n - 11"),
        (["n - 10"], "m - 10"),
        (["n - 10"], "n // 5 - 3"),
        (["n - m - 3"], "m - n"),
    ],
)
def test_it_is_not_proven(known: list[str], dim: str) -> None:
    assert not bounds(*known).prove_nonnegative(dims.parse(dim))


def test_a_maximum_is_the_operand_that_is_known_to_be_the_greatest() -> None:
    known = bounds("n - 10")

    assert known.simplified(dims.parse("max(0, n - 7) * 4")) == dims.parse("n * 4 - 28")
    assert known.simplified(dims.parse("max(0, n - 12)")) == dims.parse("max(0, n - 12)")
    assert known.simplified(dims.parse("max(3, m, n)")) == dims.parse("max(m, n)")

"""Elementwise operators of torch: promotion, integers, zeros of both signs, NaN."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tests.frontends.torch.agreement import assert_agrees  # noqa: E402

SPECIAL = [0.0, -0.0, 1.5, -2.5, 1e-12, -3e-9, float("inf"), float("-inf"), float("nan")]
INTEGERS = [-7, -1, 0, 1, 2, 5, 63]


def floats() -> Any:
    """Zeros, small and large numbers, infinities and NaN."""
    return torch.tensor(SPECIAL)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.clamp(x, -1.0, 1.0),
        lambda x: torch.clamp(x, min=float("nan")),
        lambda x: torch.copysign(torch.ones_like(x), x.nan_to_num()),
        lambda x: torch.expm1(x) + torch.sign(x),
        lambda x: torch.maximum(x, torch.ones_like(x).view(-1, 1)),
        lambda x: torch.nn.functional.elu(x, 0.7),
        lambda x: (x > 0, x.bool(), x == x.view(-1, 1)),
        lambda x: torch.where(x > 0, x, 2),
    ],
)
def test_special_floats(function: Callable[[Any], Any]) -> None:
    """NaN, infinities and -0.0 become what they become in torch."""
    assert_agrees(function, floats())


def test_logarithm_and_exponential_near_zero() -> None:
    """Small results are accurate relative to themselves."""
    x = torch.tensor([1e-30, -1e-20, 1e-9, -1e-5, 3e-3, -0.4, 0.9, 30.0])
    for function in (torch.log1p, torch.expm1):
        assert_agrees(function, x, relative=5e-7, absolute=0)


def test_error_function_and_hypotenuse() -> None:
    """Tails of the error function have their digits; no square of the hypotenuse overflows."""
    x = torch.tensor([*torch.linspace(-30, 30, 241), float("inf"), -float("inf"), float("nan")])
    assert_agrees(torch.erfc, x, relative=3e-7, absolute=1e-44)
    assert_agrees(torch.erfc, x.double(), relative=2e-15, absolute=0)
    assert_agrees(torch.special.erfcx, x.double(), relative=2e-14, absolute=0)
    sides = torch.tensor([0.0, 3.0, 1e30, 1e-30, float("inf"), float("nan")])
    assert_agrees(lambda x: torch.hypot(x, 4 / 3 * x.view(-1, 1)), sides)


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "uint8"])
def test_divisors_and_multiples(dtype: str) -> None:
    x = torch.tensor([0, 0, 12, -18, 97, 126, 5]).to(getattr(torch, dtype))
    for function in (torch.gcd, torch.lcm):
        assert_agrees(lambda x, of=function: of(x, x.view(-1, 1).flip(0)), x)
        assert_agrees(function, x[:0], x[:0])


def test_logarithms_of_powers_of_the_base_are_whole() -> None:
    """``floor`` does not lose one."""
    assert_agrees(lambda x: torch.floor(torch.log2(x)), 2.0 ** torch.arange(-20, 20))
    assert_agrees(lambda x: torch.floor(torch.log10(x)), torch.tensor([1.0, 10, 100, 1000, 1e6]))


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_quotients_and_remainders(mode: str | None, dtype: str) -> None:
    """Each mode of rounding, of both signs; both remainders."""
    x = torch.tensor([-7, -6, 0, 6, 7], dtype=getattr(torch, dtype))[:, None]
    y = torch.tensor([-3, -2, 2, 3], dtype=x.dtype)

    def function(x: Any, y: Any) -> Any:
        return torch.div(x, y, rounding_mode=mode), torch.fmod(x, y), torch.remainder(x, y)

    assert_agrees(function, x, y)


def test_powers_and_shifts_of_integers() -> None:
    """Powers wrap, negative ones are of 1 and -1; shifts beyond the width shift all out."""
    x = torch.tensor(INTEGERS)[:, None]
    y = torch.tensor([-65, -1, 0, 1, 3, 63, 64, 65, 66, 99, 1001, 2**61 + 12345, 2**63 - 1])
    assert_agrees(lambda x, y: (x**3, x**71, x << y, x >> y), x, y)
    assert_agrees(lambda x, y: x**y, x[x[:, 0] != 0], y)


def test_promotion() -> None:
    """Numbers and tensors of rank 0 widen only to a higher category; booleans count as bits."""
    x, flags = torch.tensor(INTEGERS, dtype=torch.int8), torch.tensor([True, False])
    assert_agrees(lambda x: (x + 1, x + 1.5, x / 2, x * torch.tensor(2**40), ~x), x)
    assert_agrees(lambda b: (b + True, b * b, b + 1, b / 2, b < 1, b ^ True), flags)


@pytest.mark.parametrize("size", [1, 5])
def test_sizes_known_late(size: int) -> None:
    """A size is an operand, and the number of elements of a range."""

    def function(x: Any) -> Any:
        n = x.shape[0]
        return x * n + torch.arange(n), torch.arange(0, 2 * n, 2), torch.full((n,), 0.5)

    sized = {0: torch.export.Dim("n", min=1, max=64)}
    assert_agrees(function, torch.ones(3), dynamic=sized, late=(torch.arange(1.0, 1 + size),))

"""Complex numbers and Fourier transforms within programs, and as their inputs and results.

As inputs and results they are reals whose last axis has the parts, like ``torch.view_as_real``.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

from tests.frontends.torch.agreement import assert_agrees  # noqa: E402

X = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(1))
Y = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(2))


def numbers(x: Any, y: Any) -> Any:
    return torch.complex(x, y)


def parts(z: Any) -> Any:
    return torch.view_as_real(z.resolve_conj())


def rotated(x: Any, y: Any) -> Any:
    """Rotary embeddings, as LLaMA's authors wrote them."""
    pairs = torch.view_as_complex(x.reshape(3, 4, 3, 2))
    angles = torch.outer(torch.arange(4.0), torch.arange(3.0))
    turns = torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(pairs * turns).flatten(2) + y


FUNCTIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "rotary embeddings": rotated,
    "parts": lambda x, y: numbers(x, y).imag - numbers(x, y).real,
    "a conjugate": lambda x, y: (parts(numbers(x, y).conj() * 2), numbers(x, y).conj().imag),
    "magnitudes and angles": lambda x, y: (numbers(x, y).abs(), numbers(x, y).angle(), x.angle()),
    "sums": lambda x, y: parts(numbers(x, y) + y - (2 - 1j) + numbers(y, x).sum(1, keepdim=True)),
    "sums of another size": lambda x, y: parts(numbers(x, y)[:1, :1] + y),
    "products": lambda x, y: parts(numbers(x, y) * x * numbers(y, x) * 3j),
    "quotients": lambda x, y: parts(numbers(x, y) / numbers(y, x) + x / numbers(x, y) / 2),
    "quotients of large numbers": lambda x, y: parts(x / numbers(x * 1e30, y * 1e30) * 1e30),
    "matrices": lambda x, y: parts(numbers(x, y) @ numbers(y, x).mT + numbers(x, y).mean()),
    "powers": lambda x, y: parts(numbers(x, y) ** 3 + numbers(x, y) ** 0.5 + numbers(x, y) ** -1),
    "powers of 0": lambda x, y: parts((numbers(x, y) * 0) ** 1.5 + numbers(x, y) ** 0),
    "exponentials": lambda x, y: parts(torch.exp(numbers(x, y)) + torch.log(numbers(x, y))),
    "signs": lambda x, y: parts(torch.sgn(numbers(x, y)) + torch.sgn(numbers(x, y) * 0)),
    "movement": lambda x, y: parts(
        torch.cat([numbers(x, y), y], 1).flip(0).permute(2, 0, 1)[1:, ::2].roll(1, 0)
    ),
    "a choice": lambda x, y: parts(torch.where(x > y, numbers(x, y), 1j)),
    "comparisons": lambda x, y: (numbers(x, y) == numbers(x, x), numbers(x, y) != 0),
    "new tensors": lambda x, y: parts(
        torch.zeros(3, 4, 6, dtype=torch.complex64) + torch.full_like(numbers(x, y), 1 + 2j)
    ),
    "other precisions": lambda x, y: parts(numbers(x, y).to(torch.complex128) * x.double()),
    "all axes": lambda x, y: torch.fft.fftn(numbers(x, y), dim=(0, 1, 2)).abs(),
    "a half": lambda x, y: parts(torch.fft.rfft2(x, norm="ortho") + torch.fft.rfft2(y)),
    "there and back": lambda x, y: torch.fft.irfft(torch.fft.rfft(x, dim=1) * 2, dim=1, n=5) * 3,
    "convolved": lambda x, y: torch.fft.ifft2(torch.fft.fft2(x) * torch.fft.fft2(y)).real,
    "tokens mixed": lambda x, y: torch.fft.fft(torch.fft.fft(x, dim=-1), dim=-2).real + y,
    "frames": lambda x, y: torch.stft(
        x.flatten(1), 8, 2, window=torch.hann_window(8), return_complex=True
    ).abs(),
    "frames and back": lambda x, y: torch.istft(
        torch.stft(x.flatten(1), 8, 2, window=torch.hann_window(8), return_complex=True) * 2,
        *(8, 2),
        window=torch.hann_window(8),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_complex_numbers_are_of_two_parts(name: str) -> None:
    assert_agrees(FUNCTIONS[name], X, Y, relative=2e-5, absolute=2e-5)


@pytest.mark.parametrize("length", [67, 100, 150])
def test_long_transforms(length: int) -> None:
    x = torch.randn(2, length, generator=torch.Generator().manual_seed(length))

    def there(x: Any) -> Any:
        half = torch.fft.rfft(x)
        return parts(half), parts(torch.fft.ifft(x)), torch.fft.irfft(half, n=length)

    assert_agrees(there, x, relative=2e-5, absolute=2e-5)


def test_transforms_of_dynamic_sizes() -> None:
    def there(x: Any) -> Any:
        whole = torch.fft.fftn(x, norm="ortho")
        return parts(whole), torch.fft.ifft(whole, dim=0).abs(), parts(torch.fft.rfft(x.T))

    late = torch.randn(10, 4, 6, generator=torch.Generator().manual_seed(3))
    dynamic = {0: torch.export.Dim("n", min=2, max=64)}
    assert_agrees(there, X, dynamic=dynamic, late=(late,), relative=2e-5, absolute=2e-5)


def test_inputs_and_results_have_their_parts_along_a_last_axis() -> None:
    z = numbers(X, Y)

    assert_agrees(lambda z, x: (z * x, z.conj()), z, X)
    assert_agrees(lambda x: torch.fft.rfft(x), X, relative=2e-5, absolute=2e-5)

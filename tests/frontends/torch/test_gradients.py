"""Gradients of layers that training graphs contain, against torch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

aten = torch.ops.aten


def _check(function: Callable[..., Any], tensors: Callable[[int], tuple[Any, ...]]) -> None:
    """Export `function` with a dynamic batch, and compare it at two sizes."""

    class Program(torch.nn.Module):
        def forward(self, *xs: Any) -> Any:
            return function(*xs)

    batch = torch.export.Dim("batch", min=1, max=64)
    example = tensors(4)
    axes = tuple({0: batch} if x.shape[0] == 4 else None for x in example)
    program = torch.export.export(Program(), example, dynamic_shapes=(axes,))
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)
    for size in (2, 5):
        own = tensors(size)
        expected = function(*own)
        results = machine["main"](*own)
        pairs = zip(
            results if isinstance(results, tuple) else (results,),
            expected if isinstance(expected, tuple | list) else (expected,),
            strict=True,
        )
        for result, value in pairs:
            np.testing.assert_allclose(np.asarray(result), value.numpy(), rtol=1e-4, atol=1e-5)


def _draw(*shape: int) -> Any:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator)


@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [(1, 1, 1, 1), (2, 1, 1, 1), (2, 0, 2, 2), (3, 2, 1, 4)],
)
def test_gradients_of_a_convolution(stride: int, padding: int, dilation: int, groups: int) -> None:
    weight = _draw(8, 4 // groups, 3, 3)
    windows = ([stride] * 2, [padding] * 2, [dilation] * 2)

    def gradients(grad: Any, x: Any) -> Any:
        rest = (False, [0, 0], groups, [True, True, True])
        return aten.convolution_backward(grad, x, weight, [8], *windows, *rest)

    def tensors(n: int) -> tuple[Any, ...]:
        x = _draw(n, 4, 9, 11)
        out = torch.nn.functional.conv2d(x, weight, None, *windows, groups)
        return _draw(*out.shape), x

    _check(gradients, tensors)


def test_gradients_of_a_transposed_convolution() -> None:
    weight = _draw(4, 3, 3)

    def gradients(grad: Any, x: Any) -> Any:
        windows = ([2], [1], [1], True, [1], 2, [True, True, True])
        return aten.convolution_backward(grad, x, weight, [6], *windows)

    _check(gradients, lambda n: (_draw(n, 6, 14), _draw(n, 4, 7)))


@pytest.mark.parametrize("causal", [False, True])
def test_attention_keeps_the_logarithms_that_its_gradients_need(causal: bool) -> None:
    def gradients(grad: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        flash = aten._scaled_dot_product_flash_attention_for_cpu
        out, kept = flash(q, k, v, 0.0, causal, attn_mask=mask)
        backward = aten._scaled_dot_product_flash_attention_for_cpu_backward
        return out, kept, *backward(grad, q, k, v, out, kept, 0.0, causal, attn_mask=mask)

    def tensors(n: int) -> tuple[Any, ...]:
        rows = [_draw(n, 2, 6, 8) + k for k in range(4)]
        return (*rows, _draw(n, 1, 6, 6))

    _check(gradients, tensors)


def test_gradients_of_pools() -> None:
    def gradients(of_max: Any, of_mean: Any, of_whole: Any, x: Any) -> Any:
        _, indices = aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
        window = [3, 3], [2, 2], [1, 1]
        return (
            aten.max_pool2d_with_indices_backward(of_max, x, *window, [1, 1], False, indices),
            aten.avg_pool2d_backward(of_mean, x, *window, True, False, None),
            aten.avg_pool2d_backward(of_mean, x, *window, True, True, 5),
            aten._adaptive_avg_pool2d_backward(of_whole, x),
        )

    def tensors(n: int) -> tuple[Any, ...]:
        return _draw(n, 3, 5, 4), _draw(n, 3, 5, 5), _draw(n, 3, 2, 3), _draw(n, 3, 9, 8)

    _check(gradients, tensors)


@pytest.mark.parametrize(
    ("rank", "size", "stride", "padding", "dilation"),
    [(2, 2, 2, 0, 1), (2, 3, 2, 1, 2), (2, 2, 3, 0, 1), (2, 4, 1, 2, 1), (3, 2, 2, 0, 1)],
)
def test_the_gradient_of_a_window_is_added_at_its_greatest_element(
    rank: int, size: int, stride: int, padding: int, dilation: int
) -> None:
    window = [[n] * rank for n in (size, stride, padding, dilation)]
    pool, backward = (
        getattr(aten, f"max_pool{rank}d_with_indices{kind}") for kind in ("", "_backward")
    )

    def gradients(x: Any, factor: Any) -> Any:
        values, indices = pool(x, *window, False)
        return backward(values * factor, x, *window, False, indices)

    extents = (8, 9, 7)[:rank]
    _check(gradients, lambda n: (_draw(n, 2, *extents), torch.tensor([2.0])))


def test_gradients_of_resized_images() -> None:
    def gradients(grad: Any, bordered: Any) -> Any:
        return (
            aten.upsample_nearest2d_backward(grad, [8, 9], [2, 3, 4, 5], 2.0, None),
            aten.upsample_bilinear2d_backward(grad, [8, 9], [2, 3, 4, 5], True),
            aten.upsample_bicubic2d_backward(grad, [8, 9], [2, 3, 4, 5], False),
            aten.replication_pad2d_backward(grad, bordered, [2, 0, 1, 2]),
        )

    _check(gradients, lambda _: (_draw(2, 3, 8, 9), _draw(2, 3, 5, 7)))


def test_gradients_of_distances() -> None:
    def gradients(grad: Any, x: Any, y: Any) -> Any:
        norms = [(p, aten._cdist_forward(x, y, p, None)) for p in (1.0, 2.0, 2.5, float("inf"))]
        return tuple(aten._cdist_backward(grad, x, y, p, norm) for p, norm in norms)

    _check(gradients, lambda n: (_draw(n, 3, 5), _draw(n, 3, 6), _draw(n, 5, 6) + 1))


@pytest.mark.parametrize("mode", [0, 1])
def test_gradients_of_bags_of_rows(mode: int) -> None:
    table = _draw(10, 3)

    def gradients(grad: Any, indices: Any) -> Any:
        offsets = torch.tensor([0, 2, 2])
        whole = aten._embedding_bag(table, indices, offsets, False, mode)
        kept = torch.tensor([0, 0, 2, 2, 2]), torch.tensor([2, 0, 3])
        rest = (kept[1], 10, False, mode, None)
        return whole[0], aten._embedding_bag_dense_backward(grad, indices, *kept, *rest)

    _check(gradients, lambda _: (_draw(3, 3), torch.tensor([1, 9, 4, 4, 0])))

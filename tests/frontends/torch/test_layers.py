"""Layers of ``torch.nn``, exported with dynamic sizes, against torch at two sizes each."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

nn = torch.nn
functional = torch.nn.functional

BATCH, SEQUENCE = {0: ("batch", 1, 64)}, {0: ("batch", 1, 64), 1: ("length", 2, 64)}
SIGNAL = {0: ("batch", 1, 64), 2: ("length", 8, 64)}
IMAGE = {0: ("batch", 1, 64), 2: ("height", 5, 64)}


class _Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.attention(x, x, x, need_weights=False)[0]


class _Function(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Any) -> Any:
        return self.function(x)


def _draw(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def _rows(n: int) -> tuple[Any, ...]:
    return (_draw(n, 5 + n, 8),)


def _images(n: int) -> tuple[Any, ...]:
    return (_draw(n, 4, 7 + n, 9),)


def _heads(n: int) -> tuple[Any, ...]:
    return (_draw(n, 2, 6 + n, 8),)


def _times(n: int) -> tuple[Any, ...]:
    return (_draw(n, 5, 4),)


def _masked(x: Any) -> Any:
    mask = torch.arange(x.shape[2])[None] > torch.arange(x.shape[2])[:, None]
    return functional.scaled_dot_product_attention(x, x, x, attn_mask=mask, scale=0.5)


def _interpolated(**settings: Any) -> Callable[[Any], Any]:
    return lambda x: functional.interpolate(x, **settings)


LAYERS: Mapping[str, tuple[Any, Callable[[int], tuple[Any, ...]], Mapping[int, Any]]] = {
    "Conv1d": (nn.Conv1d(3, 4, 3, stride=2, padding=1), lambda n: (_draw(n, 3, 9 + n),), SIGNAL),
    "Conv2d": (nn.Conv2d(4, 6, 3, padding="same", groups=2, dilation=2), _images, IMAGE),
    "Conv3d": (nn.Conv3d(2, 3, 3), lambda n: (_draw(n, 2, 5, 5, 5),), BATCH),
    "ConvTranspose2d": (
        nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, output_padding=1, groups=2),
        _images,
        IMAGE,
    ),
    "BatchNorm2d": (nn.BatchNorm2d(4).eval(), _images, IMAGE),
    "LayerNorm": (nn.LayerNorm(8), _rows, SEQUENCE),
    "GroupNorm": (nn.GroupNorm(2, 4), _images, IMAGE),
    "RMSNorm": (nn.RMSNorm(8), _rows, SEQUENCE),
    "MultiheadAttention": (_Attending().eval(), _rows, SEQUENCE),
    "causal attention": (
        _Function(lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True)),
        _heads,
        IMAGE,
    ),
    "masked attention": (_Function(_masked), _heads, IMAGE),
    "TransformerEncoderLayer": (
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(),
        _rows,
        SEQUENCE,
    ),
    "LSTM": (nn.LSTM(4, 3, num_layers=2, bidirectional=True, batch_first=True), _times, BATCH),
    "GRU": (nn.GRU(4, 3, batch_first=True), _times, BATCH),
    "RNN": (nn.RNN(4, 3, batch_first=True, bias=False), _times, BATCH),
    "Embedding": (
        nn.Embedding(10, 4),
        lambda n: (torch.arange(n * (4 + n)).reshape(n, 4 + n) % 10,),
        SEQUENCE,
    ),
    "MaxPool2d": (nn.MaxPool2d(3, 2, 1), _images, IMAGE),
    "AvgPool2d": (nn.AvgPool2d(3, 2, 1, count_include_pad=False), _images, IMAGE),
    "AdaptiveAvgPool2d": (nn.AdaptiveAvgPool2d((3, 1)), lambda n: (_draw(n, 3, 7, 8),), BATCH),
    "Upsample": (nn.Upsample(scale_factor=1.5, mode="bilinear"), _images, IMAGE),
    "nearest pixels": (_Function(_interpolated(scale_factor=2)), _images, IMAGE),
    "cubic pixels": (_Function(_interpolated(size=(5, 6), mode="bicubic")), _images, IMAGE),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_agrees_with_torch(name: str) -> None:
    layer, inputs, dynamic = LAYERS[name]
    sizes = {a: torch.export.Dim(s, min=least, max=most) for a, (s, least, most) in dynamic.items()}
    program = torch.export.export(layer, inputs(4), dynamic_shapes=(sizes,))

    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)

    for size in (3, 6):
        own = inputs(size)
        results = machine["main"](*own)
        leaves = torch.utils._pytree.tree_leaves(layer(*own))
        pairs = zip(results if isinstance(results, tuple) else (results,), leaves, strict=True)
        for result, value in pairs:
            want = value.detach().numpy()
            np.testing.assert_allclose(np.asarray(result), want, rtol=1e-4, atol=1e-5)


def test_a_batch_norm_in_training_moves_its_statistics() -> None:
    layer = nn.BatchNorm1d(3).train()
    batch = torch.export.Dim("batch", min=2, max=64)
    program = torch.export.export(
        copy.deepcopy(layer), (_draw(4, 3, 5),), dynamic_shapes=({0: batch},)
    )

    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)

    x = _draw(7, 3, 5)
    before = [buffer.clone() for _, buffer in layer.named_buffers()]
    results = machine["main"](x, *before)
    wanted = [layer(x), *(buffer for _, buffer in layer.named_buffers())]
    for result, value in zip(results, wanted, strict=True):
        want = value.detach().numpy()
        np.testing.assert_allclose(np.asarray(result), want, rtol=1e-4, atol=1e-5)

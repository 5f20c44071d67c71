"""Transformer layers that torch runs as one operator, against torch, at two sizes each."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import relax_egraph as rx

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

from relax_egraph.frontends.torch_backend.backend import relax_egraph  # noqa: E402
from tests.frontends.torch.agreement import Called  # noqa: E402

aten = torch.ops.aten
BATCH, LENGTH = torch.export.Dim("batch", max=64), torch.export.Dim("length", max=64)


def _draw(*shape: int) -> Any:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)))


def _padding(x: Any) -> Any:
    """All of the first sequence, and all but the last two places of the others."""
    return (torch.arange(x.shape[1]) >= x.shape[1] - 2) & (torch.arange(x.shape[0])[:, None] > 0)


def _later(x: Any) -> Any:
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)


def _exported(function: Callable[..., Any], operands: Sequence[Any], *axes: Any) -> Any:
    program = torch.export.export(Called(function), tuple(operands), dynamic_shapes=(axes,))
    machine = rx.VirtualMachine(rx.build(rx.optimize(rx.from_torch(program))), num_threads=1)
    return machine["main"]


def _encoder(activation: str, *, norm_first: bool) -> Any:
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(
        8, 2, 16, activation=activation, norm_first=norm_first, batch_first=True
    )
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("is_padded", [False, True])
def test_an_encoder_without_gradients_is_compiled_whole(
    activation: str, norm_first: bool, is_padded: bool
) -> None:
    model = _encoder(activation, norm_first=norm_first)
    fast = torch.compile(model, backend=relax_egraph, dynamic=True, options={"strict": True})

    with torch.no_grad():
        for batch, length in ((2, 5), (3, 7)):
            x = _draw(batch, length, 8)
            padding = _padding(x) if is_padded else None
            own = fast(x, src_key_padding_mask=padding)
            wanted = model(x, src_key_padding_mask=padding)
            torch.testing.assert_close(own, wanted, rtol=1e-4, atol=1e-5)


PROJECTIONS = [_draw(24, 8) / 2, _draw(24) / 2, _draw(8, 8) / 2, _draw(8) / 2]


@pytest.mark.parametrize("mask_type", [None, 0, 1, 2])
def test_an_encoder_layer_is_exported(mask_type: int | None) -> None:
    norms = [_draw(8) + 2, _draw(8), _draw(8) + 3, _draw(8) / 2]
    inner = [_draw(16, 8), _draw(16), _draw(8, 16), _draw(8)]

    def layer(x: Any) -> Any:
        masks = {0: _later(x), 1: _padding(x)}
        masks[2] = (masks[0] | masks[1][:, None, None]).expand(-1, 2, -1, -1)
        mask = None if mask_type is None else masks[mask_type]
        settings = (8, 2, *PROJECTIONS, True, False, 1e-5, *norms, *inner)
        return aten._transformer_encoder_layer_fwd(x, *settings, mask, mask_type)

    main = _exported(layer, [_draw(2, 5, 8)], {0: BATCH, 1: LENGTH})

    for batch, length in ((2, 5), (4, 9)):
        x = _draw(batch, length, 8)
        own = torch.from_dlpack(main(x))
        torch.testing.assert_close(own, layer(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("needs", "by_head", "is_one"),
    [*itertools.product([True], [False, True], [False, True]), (False, False, False)],
)
def test_attention_is_exported_with_its_weights(needs: bool, by_head: bool, is_one: bool) -> None:
    def attention(*operands: Any) -> Any:
        query, key, value = operands if len(operands) == 3 else operands * 3
        settings = (8, 2, *PROJECTIONS, _padding(query), needs, not by_head, 1)
        results = aten._native_multi_head_attention(query, key, value, *settings)
        return results if needs else results[0]

    dynamic = {0: BATCH, 1: LENGTH}
    count = 1 if is_one else 3
    drawn = [_draw(2, 5, 8) for _ in range(count)]
    main = _exported(attention, drawn, *[dynamic] * count)

    for batch, length in ((2, 5), (4, 9)):
        operands = [_draw(batch, length, 8) + k for k in range(count)]
        results = main(*operands)
        for result, want in zip(
            results if needs else [results],
            attention(*operands) if needs else [attention(*operands)],
            strict=True,
        ):
            torch.testing.assert_close(torch.from_dlpack(result), want, rtol=1e-4, atol=1e-5)


def test_a_query_that_sees_no_key_has_no_value() -> None:
    def attention(x: Any, hidden: Any) -> Any:
        settings = (8, 2, *PROJECTIONS, hidden, False, True, 1)
        return aten._native_multi_head_attention(x, x, x, *settings)[0]

    x, hidden = _draw(2, 5, 8), torch.tensor([[True] * 5, [False] * 5])
    own = torch.from_dlpack(_exported(attention, [x, hidden], None, None)(x, hidden))

    assert own[0].isnan().all()
    torch.testing.assert_close(own, attention(x, hidden), rtol=1e-4, atol=1e-5, equal_nan=True)

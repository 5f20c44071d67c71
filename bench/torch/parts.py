"""Parts of networks as users write them: heads, pools, adapters, losses, ranges of activations."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from bench.exports import media, texts

Built = tuple[nn.Module, Sequence[Tensor]]


class _Function(nn.Module):
    """A function of tensors as a module, with the `layers` that it calls."""

    def __init__(self, call: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.call = call
        self.layers = nn.ModuleDict(layers)

    def forward(self, *values: Tensor) -> Any:
        """The function."""
        return self.call(*values, **self.layers)


def _network(kind: str, config: Any, **more: Any) -> nn.Module:
    made: Any = getattr(transformers, kind)
    return made(made.config_class(**{**config, **more})).eval()


def _text(name: str, **more: Any) -> tuple[nn.Module, Sequence[Tensor]]:
    """A network for text, and tokens with a mask."""
    every = (*texts.ENCODERS, *texts.DECODERS, *texts.MIXTURES)
    (found,) = (n for n in every if n.name == name)
    network = _network(found.model, found.config, **more)
    return network, [torch.from_numpy(v) for v in found.drawn(found.sizes[0]).values()]


def sound_classifier() -> Built:
    """wav2vec 2.0: all frames are projected, and their mean is classified."""
    (found,) = (n for n in media.SOUNDS if n.name == "wav2vec2")
    network = _network("Wav2Vec2ForSequenceClassification", found.config)
    return _Function(lambda x, model: model(x).logits, model=network), [torch.randn(2, 8000)]


def attention_with_sinks() -> Built:
    """gpt-oss, whose attention subtracts the maximum before softmax does."""
    network, inputs = _text("gpt-oss", use_cache=False, attn_implementation="eager")
    return _Function(
        lambda ids, mask, model: model(input_ids=ids, attention_mask=mask, return_dict=False)[0],
        model=network,
    ), inputs


def sentence_embedding() -> Built:
    """BERT, and the mean of the tokens that are there, as in sentence-transformers."""

    def embedded(ids: Tensor, mask: Tensor, model: nn.Module) -> Tensor:
        tokens = model(input_ids=ids, attention_mask=mask, return_dict=False)[0]
        wide = mask.unsqueeze(-1).expand(tokens.size()).float()
        return torch.sum(tokens * wide, 1) / torch.clamp(wide.sum(1), min=1e-9)

    network, inputs = _text("bert")
    return _Function(embedded, model=network), inputs


class _Adapted(nn.Module):
    """A linear layer and its adapter of rank 8, as LoRA keeps them while it is trained."""

    def __init__(self, inner: int, outer: int, *, bias: bool) -> None:
        super().__init__()
        self.base = nn.Linear(inner, outer, bias=bias)
        self.down = nn.Linear(inner, 8, bias=False)
        self.up = nn.Linear(8, outer, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The result of both."""
        return self.base(x) + self.up(self.down(x)) * 2.0


def adapters() -> Built:
    """The gated perceptron of a decoder and a biased layer behind it, each with an adapter."""

    def gated(x: Tensor, gate: nn.Module, up: nn.Module, down: nn.Module) -> Tensor:
        return down(nn.functional.silu(gate(x)) * up(x))

    layers = {
        "gate": _Adapted(256, 512, bias=False),
        "up": _Adapted(256, 512, bias=False),
        "down": _Adapted(512, 256, bias=True),
    }
    return _Function(gated, **layers), [torch.randn(2, 64, 256)]


def attention_pool() -> Built:
    """A pool by attention of one learned query, as at the end of SigLIP's transformers."""
    from timm.layers.attention_pool import AttentionPoolLatent

    pool: Any = AttentionPoolLatent(256, num_heads=4)
    return pool, [torch.randn(8, 64, 256)]


def rotary_angles() -> Built:
    """Queries turned by angles that are products of frequencies and positions, as in LLaMA."""
    frequencies = (10000 ** (-torch.arange(0, 64, 2) / 64))[None, :, None]

    def turned(q: Tensor, positions: Tensor) -> Tensor:
        angles = (frequencies.expand(2, -1, 1) @ positions[:, None, :].float()).transpose(1, 2)
        both = torch.cat((angles, angles), -1)[:, None]
        first, second = q.chunk(2, -1)
        return q * both.cos() + torch.cat((-second, first), -1) * both.sin()

    return _Function(turned), [torch.randn(2, 8, 64, 64), torch.arange(64).repeat(2, 1)]


def gated_cell() -> Built:
    """The convolutional cell of RAFT, whose state is between the old one and a new one."""

    def stepped(h: Tensor, x: Tensor, z: nn.Module, r: nn.Module, q: nn.Module) -> Tensor:
        both = torch.cat([h, x], 1)
        gate = torch.sigmoid(z(both))
        new = torch.tanh(q(torch.cat([torch.sigmoid(r(both)) * h, x], 1)))
        return (1 - gate) * h + gate * new

    layers = {name: nn.Conv2d(96, 48, 3, padding=1) for name in "zrq"}
    return _Function(stepped, **layers), [torch.randn(1, 48, 48, 64), torch.randn(1, 48, 48, 64)]


def two_losses() -> Built:
    """A squared and an absolute loss, added."""

    def loss(x: Tensor, y: Tensor) -> Tensor:
        return nn.functional.mse_loss(x, y) + nn.functional.l1_loss(x, y)

    return _Function(loss), [torch.randn(64, 512), torch.randn(64, 512)]

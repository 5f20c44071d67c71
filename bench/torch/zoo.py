"""Networks of transformers, torchvision and timm in small configurations, with random weights."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from bench.architectures.export import lively
from bench.architectures.subject import BATCHES, Input, Sizes
from bench.exports import media, texts
from bench.exports.files import first_output
from bench.exports.network import Network

_TRANSFORMERS = (
    *("bert", "roberta", "distilbert", "albert", "electra", "mpnet", "modernbert", "convbert"),
    *("gpt2", "gpt-neox", "opt", "bloom", "llama", "mistral", "qwen3", "gemma3", "phi3", "olmo2"),
    *("t5", "bart", "marian", "mixtral", "mamba", "vit", "beit", "dinov2", "swin", "convnext"),
    *("segformer", "regnet", "efficientnet", "clip", "wav2vec2", "whisper"),
)

_TORCHVISION = (
    *("alexnet", "vgg11", "resnet18", "resnet50", "resnext50_32x4d", "wide_resnet50_2"),
    *("squeezenet1_1", "densenet121", "googlenet", "inception_v3", "shufflenet_v2_x0_5"),
    *("mobilenet_v2", "mobilenet_v3_small", "mnasnet0_5", "efficientnet_b0", "efficientnet_v2_s"),
    *("regnet_y_400mf", "convnext_tiny", "swin_t", "vit_b_16"),
)

_TIMM = (
    *("test_byobnet", "test_coatnet", "test_convnext", "test_convnext2", "test_efficientnet"),
    *("test_efficientnet_gn", "test_efficientnet_ln", "test_mambaout", "test_maxvit"),
    *("test_nfnet", "test_resnet", "test_vit", "test_vit_relpos", "ghostnet_050", "lcnet_050"),
    *("mnasnet_050", "mobilenetv3_small_050", "mobilenetv4_conv_small_050", "mobilevit_xxs"),
    *("semnasnet_050", "repghostnet_050", "convnextv2_atto", "inception_next_atto"),
    *("tinynet_e", "edgenext_xx_small", "efficientvit_b0", "efficientformerv2_s0", "levit_128s"),
    *("poolformer_s12", "resnet10t", "cait_xxs24_224", "xcit_nano_12_p16_224"),
)

_SIDE: Mapping[str, int] = {
    "inception_v3": 96,
    "vit_b_16": 224,
    "swin_t": 64,
    "test_coatnet": 160,
    "test_maxvit": 160,
    "test_vit": 160,
    "test_vit_relpos": 160,
    "levit_128s": 224,
    "efficientformerv2_s0": 224,
    "cait_xxs24_224": 224,
    "xcit_nano_12_p16_224": 224,
}
"""The height and width of images where 64 is too small, or not what the network has weights for."""


@dataclass(frozen=True, slots=True)
class Model:
    """A network of a `package`: `build` returns a module that takes `inputs` in order."""

    name: str
    package: str
    build: Callable[[], torch.nn.Module]
    inputs: Mapping[str, Input]
    sizes: tuple[Sizes, ...]
    drawn: Callable[[Sizes], Mapping[str, Any]]
    fixed: tuple[str, ...] = ()

    def tensors(self, sizes: Sizes) -> tuple[torch.Tensor, ...]:
        """Inputs at `sizes`."""
        return tuple(map(torch.from_numpy, self.drawn(sizes).values()))

    def dynamic_shapes(self, dims: Mapping[str, Any]) -> tuple[Any, ...]:
        """The dimensions of each input that are symbolic, for ``torch.export``."""
        each = tuple(
            {axis: dims[n] for axis, n in enumerate(i.shape) if isinstance(n, str) and n in dims}
            for i in self.inputs.values()
        )
        return (each,) if self.package == "transformers" else each  # which takes ``*values``

    @property
    def symbols(self) -> tuple[str, ...]:
        """The names of dynamic dimensions."""
        names = {n for each in self.inputs.values() for n in each.shape if isinstance(n, str)}
        return tuple(sorted(names.difference(self.fixed)))


def _of_transformers(network: Network) -> Model:
    return Model(
        network.name,
        "transformers",
        lambda: first_output(torch, network),
        network.inputs,
        network.sizes,
        network.drawn,
        network.fixed,
    )


def _of_images(package: str, name: str) -> Model:
    side = _SIDE.get(name, 64)
    image = Input(("batch", 3, side, side))

    def drawn(sizes: Sizes) -> Mapping[str, Any]:
        import numpy as np

        return {"image": image.drawn(sizes, np.random.default_rng(list(sizes.values())))}

    def build() -> torch.nn.Module:
        return lively(_built(package, name).eval())

    return Model(name, package, build, {"image": image}, BATCHES, drawn)


def _built(package: str, name: str) -> torch.nn.Module:
    if package == "timm":
        import timm

        return timm.create_model(name, num_classes=10)
    from torchvision import models

    small = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    return models.get_model(name, weights=None, num_classes=10, **small)


def zoo() -> tuple[Model, ...]:
    """All networks: 34 of transformers, 20 of torchvision, 32 of timm."""
    known = {n.name: n for n in (*_TEXTS, *_MEDIA)}
    return (
        *(_of_transformers(known[name]) for name in _TRANSFORMERS),
        *(_of_images("torchvision", name) for name in _TORCHVISION),
        *(_of_images("timm", name) for name in _TIMM),
    )


_TEXTS = (
    *(*texts.ENCODERS, *texts.DECODERS, *texts.TRANSLATORS),
    *(*texts.MIXTURES, *texts.CHUNKED, *texts.UNROLLED),
)
_MEDIA = (*media.IMAGES, *media.CONVOLUTIONAL, *media.CLIPS, *media.SOUNDS, *media.SPECTRA)

"""Networks of images."""

from importlib import import_module
from itertools import pairwise
from typing import Any

from bench.architectures.subject import BATCHES, Input, Sizes, Subject

torch: Any = import_module("torch")  # optional: absent when types are checked
transformers: Any = import_module("transformers")
nn: Any = torch.nn

IMAGE = {"image": Input(("batch", 3, 64, 64))}
PLANES: tuple[Sizes, ...] = (
    {"batch": 2, "height": 64, "width": 48},
    {"batch": 1, "height": 32, "width": 96},
    {"batch": 3, "height": 80, "width": 64},
)


class Pooled(nn.Module):
    """A classifier on the features of a backbone of transformers, averaged over the image."""

    def __init__(self, backbone: Any, channels: int) -> None:
        super().__init__()
        self.backbone, self.head = backbone, nn.Linear(channels, 10)

    def forward(self, image: Any) -> Any:
        """The logits."""
        seen = self.backbone(image, return_dict=False)[0]
        return self.head(seen.mean((2, 3)) if seen.ndim == 4 else seen.mean(1))


def resnet() -> Any:
    """Bottlenecks in four stages."""
    config = transformers.ResNetConfig(
        embedding_size=32, hidden_sizes=[64, 128, 192, 256], depths=[2, 2, 2, 2]
    )
    return Pooled(transformers.ResNetModel(config), 256)


def mobilenet() -> Any:
    """Inverted residuals with depthwise convolutions."""
    config = transformers.MobileNetV2Config(depth_multiplier=0.5, image_size=64)
    model = transformers.MobileNetV2Model(config)
    return Pooled(model, 1280)


def efficientnet() -> Any:
    """Inverted residuals with squeeze and excitation, and swish."""
    config = transformers.EfficientNetConfig(
        image_size=64, width_coefficient=0.5, depth_coefficient=0.5, hidden_dim=640
    )
    return Pooled(transformers.EfficientNetModel(config), 640)


def convnext() -> Any:
    """Large depthwise kernels, norms of channels, and perceptrons."""
    config = transformers.ConvNextConfig(
        hidden_sizes=[32, 64, 128, 256], depths=[2, 2, 2, 2], image_size=64
    )
    return Pooled(transformers.ConvNextModel(config), 256)


def vit() -> Any:
    """Attention of patches."""
    config = transformers.ViTConfig(
        hidden_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=512,
        image_size=64,
        patch_size=8,
    )
    return Pooled(transformers.ViTModel(config, add_pooling_layer=False), 128)


def swin() -> Any:
    """Attention in windows, shifted in every second layer."""
    config = transformers.SwinConfig(
        image_size=64, patch_size=2, embed_dim=32, depths=[2, 2], num_heads=[2, 4], window_size=4
    )
    return Pooled(transformers.SwinModel(config, add_pooling_layer=False), 64)


class Dense(nn.Module):
    """A layer on the channels of all layers before it."""

    def __init__(self, channels: int, growth: int) -> None:
        super().__init__()
        self.layer = nn.Sequential(
            *(nn.BatchNorm2d(channels), nn.ReLU(), nn.Conv2d(channels, 4 * growth, 1, bias=False)),
            *(nn.BatchNorm2d(4 * growth), nn.ReLU()),
            nn.Conv2d(4 * growth, growth, 3, padding=1, bias=False),
        )

    def forward(self, x: Any) -> Any:
        """`x` and the new channels of the layer."""
        return torch.cat((x, self.layer(x)), 1)


def densenet(growth: int = 16) -> Any:
    """Dense blocks, with transitions that halve the channels and the image."""
    channels = 2 * growth
    layers = [nn.Conv2d(3, channels, 7, 2, 3, bias=False), nn.BatchNorm2d(channels), nn.ReLU()]
    layers.append(nn.MaxPool2d(3, 2, 1))
    for depth in (4, 6, 4):
        layers += [Dense(channels + growth * k, growth) for k in range(depth)]
        channels += growth * depth
        layers += [nn.BatchNorm2d(channels), nn.ReLU()]
        layers += [nn.Conv2d(channels, channels // 2, 1, bias=False), nn.AvgPool2d(2)]
        channels //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 10))


def _twice(inputs: int, outputs: int) -> Any:
    layers: list[Any] = []
    for channels in (inputs, outputs):
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """A U-Net: down and up again, with skip connections between steps of equal size."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        pairs = list(pairwise(widths))
        self.first = _twice(3, widths[0])
        self.down = nn.ModuleList(_twice(a, b) for a, b in pairs)
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) for a, b in reversed(pairs))
        self.merge = nn.ModuleList(_twice(2 * a, a) for a, _ in reversed(pairs))
        self.last = nn.Conv2d(widths[0], 4, 1)

    def forward(self, image: Any) -> Any:
        """A map of four classes, with the size of `image`."""
        x, seen = self.first(image), list[Any]()
        for down in self.down:
            seen.append(x)
            x = down(nn.functional.max_pool2d(x, 2))
        for up, merge in zip(self.up, self.merge, strict=True):
            x = merge(torch.cat((seen.pop(), up(x)), 1))
        return self.last(x)


SUBJECTS = (
    Subject("resnet", resnet, IMAGE, BATCHES, 8),
    Subject("mobilenet", mobilenet, IMAGE, BATCHES, 17),
    Subject("efficientnet", efficientnet, IMAGE, BATCHES, 16),
    Subject("densenet", densenet, IMAGE, BATCHES, 14),
    Subject("unet", UNet, {"image": Input(("batch", 3, "height", "width"))}, PLANES, 7),
    Subject("vit", vit, IMAGE, BATCHES, 3),
    Subject("swin", swin, IMAGE, BATCHES, 4),
    Subject("convnext", convnext, IMAGE, BATCHES, 8),
)

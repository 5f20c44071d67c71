"""The networks to export: a class of transformers, its configuration, and its inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.architectures.subject import Array, Input, Sizes

WORDS = 500
"""The size of the vocabularies."""

POSITIONS = 64
"""The size of learned tables of positions."""

TEXT: Mapping[str, Input] = {
    "input_ids": Input(("batch", "sequence"), WORDS),
    "attention_mask": Input(("batch", "sequence"), is_mask=True),
}
IDS: Mapping[str, Input] = {"input_ids": TEXT["input_ids"]}
TEXT_TO_TEXT: Mapping[str, Input] = {
    **TEXT,
    "decoder_input_ids": Input(("batch", "target"), WORDS),
}
PIXELS: Mapping[str, Input] = {"pixel_values": Input(("batch", 3, 64, 64))}
SOUND: Mapping[str, Input] = {"input_values": Input(("batch", "samples"))}

SIZES: tuple[Sizes, ...] = (
    {"batch": 2, "sequence": 48, "target": 24, "samples": 8000},
    {"batch": 1, "sequence": 17, "target": 9, "samples": 4321},
    {"batch": 3, "sequence": 60, "target": 50, "samples": 10007},
)
"""Sizes that no dimension of a network has by chance."""


@dataclass(frozen=True, slots=True)
class Network:
    """The class `model` of transformers, with a configuration changed by `config`.

    It takes `inputs` by name, and its first output counts.  It is exported and timed at the first
    of its sizes.  Dimensions that are `fixed` have one size in all of them.
    """

    name: str
    model: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Input]
    kind: str
    fixed: tuple[str, ...] = ()

    @property
    def sizes(self) -> tuple[Sizes, ...]:
        """The sizes at which it runs."""
        fixed = {name: SIZES[0][name] for name in self.fixed}
        return tuple({**sizes, **fixed} for sizes in SIZES)

    def drawn(self, sizes: Sizes) -> dict[str, Array]:
        """Inputs at `sizes`, the same each time."""
        random = np.random.default_rng(list(sizes.values()))
        return {name: each.drawn(sizes, random) for name, each in self.inputs.items()}


def networks_of(
    kind: str,
    inputs: Mapping[str, Input],
    fixed: tuple[str, ...] = (),
    **models: tuple[str, Mapping[str, Any]],
) -> tuple[Network, ...]:
    """Networks of one `kind` with the same `inputs`, by name."""
    return tuple(
        Network(name.replace("_", "-"), model, config, inputs, kind, fixed)
        for name, (model, config) in models.items()
    )

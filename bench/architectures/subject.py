"""The subject of a comparison: a network of torch, with inputs for some sizes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Sizes: TypeAlias = Mapping[str, int]

BATCHES: tuple[Sizes, ...] = ({"batch": 2}, {"batch": 1}, {"batch": 5})
"""The sizes of subjects without other dynamic dimensions."""

SEQUENCES: tuple[Sizes, ...] = (
    {"batch": 2, "sequence": 48},
    {"batch": 1, "sequence": 17},
    {"batch": 3, "sequence": 96},
)
"""Sizes that no dimension of a network has by chance."""


@dataclass(frozen=True, slots=True)
class Input:
    """An input: its shape of numbers and names of dimensions, and its number of tokens.

    With 0 tokens it is an image or a signal of floats; a mask has ones, and zeros where a sequence
    of its batch is shorter.
    """

    shape: tuple[int | str, ...]
    tokens: int = 0
    is_mask: bool = False

    def drawn(self, sizes: Sizes, random: np.random.Generator) -> Array:
        """Random values at `sizes`."""
        shape = [n if isinstance(n, int) else sizes[n] for n in self.shape]
        if self.is_mask:
            mask = np.ones(shape, np.int64)
            mask[-1, -3:] = 0
            return mask
        if self.tokens:
            return random.integers(self.tokens, size=shape)
        return random.standard_normal(shape, np.float32)


@dataclass(frozen=True, slots=True)
class Subject:
    """A network: `build` returns a ``torch.nn.Module`` whose forward takes `inputs` in this order.

    It is exported and timed at the first of `sizes`.  `layers` is the number of repetitions of its
    body.
    """

    name: str
    build: Callable[[], Any]
    inputs: Mapping[str, Input]
    sizes: tuple[Sizes, ...]
    layers: int

    def drawn(self, sizes: Sizes) -> dict[str, Array]:
        """Inputs at `sizes`, the same each time."""
        random = np.random.default_rng(list(sizes.values()))
        return {name: each.drawn(sizes, random) for name, each in self.inputs.items()}

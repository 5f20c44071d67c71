"""Weights as constants of a program, for as long as they are what they were."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from relax_egraph.frontends.torch.tensors import Array, array_of

Run = Callable[[list[Any]], Any]
"""What runs in place of a graph: it takes all inputs in a list."""


def weights_in(inputs: Mapping[int, Any]) -> dict[int, torch.Tensor]:
    """The inputs, by place, that are parameters or buffers of modules."""
    return {
        place: value
        for place, value in inputs.items()
        if isinstance(value, torch.nn.Parameter)
        or getattr(value, "_dynamo_static_input_type", None) is not None
    }


def arrays_of(weights: Mapping[int, torch.Tensor]) -> dict[int, Array]:
    """The elements of `weights`, also while torch traces with fake tensors."""
    with unset_fake_temporarily():
        return {place: array_of(weight) for place, weight in weights.items()}


class Frozen:
    """`program`, in which `weights` are constants, or else what `unfrozen` makes.

    That is made at the first call with other tensors in their places, or after they were written.
    torch does not count what is written through ``weight.data``.
    """

    def __init__(
        self, program: Run, weights: Mapping[int, torch.Tensor], unfrozen: Callable[[], Run]
    ) -> None:
        self._boxed_call = True
        self._program = program
        self._weights = tuple((place, w, w._version) for place, w in weights.items())
        self._unfrozen = unfrozen
        self._other: Run | None = None

    def __call__(self, args: list[Any]) -> Any:
        """The outputs for `args`."""
        for place, weight, version in self._weights:
            if args[place] is not weight or weight._version != version:
                if self._other is None:
                    self._other = self._unfrozen()
                return self._other(args)
        return self._program(args)

"""A compiled graph as torch calls it: tensors in and out, without copies."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

import relax_egraph as rx
from relax_egraph.frontends.torch.tensors import PARTS, array_of, tensor_of
from relax_egraph.frontends.torch_backend.layouts import Order
from relax_egraph.frontends.torch_backend.traced import Joined, Known, Made, Output, Passed
from relax_egraph.vm.executable import Executable


class Program:
    """An executable in place of a graph: it takes `takes` of the inputs, and gives `outputs`.

    It runs on as many threads as torch has when it is called.
    """

    def __init__(
        self,
        executable: Executable,
        takes: Sequence[tuple[int, Order | None]],
        outputs: Sequence[Output],
    ) -> None:
        self._boxed_call = True  # AOTAutograd passes a list, so that inputs can be freed
        self._executable = executable
        self._takes = tuple(place for place, _ in takes)
        self._turned = tuple((k, order) for k, (_, order) in enumerate(takes) if order)
        self._outputs = tuple(outputs)
        self._all_made = all(o == Made(place) for place, o in enumerate(outputs))
        self._mains: dict[int, Callable[..., tuple[Any, ...]]] = {}

    def __call__(self, args: list[Any]) -> list[Any]:
        """The outputs for `args`, all inputs of the graph in a list, which is emptied."""
        threads = torch.get_num_threads()
        main = self._mains.get(threads) or self._main(threads)
        given = [_given(args[place]) for place in self._takes]
        for place, order in self._turned:
            given[place] = given[place].transpose(order)
        made = [*map(_returned, main(*given))]
        outputs = made if self._all_made else [_output(o, made, args) for o in self._outputs]
        args.clear()
        return outputs

    def _main(self, threads: int) -> Callable[..., tuple[Any, ...]]:
        machine = rx.VirtualMachine(self._executable, num_threads=threads)
        return self._mains.setdefault(threads, machine["main"])


_numpy, _from_numpy = torch.Tensor.numpy, torch.from_numpy
_Plain = torch.Tensor
_OTHERS = frozenset((torch.bfloat16, *PARTS))
"""Dtypes that numpy has not, or that the machine takes by their parts."""


def _given(value: Any) -> Any:
    """`value` as the machine takes it; most are plain tensors, for which this is quick."""
    if type(value) is _Plain and not value.requires_grad and value.dtype not in _OTHERS:
        return _numpy(value)
    return array_of(value) if isinstance(value, torch.Tensor) else value


def _returned(value: Any) -> Any:
    """A result of the machine as a tensor; sizes are integers."""
    try:
        return _from_numpy(value)
    except TypeError:
        return value if isinstance(value, int) else tensor_of(value)


def _output(output: Output, made: Sequence[Any], args: Sequence[Any]) -> Any:
    match output:
        case Made(place, None):
            return made[place]
        case Made(place, axes):
            return made[place].permute(axes)
        case Joined(place):
            return torch.view_as_complex(made[place])
        case Passed(place):
            return args[place]
        case Known(value):
            return value

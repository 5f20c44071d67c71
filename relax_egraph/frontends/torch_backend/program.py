"""A compiled graph as torch calls it: tensors in and out, without copies."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

import relax_egraph as rx
from relax_egraph.frontends.torch.tensors import array_of, tensor_of
from relax_egraph.frontends.torch_backend.traced import Known, Made, Output, Passed

Compiled = Callable[[list[Any]], list[Any]]
"""Called with a list of all inputs, which it empties; returns the outputs."""


class Program:
    """An executable in place of a graph.

    It runs on as many threads as torch has when it is called.
    """

    _boxed_call = True
    """AOTAutograd then passes a list, so that inputs can be freed early."""

    def __init__(
        self, executable: Any, takes: Sequence[int], outputs: Sequence[Output]
    ) -> None:
        self._executable = executable
        self._takes = tuple(takes)
        self._outputs = tuple(outputs)
        self._mains: dict[int, Callable[..., tuple[Any, ...]]] = {}

    def __call__(self, args: list[Any]) -> list[Any]:
        """The outputs for `args`, all inputs of the graph in a list, which is emptied."""
        threads = torch.get_num_threads()
        main = self._mains.get(threads) or self._main(threads)
        given = [_given(args[place]) for place in self._takes]
        made = main(*given)
        outputs: list[Any] = []
        for output in self._outputs:
            match output:
                case Made(place):
                    outputs.append(_returned(made[place]))
                case Passed(place):
                    outputs.append(args[place])
                case Known(value):
                    outputs.append(value)
        args.clear()
        return outputs

    def _main(self, threads: int) -> Callable[..., tuple[Any, ...]]:
        machine = rx.VirtualMachine(self._executable, num_threads=threads)
        return self._mains.setdefault(threads, machine["main"])


def _given(value: Any) -> Any:
    return array_of(value) if isinstance(value, torch.Tensor) else value


def _returned(value: Any) -> Any:
    return value if isinstance(value, int) else tensor_of(value)

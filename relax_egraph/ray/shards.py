"""Devices as actors of Ray: each a process with its own part of every weight.

Collectives are those of ``ray.util.collective`` over gloo, which needs torch.
"""

import uuid
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.base.parameters import NAME, SECONDS, instance, mapping, optional, takes
from relax_egraph.ray.cluster import LOCAL, connected, ray_module
from relax_egraph.shards import DeviceProgram
from relax_egraph.shards.local import ALL_GATHER, ALL_REDUCE, SHARD
from relax_egraph.shards.run import built, own_part
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.machine import VirtualMachine

Array = npt.NDArray[Any]

_CPUS = 0.01
"""The share of a processor that Ray counts for a device: they may be more than there are."""


@takes(
    program=instance("a DeviceProgram", DeviceProgram),
    values=mapping("arrays by the names of parameters"),
    executable=optional(instance("an Executable", Executable)),
    address=NAME,
    timeout=SECONDS,
)
def run_on_actors(
    program: DeviceProgram,
    values: Mapping[str, Array],
    executable: Executable | None = None,
    *,
    address: str = LOCAL,
    timeout: float = 120.0,
) -> tuple[Array, ...]:
    """The results of the source for `values`, by the names of its parameters.

    Each device is an actor of the cluster at `address`, and runs `executable`, by default that of
    ``shards.run.built``: it is compiled once, for the processor of this process.  It is given its
    own parts and no others.  Raises ``ImportError`` without Ray or torch, ``GetTimeoutError`` of
    Ray if devices take longer than `timeout` seconds, and what the first device raises that fails.
    """
    if find_spec("torch") is None:
        raise ImportError("collectives over gloo need the package torch: pip install torch")
    runs = executable or built(program)
    with connected(address):
        ray = ray_module()

        group = f"shards-{uuid.uuid4().hex}"
        device: Any = ray.remote(num_cpus=_CPUS)(_Device)
        code = ray.put(runs)
        actors: list[Any] = [
            device.remote(number, program.parts, group, code) for number in range(program.parts)
        ]
        try:
            ray.get([actor.join.remote() for actor in actors], timeout=timeout)
            given = (program.arguments(number, values) for number in range(program.parts))
            results = [
                actor.run.remote(program.function, arguments)
                for actor, arguments in zip(actors, given, strict=True)
            ]
            return program.joined(ray.get(results, timeout=timeout))
        finally:
            for actor in actors:
                ray.kill(actor)


class _Device:
    """An actor: one device, with a machine whose collectives meet those of its group."""

    def __init__(self, number: int, parts: int, group: str, executable: Executable) -> None:
        self._number, self._parts, self._group = number, parts, group
        packed = {
            SHARD: own_part(number, parts),
            ALL_REDUCE: self._all_reduce,
            ALL_GATHER: self._all_gather,
        }
        self._machine = VirtualMachine(executable, packed=packed)

    def join(self) -> None:
        """Wait until all devices of the group are there."""
        _collective().init_collective_group(self._parts, self._number, "gloo", self._group)

    def run(self, function: str, arguments: list[Array]) -> Any:
        """What the device returns, as arrays of its own."""
        result = self._machine[function](*arguments)
        if isinstance(result, tuple | list):
            return tuple(map(np.array, result))
        return np.array(result)

    def _all_reduce(self, x: Array) -> Array:
        total = np.array(x)
        _collective().allreduce(total, self._group)
        return total

    def _all_gather(self, x: Array, axis: int) -> Array:
        parts = [np.empty_like(x) for _ in range(self._parts)]
        _collective().allgather(parts, np.array(x), self._group)
        return np.concatenate(parts, axis)


def _collective() -> Any:
    return ray_module("ray.util.collective")

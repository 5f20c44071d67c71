"""Devices as threads of this process, so that a plan runs anywhere.

Each thread is a device with a machine of its own.  A collective waits until all devices have called
it: they run one program, so that calls meet in order.
"""

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph.base.parameters import instance, mapping, optional, takes
from relax_egraph.build import build
from relax_egraph.optimize import optimize
from relax_egraph.shards.devices import DeviceProgram
from relax_egraph.shards.local import ALL_GATHER, ALL_REDUCE, SHARD
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.machine import VirtualMachine

Array = npt.NDArray[Any]
Packed = Callable[..., Any]


def built(program: DeviceProgram) -> Executable:
    """The program of a device, optimized and compiled: once for all devices."""
    return build(optimize(program.module))


def own_part(device: int, parts: int) -> Packed:
    """The packed function that cuts what a device has: its part along an axis."""

    def cut(x: Array, axis: int) -> Array:
        return np.ascontiguousarray(np.split(x, parts, axis)[device])

    return cut


class Meeting:
    """Collectives of `parts` threads."""

    def __init__(self, parts: int) -> None:
        self._parts = parts
        self._brought: list[Any] = [None] * parts
        self._barrier = threading.Barrier(parts)

    def packed(self, device: int) -> Mapping[str, Packed]:
        """The packed functions of one device."""

        def all_reduce(x: Array) -> Array:
            return np.sum(self._exchanged(device, x), axis=0, dtype=x.dtype)

        def all_gather(x: Array, axis: int) -> Array:
            return np.concatenate(self._exchanged(device, x), axis)

        own = own_part(device, self._parts)
        return {SHARD: own, ALL_REDUCE: all_reduce, ALL_GATHER: all_gather}

    def abandon(self) -> None:
        """Wake the others with an error: a device has failed."""
        self._barrier.abort()

    def _exchanged(self, device: int, x: Array) -> list[Array]:
        """What all devices have brought, in order."""
        self._brought[device] = np.array(x)
        self._barrier.wait()
        every = list(self._brought)
        self._barrier.wait()
        return every


@takes(
    program=instance("a DeviceProgram", DeviceProgram),
    values=mapping("arrays by the names of parameters"),
    executable=optional(instance("an Executable", Executable)),
)
def run_in_threads(
    program: DeviceProgram, values: Mapping[str, Array], executable: Executable | None = None
) -> tuple[Array, ...]:
    """The results of the source for `values`, by the names of its parameters.

    Each device is a thread, and runs `executable`, by default that of `built`.  Raises what the
    first device raises that fails.
    """
    runs = executable or built(program)
    devices = range(program.parts)
    meeting = Meeting(program.parts)
    given = [program.arguments(device, values) for device in devices]
    machines = [VirtualMachine(runs, packed=meeting.packed(device)) for device in devices]

    def run(device: int) -> Any:
        try:
            return machines[device][program.function](*given[device])
        except threading.BrokenBarrierError:
            return None
        except BaseException:
            meeting.abandon()
            raise

    with ThreadPoolExecutor(program.parts) as pool:
        futures = [pool.submit(run, device) for device in devices]
    return program.joined([future.result() for future in futures])

"""Bytecode by hand: a function that calls itself, functions of Python, a debugger and a profile.

Run from the top of the repository: ``python -m examples.calls``.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.vm import ExecBuilder, Executable
from relax_egraph.vm.debugger import Debugger, Pause

Array = npt.NDArray[Any]


@rx.register_func("calls.multiply")
def multiply(x: Array, y: Array) -> Array:
    """The product of two tensors of one shape."""
    if x.shape != y.shape:
        raise ValueError(f"cannot multiply {x.shape} and {y.shape}")
    return x * y


@rx.register_func("calls.minus_one")
def minus_one(n: int) -> int:
    """The number before `n`."""
    return n - 1


def power() -> Executable:
    """``power(x, n)``: `x` times itself, `n` times, beginning with `start`, a constant of ones."""
    ib = ExecBuilder()
    x, n, rest, result = map(ib.r, range(4))
    with ib.function("power", 2, ["x", "n"]):
        zero = ib.label()
        ib.emit_if(n, zero)
        ib.emit_call("calls.minus_one", [n], dst=rest)
        ib.emit_call("power", [x, rest], dst=result)
        ib.emit_call("calls.multiply", [x, result], dst=result)
        ib.emit_ret(result)
        ib.place(zero)
        ib.emit_ret(np.ones(3, np.float32))
    return ib.get()


def main() -> None:
    """Print the bytecode, what happens at a breakpoint, a profile, and an error."""
    exe = power()
    print(exe.as_text())
    vm = rx.VirtualMachine(exe)
    x = np.array([1, 2, 3], np.float32)
    print("result:", vm["power"](x, 4))

    def show(pause: Pause) -> None:
        print(f"depth {pause.depth}: {pause}")

    debugger = Debugger(vm)
    debugger.breakpoint("power", 3, show)
    debugger["power"](x, 2)

    print(vm.profile("power", x, 4))

    try:
        vm["power"](x[:2], 2)
    except ValueError as error:
        print(f"ValueError: {error}", *error.__notes__, sep="\n")


if __name__ == "__main__":
    main()

"""Executables with kernels and hand-written bytecode, run by both engines."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from relax_egraph import build, parse
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.machine import Engine

KERNELS = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add(
        x: T.Buffer(("n",), "float32"),
        y: T.Buffer(("n",), "float32"),
        z: T.Buffer(("n",), "float32"),
    ):
        for i in range(n):
            with T.block("add"):
                v = T.axis.spatial(n, i)
                z[v] = x[v] + y[v]

    @T.prim_func(private=True)
    def double(x: T.Buffer(("n",), "float32")):
        T.func_attr({"num_outputs": 0})
        for i in range(n):
            with T.block("double"):
                v = T.axis.spatial(n, i)
                x[v] = x[v] * T.float32(2)

    @T.prim_func(private=True)
    def is_large(x: T.Buffer(("n",), "float32"), y: T.Buffer((), "bool")):
        for i in range(n):
            with T.block("is_large"):
                v = T.axis.reduce(n, i)
                with T.init():
                    y[()] = False
                y[()] = y[()] or x[v] > T.float32(10)

    @T.prim_func(private=True)
    def repeat(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n * 2",), "float32")):
        for i in range(n * 2):
            with T.block("repeat"):
                v = T.axis.spatial(n * 2, i)
                y[v] = x[v // 2]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        w = R.call_tir(cls.repeat, (x,), out_sinfo=R.Tensor((n * 2,), "float32"))
        y = R.call_tir(cls.add, (x, x), out_sinfo=R.Tensor((n,), "float32"))
        z = R.call_tir_inplace(
            cls.double, (y,), inplace_indices=[0], out_sinfo=R.Tensor((n,), "float32")
        )
        c = R.call_tir(cls.is_large, (z,), out_sinfo=R.Tensor((), "bool"))
        return z
"""
"""``add(x, y, z, n)``, ``double(x, n)`` in place, ``is_large(x, c, n)``: ``c = any(x > 10)``,
``repeat(x, y, n)``: each element twice."""


MODULE = """
@I.ir_module
class Module:
    @R.function(private=True)
    def layer(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            y = R.multiply(x, x)
            R.output(y)
        return y

    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4,), "float32")
    ) -> R.Tuple(
        R.Tensor(("n", 4), "float32"),
        R.Tensor(("n * 4",), "float32"),
        R.Tensor(("n", 4), "float32"),
        R.Tensor(("n", 4), "float32"),
        R.Shape(["n", 4]),
    ):
        cls = Module
        y = R.add(x, w)
        z = cls.layer(y)
        u = R.negative(z)
        flat = R.reshape(x, R.shape([n * 4]))
        return (u, flat, x, u, R.shape_of(x))
"""


def main_of(module: str, **options: Any) -> Callable[..., Any]:
    """The function ``main`` of a module, native."""
    return VirtualMachine(build(parse(module)), engine="native", **options)["main"]


def x_of(rows: int) -> Any:
    return np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)


W = np.array([1, 2, 3, 4], np.float32)


@cache
def _built() -> Executable:
    return build(parse(KERNELS))


def with_kernels(builder: ExecBuilder) -> Executable:
    """The executable of `builder`, with `KERNELS` to call."""
    built = _built()
    return replace(builder.get(), kernels=built.kernels, linker=built.linker, driver=built.driver)


def machines(
    executable: Executable, packed: Mapping[str, Any] | None = None, **options: Any
) -> dict[Engine, VirtualMachine]:
    """Machines of the executable: an interpreter, and native code as far as possible."""
    engines: tuple[Engine, Engine] = ("interpreter", "auto")
    return {e: VirtualMachine(executable, packed, engine=e, **options) for e in engines}


def outcome(vm: VirtualMachine, *args: Any, **named: Any) -> Any:
    """The result or error of ``main`` for copies of `args`, and these copies afterwards."""
    copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    try:
        result = vm["main"](*copies, **named)
    except (RelaxEgraphError, TypeError, ValueError, IndexError, AttributeError) as error:
        notes = getattr(error, "__notes__", [])
        return type(error), str(error), notes, plain(copies)
    return plain(result), plain(copies)


def plain(value: Any) -> Any:
    """`value` in a form whose parts compare by ``==``: arrays by bytes, shape, dtype and flags.

    A storage is represented by its size, since its bytes are undefined.
    """
    match value:
        case np.ndarray() if value.dtype == np.uint8:
            return "storage", value.size
        case np.ndarray():
            return value.dtype.name, value.shape, value.flags.writeable, value.tobytes()
        case tuple() | list():
            return type(value), [plain(v) for v in value]
        case _:
            return type(value), value

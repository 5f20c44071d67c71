"""Modules of many tiny kernels, which measure the machine itself."""

import re
from collections.abc import Iterable, Iterator
from textwrap import indent

import numpy as np

from relax_egraph.ir import BlockBuilder, Var, call, const, tensor
from relax_egraph.ir.module import IRModule
from relax_egraph.script.parser import parse

WIDTH = 8
"""The elements of each tensor."""

PACKED = "bench.same"
"""The packed function of `packed_between`: the identity."""

_KERNELS = """
@T.prim_func(private=True)
def one(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        with T.block("one"):
            v = T.axis.spatial(n, i)
            y[v] = x[v] + T.float32(1)

@T.prim_func(private=True)
def two(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
    for i in range(n):
        with T.block("two"):
            v = T.axis.spatial(n, i)
            y[v] = x[v] + T.float32(2)
"""

_LOOP = """
@R.function(private=True)
def loop(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
    cls = Module
    c = R.less(i, R.const({turns}, "int64"))
    if c:
        j = R.add(i, R.const(1, "int64"))
        y = R.call_tir(cls.one, (x,), out_sinfo=R.Tensor((n,), "float32"))
        r = cls.loop(j, y)
    else:
        r = x
    return r
"""

_MAIN = """
@R.function(pure=False)
def main({params}) -> R.Tensor(("n",), "float32"):
    cls = Module
{body}
    return {result}
"""


def chain(count: int, *, symbolic: bool) -> IRModule:
    """``main(x)``: `count` kernels in a row, each of which adds 1."""
    lines = (_call(k, "one", f"x{k}") for k in range(count))
    return _module(lines, f"x{count}", symbolic=symbolic)


def additions(count: int) -> IRModule:
    """The same as operators, for systems with kernels of their own."""
    bb = BlockBuilder()
    one, value = const(np.ones(WIDTH, np.float32)), Var("x", tensor((WIDTH,), "float32"))
    with bb.function("main", [value]):
        with bb.dataflow():
            for _ in range(count - 1):
                value = bb.emit(call("add", value, one))
            last = bb.emit_output(call("add", value, one))
        bb.emit_func_output(last)
    return bb.get()


def branches(count: int) -> IRModule:
    """``main(x, c)``: `count` times, add 1 if `c`, else 2."""

    def lines() -> Iterator[str]:
        for k in range(count):
            yield f"if c:\n    {_call(k, 'one', f'x{k}')}"
            yield f"else:\n    {_call(k, 'two', f'x{k}')}"

    return _module(lines(), f"x{count}", 'c: R.Tensor((), "bool")')


def packed_between(count: int) -> IRModule:
    """``main(x)``: `count` times, call `PACKED` and add 1."""

    def lines() -> Iterator[str]:
        info = 'R.Tensor((n,), "float32")'
        for k in range(count):
            yield f'y{k} = R.call_packed("{PACKED}", x{k}, sinfo_args=({info},))'
            yield _call(k, "one", f"y{k}")

    return _module(lines(), f"x{count}")


def loop(turns: int) -> IRModule:
    """``main(x)`` adds 1 in each iteration of a loop: a tail-recursive function."""
    start = 'r = cls.loop(R.const(0, "int64"), x0)'
    return _module([start], "r", functions=_LOOP.format(turns=turns))


def _module(
    lines: Iterable[str],
    result: str,
    *more_params: str,
    functions: str = "",
    symbolic: bool = False,
) -> IRModule:
    params = ", ".join(['x0: R.Tensor(("n",), "float32")', *more_params])
    main = _MAIN.format(params=params, body=indent("\n".join(lines), " " * 4), result=result)
    text = indent(_KERNELS + functions + main, " " * 4)
    if not symbolic:
        text = re.sub(r'"n"|\bn\b', str(WIDTH), text)
    return parse(f"@I.ir_module\nclass Module:\n{text}")


def _call(step: int, kernel: str, operand: str) -> str:
    """The line for value ``x{step + 1}``."""
    info = 'R.Tensor((n,), "float32")'
    return f"x{step + 1} = R.call_tir(cls.{kernel}, ({operand},), out_sinfo={info})"

"""Fused kernels print as loop functions that read back: the same operators, the same loops."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import relax_egraph as rx
from bench.llama import Widths, decode_step, prefill
from bench.resnet import basic_block
from bench.transformer import Sizes, encoder
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Function
from relax_egraph.lower.fuse_tir import fused_prim_func
from relax_egraph.raising.function import read
from relax_egraph.script import parse, print_module
from relax_egraph.tir.analysis import structural_key
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc
from tests.support.raised import names_of, run

NORM = """
@R.function
def main(x: R.Tensor((1, "n", 8), "float32"), y: R.Tensor((1, "n", 8), "float32")):
    with R.dataflow():
        z = R.add(x, y)
        squares = R.multiply(z, z)
        mean = R.mean(squares, axis=[2], keepdims=True)
        root = R.rsqrt(R.add(mean, R.const(1e-5, "float32")))
        scaled = R.multiply(z, root)
        R.output(scaled)
    return scaled
"""
MODELS: dict[str, Callable[[], rx.IRModule]] = {
    "a block of a residual network": lambda: basic_block(1, 4, 5),
    "a norm that keeps its axis": lambda: rx.parse(NORM),
    "an encoder": lambda: encoder(Sizes(1, 16, 2, 24)),
    "a step of a decoder": lambda: decode_step(Widths(32, 4, 2, 48)),
    "a prompt of a decoder": lambda: prefill(Widths(32, 4, 2, 48), 5),
}
SMALL = 3
"""The value of each symbol."""


def kernels(module: rx.IRModule) -> Iterator[tuple[Function, PrimFunc]]:
    """The fused functions of the optimized module, and their loops, printed and read."""
    for name, function in rx.optimize(module).relax_functions():
        if function.attrs.get("primitive"):
            loops = fused_prim_func(name, function)
            printed = parse(print_module(rx.IRModule({name: loops})))[name]
            assert isinstance(printed, PrimFunc)
            yield function, printed


def spelled(function: Function) -> list[str]:
    """The operators of a function; a product of a value and itself is read as its square."""
    return sorted("multiply" if n == "square" else n for n in names_of(function))


@pytest.mark.parametrize("model", MODELS)
def test_a_printed_kernel_reads_back_to_the_kernel(model: str) -> None:
    for function, loops in kernels(MODELS[model]()):
        operators = read(loops)

        assert isinstance(operators, Function), operators
        sizes = dict.fromkeys(loops.symbols, SMALL)
        random = np.random.default_rng(0)
        arrays = [
            random.integers(0, 2, shape).astype(b.dtype)
            if b.dtype == "int64"
            else random.standard_normal(shape).astype(b.dtype)
            for b in loops.inputs
            for shape in [[dims.evaluate(d, sizes) for d in b.shape]]
        ]
        expected = interpret(loops, arrays, {s: SMALL for s in loops.scalars})
        results = run(loops, operators, [*arrays, *expected], [SMALL for _ in loops.scalars])
        for result, array in zip(results, expected, strict=True):
            np.testing.assert_allclose(result, array, rtol=1e-4, atol=1e-4)
        if "nn.attention" in names_of(function):
            continue  # it reads as products and a softmax, which rules make an attention again
        assert spelled(operators) == spelled(function)
        again = fused_prim_func("again", operators)
        assert structural_key(replace(again, attrs={})) == structural_key(replace(loops, attrs={}))

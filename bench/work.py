"""The minimal work of a program: operations of its products, bytes of its operands and result."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bench.program import Array, Operand, Program
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Constant, Var
from relax_egraph.ir.struct_info import TensorStructInfo


def operations(program: Program, inputs: Sequence[Array]) -> float:
    """Two for each multiply-add of matrix products and convolutions, by their definitions.

    Elementwise operators do not count; a system that needs fewer operations can exceed the peak.
    """
    sizes = sizes_of(program, inputs)
    total = 0
    for step in program.steps:
        if step.operator == "matmul":
            summed = _extents(step.operands[0], sizes)[-1]
            terms = math.prod(_extents(step.result, sizes))
        elif step.operator == "nn.conv2d":
            summed = math.prod(_extents(step.operands[1], sizes)[1:])
            terms = math.prod(_extents(step.result, sizes))
        elif step.operator == "nn.conv2d_transpose":
            summed = math.prod(_extents(step.operands[1], sizes)[1:])
            terms = math.prod(_extents(step.operands[0], sizes))
        else:
            continue
        total += 2 * summed * terms
    return float(total)


def least_bytes(program: Program, inputs: Sequence[Array]) -> float:
    """The bytes of inputs, constants and the result, each once."""
    info = program.result.struct_info
    assert isinstance(info, TensorStructInfo)
    written = math.prod(_extents(program.result, sizes_of(program, inputs)))
    read = sum(x.nbytes for x in (*inputs, *program.constants.values()))
    return float(read + written * np.dtype(info.dtype).itemsize)


def sizes_of(program: Program, inputs: Sequence[Array]) -> dict[str, int]:
    """The values of the symbols of the parameters."""
    sizes: dict[str, int] = {}
    for param, x in zip(program.params, inputs, strict=True):
        info = param.struct_info
        assert isinstance(info, TensorStructInfo)
        for extent, size in zip(info.dims or (), x.shape, strict=True):
            if not isinstance(extent, int):
                sizes[dims.text(extent)] = size
    return sizes


def _extents(operand: Operand, sizes: Mapping[str, int]) -> list[int]:
    assert isinstance(operand, Var | Constant)
    info = operand.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return [dims.evaluate(d, sizes) for d in info.dims]

"""Loop functions that run as the operators that they are read as."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Call, Function
from relax_egraph.ir.matching import Value
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo
from relax_egraph.ir.walk import bindings_of
from relax_egraph.raising.function import Reason, read
from relax_egraph.tir.interpret import run_in_place
from relax_egraph.tir.stmt import PrimFunc


class Operators:
    """Runs loop functions as operators where they read; keeps the reasons of the others."""

    def __init__(self) -> None:
        self.read: list[Function] = []
        self.reasons: list[str] = []

    def __call__(self, function: BaseFunc, values: Sequence[Value]) -> None:
        """For ``evaluate(…, prim_func=…)``."""
        assert isinstance(function, PrimFunc)
        operators = read(function)
        if isinstance(operators, Reason):
            self.reasons.append(operators.text)
            run_in_place(function, values)
            return
        self.read.append(operators)
        arrays: list[Any] = [v for v in values if isinstance(v, np.ndarray)]
        results = run(function, operators, arrays, [v for v in values if isinstance(v, int)])
        for out, result in zip(arrays[len(function.inputs) :], results, strict=True):
            assert (out.dtype, out.shape) == (result.dtype, result.shape)
            out[...] = result

    @property
    def names(self) -> list[str]:
        """The operators of the functions that were read."""
        return [name for function in self.read for name in names_of(function)]


def names_of(function: Function) -> Iterator[str]:
    """The operators that `function` calls, in order."""
    for binding in bindings_of(function.body):
        value = getattr(binding, "value", None)
        if isinstance(value, Call) and isinstance(value.op, Op):
            yield value.op.name


def run(
    function: PrimFunc, operators: Function, arrays: Sequence[Any], scalars: Sequence[int]
) -> tuple[Any, ...]:
    """The results of `operators` on the inputs among `arrays`; outputs are read for sizes only."""
    sizes = dict(zip(function.scalars, scalars, strict=True))
    for buffer, array in zip(function.params, arrays, strict=True):
        sizes.update({str(d): n for d, n in zip(buffer.shape, array.shape, strict=True)})
    args: list[Value] = list(arrays[: len(function.inputs)])
    for param in operators.params[len(args) :]:
        assert isinstance(param.struct_info, ShapeStructInfo)
        args.append(tuple(sizes[str(d)] for d in param.struct_info.values or ()))
    result: Any = evaluate(IRModule({"f": operators}), "f", *args)
    return result if isinstance(result, tuple) else (result,)

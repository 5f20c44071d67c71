"""Operators on extents of every form: they become loops, or run by their reference."""

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import IllTyped, RelaxEgraphError, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, Expr, PrimValue, ShapeExpr, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.script import parse
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Case, Draw

n, m = map(dims.symbol, "nm")

FORMS: tuple[Callable[[int], Dim], ...] = (
    lambda e: e,
    lambda _: n,
    lambda _: m,
    lambda _: dims.mul(n, 2),
    lambda _: dims.floordiv(n, 2),
    lambda _: dims.mod(n, 3),
    lambda e: dims.minimum(n, e),
    lambda e: dims.maximum(n, e),
    lambda _: dims.add(n, m),
    lambda _: dims.mul(n, m),
    lambda e: dims.sub(n, e),
    lambda _: dims.floordiv(n, m),
    lambda e: dims.maximum(dims.sub(n, e), 0),
    lambda _: dims.floordiv(dims.add(dims.minimum(n, 1000), 1), 2),
)
"""What an extent may be written as."""


def module_of(name: str, case: Case, random: Random) -> IRModule:
    """A call of an operator, of operands whose extents are written in some of the `FORMS`."""
    forms: dict[int, Dim] = {}
    params = [Var("p", tensor((n, m), "float32"))]

    def dim(extent: int) -> Dim:
        if extent not in forms or random.random() < 0.2:
            forms[extent] = random.choice(FORMS)(extent)
        return forms[extent]

    def expression(operand: Any) -> Expr:
        if isinstance(operand, np.ndarray):
            info = tensor(tuple(map(dim, operand.shape)), operand.dtype.name)
            params.append(Var(f"x{len(params)}", info))
            return params[-1]
        if isinstance(operand, tuple):
            if any(isinstance(o, np.ndarray) for o in operand):
                return Tuple(tuple(map(expression, operand)))
            return ShapeExpr(tuple(dim(e) if random.random() < 0.5 else e for e in operand))
        return PrimValue(operand, "float64" if isinstance(operand, float) else "int64")

    args = tuple(map(expression, case.operands))
    bb = BlockBuilder()
    with bb.function("main", params):
        with bb.dataflow():
            out = bb.emit_output(Call(OPS[name], args, case.attrs))
        bb.emit_func_output(out)
    return bb.get()


@pytest.mark.parametrize("count", [1, pytest.param(60, marks=pytest.mark.fuzz)])
def test_every_operator_on_extents_of_every_form(count: int) -> None:
    wrong: list[str] = []
    for name, sampler in SAMPLERS.items():
        random = Random(name)
        for _ in range(count):
            case = sampler(Draw(random))
            try:
                legalize_ops(module_of(name, case, random))
            except IllTyped:
                continue  # the extents that were drawn do not fit together
            except RelaxEgraphError as refusal:
                wrong.append(f"{name}: {refusal}")
            except Exception as problem:
                wrong.append(f"{name}: {type(problem).__name__}: {problem}")
    assert not wrong


@pytest.mark.parametrize(
    ("operator", "dtype"), [("quantize", "float32"), ("dequantize", "int8")], ids=str
)
def test_a_scalar_with_a_vector_of_parameters(operator: str, dtype: str) -> None:
    scales = "float32"
    module = parse(
        f"""
@R.function
def main(x: R.Tensor((), "{dtype}"), s: R.Tensor(("n",), "{scales}"), z: R.Tensor((1,), "int8")):
    with R.dataflow():
        out = R.{operator}(x, s, z, axis=-1)
        R.output(out)
    return out
"""
    )
    main = VirtualMachine(build(module))["main"]
    x, z = np.asarray(6, dtype), np.zeros(1, np.int8)

    assert main(x, np.full(1, 2, scales), z).item() == (3 if operator == "quantize" else 12)
    with pytest.raises(RunError) as error:
        main(x, np.ones(2, scales), z)

    assert str(error.value).endswith("scale has shape (2,), needs (), (1,) or (1,)")

"""Loops of reductions, scans, searches and draws: as interpreted, and as script reads them back."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.expr import Attr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.script import parse, print_module
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc

n = dims.symbol("n")

CASES: list[tuple[str, tuple[str, ...], dict[str, Attr]]] = [
    *(("prod", (dtype,), {"axis": (1,)}) for dtype in ("float32", "int8", "bool")),
    ("variance", ("float64",), {"axis": (2, 0), "keepdims": True}),
    ("std", ("float32",), {}),
    ("collapse_sum_like", ("int32", "int32"), {}),
    ("cumsum", ("float32",), {"axis": 1}),
    ("cumsum", ("bool",), {"exclusive": True}),
    ("cumprod", ("int8",), {"axis": -1, "dtype": "float64", "exclusive": True}),
    ("cumprod", ("bool",), {"axis": 0}),
    ("argmax", ("float32",), {"axis": 1}),
    ("argmin", ("bool",), {"axis": 2, "keepdims": True}),
    ("bucketize", ("float32", "float32"), {"right": True, "out_int32": True}),
    ("multinomial_from_uniform", ("float32", "float64"), {}),
    ("multinomial_from_uniform", ("float32", "float32", "int32"), {"dtype": "int32"}),
    ("size", ("float32",), {}),
]

SHAPES: dict[str, tuple[tuple[int, ...], ...]] = {
    "bucketize": ((2, 3), (5,)),
    "multinomial_from_uniform": ((3, 4), (3, 1), (3, 1)),
    "collapse_sum_like": ((2, 3, 4), (3, 1)),
}


def arrays(name: str, dtypes: tuple[str, ...]) -> list[np.ndarray[Any, Any]]:
    """Operands, each sorted along its last axis: boundaries have to be."""
    rng = np.random.default_rng(0)
    shapes = SHAPES.get(name, ((2, 3, 4),))
    drawn = (np.sort(rng.uniform(0, 1.9, s)) for s in shapes)
    return [x.astype(dtype) for x, dtype in zip(drawn, dtypes, strict=False)]


@pytest.mark.parametrize(("name", "dtypes", "attrs"), CASES)
def test_interpreted_loops_compute_what_the_reference_does(
    name: str, dtypes: tuple[str, ...], attrs: dict[str, Attr]
) -> None:
    operands = arrays(name, dtypes)
    params = [Var(f"x{k}", tensor(x.shape, x.dtype.name)) for k, x in enumerate(operands)]
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(call(name, *params, **attrs)))
    expected = apply_op(OPS[name], operands, attrs)

    (loops,) = (f for f in legalize_ops(bb.get()).functions.values() if isinstance(f, PrimFunc))
    (result,) = interpret(loops, operands)

    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(result, expected, rtol=2e-6, atol=0)


@pytest.mark.parametrize(("name", "dtypes", "attrs"), CASES)
def test_script_reads_back_the_loops_of_symbolic_extents(
    name: str, dtypes: tuple[str, ...], attrs: dict[str, Attr]
) -> None:
    first, *rest = arrays(name, dtypes)
    known = first.shape if name == "multinomial_from_uniform" else (n, *first.shape[1:])
    params = [Var("x", tensor(known, dtypes[0]))]
    params += [Var(f"y{k}", tensor(y.shape, y.dtype.name)) for k, y in enumerate(rest)]
    bb = BlockBuilder()
    with bb.function("main", params):
        bb.emit_func_output(bb.emit(call(name, *params, **attrs)))

    module = legalize_ops(bb.get())

    assert len(module.functions) == 2
    assert_structural_equal(parse(print_module(module)), module)

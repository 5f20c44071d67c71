"""Results of the loops of operators on arrays, for the tests of all operators."""

from collections.abc import Callable
from typing import Any

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Attr, Call, ShapeExpr, Var
from relax_egraph.ir.op import OPS, complete_attrs, infer
from relax_egraph.ir.struct_info import Shape, tensor
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.tir import te
from relax_egraph.tir.interpret import interpret

Array = np.ndarray[Any, Any]


def sample(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    values = np.random.default_rng(seed).uniform(-3, 3, shape)
    if dtype.startswith("uint"):
        values = np.abs(values)
    return values > 0 if dtype == "bool" else values.astype(dtype)


def symbolic(shape: tuple[int, ...]) -> Shape:
    """`shape` with a symbol for each extent but 1; equal extents have one symbol."""
    return tuple(1 if d == 1 else dims.symbol(f"n{d}") for d in shape)


def static(shape: tuple[int, ...]) -> Shape:
    return shape


Known = Callable[[tuple[int, ...]], Shape]
"""Selects which extents are constants: `static` or `symbolic`."""


def legalized(
    known: Known,
    name: str,
    *operands: Array | tuple[int, ...],
    **attrs: Attr,
) -> Array:
    """The result of the loops of operator `name` on `operands`; a tuple is a shape operand."""
    shapes = [known(o if isinstance(o, tuple) else o.shape) for o in operands]
    tensors = [
        s if isinstance(o, tuple) else te.placeholder(s, o.dtype.name, f"x{k}")
        for k, (o, s) in enumerate(zip(operands, shapes, strict=True))
    ]
    out = LEGALIZE[name](*tensors, **complete_attrs(OPS[name], attrs))
    assert isinstance(out, te.Tensor)
    args = [
        ShapeExpr(s) if isinstance(o, tuple) else Var("x", tensor(s, o.dtype.name))
        for o, s in zip(operands, shapes, strict=True)
    ]
    assert tensor(out.shape, out.dtype) == infer(Call(OPS[name], tuple(args), attrs))
    prim_func = te.create_prim_func(*(t for t in tensors if isinstance(t, te.Tensor)), out)
    arrays = [o for o in operands if not isinstance(o, tuple)]
    values = {
        str(dim): extent
        for o, s in zip(operands, shapes, strict=True)
        for dim, extent in zip(s, o if isinstance(o, tuple) else o.shape, strict=True)
        if not isinstance(dim, int)
    }
    return interpret(prim_func, arrays, values)[0]


def assert_close(actual: Array, expected: Any) -> None:
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    if is_float(actual.dtype.name):
        np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(actual, expected)

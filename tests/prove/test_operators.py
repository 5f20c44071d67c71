"""The formulas of operators are what numpy computes."""

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pytest

from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TupleStructInfo, tensor
from relax_egraph.prove.algebra import PRODUCTS
from relax_egraph.prove.conditions import Condition, Nonnegative, mapped
from relax_egraph.prove.digits import replaced
from relax_egraph.prove.effort import Effort
from relax_egraph.prove.operators import FORMULAS, read
from relax_egraph.prove.polynomial import of
from relax_egraph.prove.reading import Reader
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.sums import Applied, Factor, Read, Sum, Term, replaced_factor
from relax_egraph.prove.tensors import Tensor, operand

pytest.importorskip("z3", reason="proofs need z3-solver")

Arrays = Mapping[str, Any]


def chosen(condition: Any, a: Any, b: Any) -> Any:
    return a if condition else b


FUNCTIONS: Mapping[str, Any] = {
    "max": max,
    "min": min,
    "exp": math.exp,
    "log": math.log,
    "select": chosen,
    "to int32": int,
}
FLOATS = np.random.default_rng(0).standard_normal((2, 3, 4))
ROW = np.arange(4.0)
CASES: tuple[tuple[str, list[Any], dict[str, Any]], ...] = (
    ("reshape", [FLOATS, (4, 6)], {}),
    ("flatten", [FLOATS], {}),
    ("expand_dims", [FLOATS], {"axis": (0, 2)}),
    ("squeeze", [FLOATS[:, :1]], {"axis": (1,)}),
    ("nn.batch_flatten", [FLOATS], {}),
    ("broadcast_to", [FLOATS[:, :1], (5, 2, 3, 4)], {}),
    (
        "concat",
        [
            (FLOATS, FLOATS[:, 1:]),
        ],
        {"axis": 1},
    ),
    ("concat", [(FLOATS, ROW)], {"axis": None}),
    ("stack", [(FLOATS, FLOATS + 1)], {"axis": 2}),
    ("split", [FLOATS], {"indices_or_sections": (1, 3), "axis": 2}),
    (
        "strided_slice",
        [FLOATS, (1, -1), (3, 0)],
        {"axes": (1, 2), "strides": (1, -2), "assume_inbound": False},
    ),
    (
        "nn.pad",
        [FLOATS],
        {"pad_width": (0, 0, 1, 2, 0, 1), "pad_mode": "constant", "pad_value": 0.5},
    ),
    ("flip", [FLOATS], {"axis": 1}),
    ("dist.shard", [FLOATS], {"parts": 2, "axis": 2}),
    ("dist.shard", [FLOATS], {"parts": 3, "axis": -2}),
    ("dist.all_gather", [FLOATS], {"axis": 1}),
    ("dist.all_gather", [FLOATS], {"axis": -2}),
    ("clip", [FLOATS], {"min": -0.5, "max": 0.25}),
    ("astype", [FLOATS * 9], {"dtype": "int32"}),
    ("full", [(2, 2), np.array(3.5)], {"dtype": None}),
    ("full_like", [FLOATS, np.array(3.5)], {"dtype": None}),
    ("masked_fill", [FLOATS, FLOATS > 0], {"value": 7.0}),
    ("log_add_exp", [FLOATS, FLOATS[::-1]], {}),
    ("nn.rotary_embedding", [FLOATS, FLOATS[0], FLOATS[1]], {"interleaved": False}),
    ("nn.rotary_embedding", [FLOATS, FLOATS[0], FLOATS[1]], {"interleaved": True}),
    ("nn.rotary_embedding", [FLOATS, ROW[1:2], ROW[2:3]], {"interleaved": False}),
    ("nn.rotary_embedding", [FLOATS, FLOATS[:, :1, :2], FLOATS[:, 1:2, 2:]], {"interleaved": True}),
    ("cumsum", [FLOATS], {"axis": 1, "dtype": None, "exclusive": False}),
    ("cumsum", [FLOATS], {"axis": None, "dtype": None, "exclusive": True}),
    ("cumsum", [FLOATS > 0], {"axis": 2, "dtype": "int32", "exclusive": False}),
)


def number(a: Sum, arrays: Arrays) -> Any:
    """The value of an element, with sums over numbers of positions."""
    return sum(map(partial(summed, arrays=arrays), a.terms))


def summed(t: Term, arrays: Arrays) -> float:
    """The value of a term, summed over its variables."""
    extents: Any = [b.extent.number for b in t.binders]
    total = 0.0
    for at in np.ndindex(*extents):
        by = {b.name: of(k) for b, k in zip(t.binders, at, strict=True)}
        if all(holds(mapped(c, lambda p, by=by: replaced(p, by))) for c in t.where):
            factors = (factor(replaced_factor(f, by), arrays) for f in t.factors)
            total += float(t.coefficient) * math.prod(factors)
    return total


def holds(c: Condition) -> bool:
    """Whether a condition of numbers holds."""
    assert isinstance(c, Nonnegative)
    assert c.p.number is not None
    return c.p.number >= 0


def factor(f: Factor, arrays: Arrays) -> Any:
    match f:
        case Read(name, _, index):
            return arrays[name][tuple(p.number for p in index)]
        case Applied(function, args):
            return FUNCTIONS[function](*(number(a, arrays) for a in args))
        case _:
            raise AssertionError(f)


def computed(t: Tensor, arrays: Arrays) -> Any:
    shape: Any = t.shape
    values = [number(t.at([of(i) for i in at]), arrays) for at in np.ndindex(*shape)]
    return np.array(values).reshape(shape)


def info_of(value: Any) -> StructInfo:
    if isinstance(value, np.ndarray):
        return tensor(value.shape, str(value.dtype))
    if isinstance(value[0], int):
        return ShapeStructInfo(value, len(value))
    return TupleStructInfo(tuple(map(info_of, value)))


@pytest.mark.parametrize(("name", "operands", "attrs"), CASES)
def test_a_formula_is_what_numpy_computes(
    name: str, operands: list[Any], attrs: dict[str, Any]
) -> None:
    arrays: dict[str, Any] = {}

    def symbol(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(symbol, value))
        if not isinstance(value, np.ndarray):
            return value
        arrays[f"x{len(arrays)}"] = value
        return operand(f"x{len(arrays) - 1}", value.shape, str(value.dtype))

    op = operators()[name].op
    info = op.rule(*map(info_of, operands), **attrs)

    reader = Reader(Solver(Effort(10_000)), PRODUCTS)
    result = read(reader, op, tuple(map(symbol, operands)), attrs, info)

    expected = REFERENCE[name](*operands, **attrs)
    several = result if isinstance(result, tuple) else (result,)
    wanted = expected if isinstance(expected, list | tuple) else (expected,)
    for ours, theirs in zip(several, wanted, strict=True):
        np.testing.assert_allclose(computed(ours, arrays), theirs)


def test_every_formula_has_a_case() -> None:
    assert set(FORMULAS) <= {name for name, _, _ in CASES}

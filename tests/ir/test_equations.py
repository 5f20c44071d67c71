"""What struct-info rules need of extents is just what the operators themselves need."""

from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.equations import Equation, equations_of
from relax_egraph.ir.expr import Attrs, Call, Expr, PrimValue, ShapeExpr, Tuple, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.ir.templates import fill
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Draw

FEW, MANY = 2, 60
"""Instances of each operator, in every run and in the long ones."""


COMPARING = [
    name
    for name in SAMPLERS
    if len(OPS[name].operands) > 1 or OPS[name].operands[0].kind == "tensors" or name == "squeeze"
]
"""The operators that may compare extents."""


class Loosened:
    """Operands with a symbol of its own for every other axis; `sizes` are those that all have."""

    def __init__(self, random: Random) -> None:
        self.sizes: dict[str, int] = {}
        self._random = random

    def expression(self, operand: Any, name: str) -> Expr:
        match operand:
            case np.ndarray():
                symbols = [f"{name}_{k}" for k in range(operand.ndim)]
                self.sizes |= zip(symbols, operand.shape, strict=True)
                pairs = zip(symbols, operand.shape, strict=True)
                shape = [dims.symbol(n) if self._random.random() < 0.5 else d for n, d in pairs]
                return Var(name, tensor(tuple(shape), operand.dtype.name))
            case tuple() if any(isinstance(o, np.ndarray) for o in operand):
                fields = (self.expression(o, f"{name}_{k}") for k, o in enumerate(operand))
                return Tuple(tuple(fields))
            case tuple():
                return ShapeExpr(operand)
            case float():
                return PrimValue(operand, "float64")
            case _:
                return PrimValue(operand)


def resized(operand: Any, name: str, sizes: Mapping[str, int]) -> Any:
    """`operand` with other extents; what it has less is cut off, what it has more repeats."""
    match operand:
        case np.ndarray():
            shape = tuple(sizes[f"{name}_{k}"] for k in range(operand.ndim))
            places = (np.arange(d) % max(e, 1) for d, e in zip(shape, operand.shape, strict=True))
            if operand.size == 0 or operand.ndim == 0:
                return np.zeros(shape, operand.dtype)
            return operand[np.ix_(*places)]
        case tuple() if any(isinstance(o, np.ndarray) for o in operand):
            return tuple(resized(o, f"{name}_{k}", sizes) for k, o in enumerate(operand))
        case _:
            return operand


def holds(equation: Equation, sizes: Mapping[str, int]) -> bool:
    left, right = (dims.evaluate(d, sizes) for d in (equation.left, equation.right))
    return left == right or 1 in (dims.evaluate(d, sizes) for d in equation.repeated)


def refusal_of(name: str, operands: Sequence[Any], attrs: Attrs) -> str:
    try:
        apply_op(OPS[name], operands, attrs)
    except RunError as refusal:
        return str(refusal)
    return ""


def neighbours(sizes: Mapping[str, int], symbols: frozenset[str], random: Random) -> Iterator[Any]:
    for name in sorted(symbols):
        yield {**sizes, name: random.choice([0, 1, sizes[name] + 1, max(sizes[name] - 1, 0)])}


@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.fuzz)])
@pytest.mark.parametrize("name", COMPARING)
def test_an_operator_refuses_operands_in_the_words_of_the_equation_that_they_break(
    name: str, count: int
) -> None:
    random = Random(name)
    for _ in range(count):
        case = SAMPLERS[name](Draw(random))
        loose = Loosened(random)
        args = tuple(loose.expression(o, f"x{k}") for k, o in enumerate(case.operands))
        equations = equations_of(Call(OPS[name], args, case.attrs))
        assert all(holds(e, loose.sizes) for e in equations)
        spoken = (dims.symbols(d) for e in equations for d in (e.left, e.right))
        for sizes in neighbours(loose.sizes, frozenset[str]().union(*spoken), random):
            operands = [resized(o, f"x{k}", sizes) for k, o in enumerate(case.operands)]
            broken = [e for e in equations if not holds(e, sizes)]
            said = refusal_of(name, operands, case.attrs)
            if broken:
                assert said == fill(broken[0].refusal, sizes)

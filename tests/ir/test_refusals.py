"""An operator that is not said to refuse computes a result, of whatever sizes its operands are."""

from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_stored
from relax_egraph.ir.expr import Call, Expr, PrimValue, ShapeExpr, Tuple, Var
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.refusals import operator_may_refuse
from relax_egraph.ir.requirements import Requirement, recording
from relax_egraph.ir.struct_info import Shape, tensor
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Case, Draw

SIZES = (0, 1, 1, 2, 3, 5)
"""The values of symbols."""

PROMISED = "is not within the extent"
"""What the reference says of positions that the caller of a slice promised to be inside."""

NEGATIVE = ("does not fit into", "negative dimensions")
"""What it says where the result has a negative extent: that is refused when it is allocated."""


class Instance:
    """A case of an operator with symbols for some extents, equal ones not always of one name."""

    def __init__(self, random: Random, case: Case) -> None:
        self.random = random
        self.case = case
        self.symbols: dict[str, int] = {}
        self.shapes: list[Shape] = []
        self.args = tuple(map(self.expression, case.operands))

    def dim(self, extent: int) -> Dim:
        """The extent as it is, or a symbol: of all that are equal, or of its own."""
        way = self.random.random()
        if way < 0.4:
            return extent
        name = f"all{extent}" if way < 0.7 else f"own{len(self.symbols)}"
        self.symbols[name] = extent
        return dims.symbol(name)

    def expression(self, operand: Any) -> Expr:
        """`operand` as an argument of a call."""
        if isinstance(operand, np.ndarray):
            self.shapes.append(tuple(map(self.dim, operand.shape)))
            return Var(f"x{len(self.shapes)}", tensor(self.shapes[-1], operand.dtype.name))
        if isinstance(operand, tuple):
            if any(isinstance(o, np.ndarray) for o in operand):
                return Tuple(tuple(map(self.expression, operand)))
            return ShapeExpr(operand)
        return PrimValue(operand, "float64" if isinstance(operand, float) else "int64")

    def operands(self) -> tuple[Any, ...]:
        """Operands of other sizes, of the same elements."""
        sizes = {name: self.random.choice(SIZES) for name in self.symbols}
        shapes = iter(self.shapes)

        def of(operand: Any) -> Any:
            if isinstance(operand, np.ndarray):
                shape = tuple(dims.evaluate(d, sizes) for d in next(shapes))
                return np.resize(operand if operand.size else np.zeros(1, operand.dtype), shape)
            if isinstance(operand, tuple) and any(isinstance(o, np.ndarray) for o in operand):
                return tuple(map(of, operand))
            return operand

        return tuple(map(of, self.case.operands))


def is_stored_half(case: Case) -> bool:
    """Whether the reference of a case infers its result again, of sizes that then are known."""
    return any(isinstance(o, np.ndarray) and is_stored(o.dtype.name) for o in case.operands)


@pytest.mark.parametrize("count", [2, pytest.param(60, marks=pytest.mark.fuzz)])
def test_what_is_not_said_to_refuse_does_not(count: int) -> None:
    wrong: list[str] = []
    for name, sampler in SAMPLERS.items():
        random = Random(name)
        for _ in range(count):
            instance = Instance(random, sampler(Draw(random)))
            call = Call(OPS[name], instance.args, instance.case.attrs)
            if is_stored_half(instance.case) or operator_may_refuse(call, OPS[name]):
                continue
            for _ in range(3):
                try:
                    apply_op(OPS[name], instance.operands(), instance.case.attrs)
                except RunError as refusal:
                    if PROMISED not in str(refusal) and not any(
                        n in str(refusal) for n in NEGATIVE
                    ):
                        wrong.append(str(refusal))
    assert not wrong


def test_what_rules_require_and_cannot_decide_is_recorded() -> None:
    n, m = map(dims.symbol, "nm")
    x, y = Var("x", tensor((2, n), "float32")), Var("y", tensor((m, 3), "float32"))

    with recording() as undecided:
        infer(Call(OPS["matmul"], (x, y)))
        infer(Call(OPS["add"], (x, y)))
        infer(Call(OPS["argmax"], (x,), {"axis": 1}))

    assert undecided == [
        Requirement("==", n, m),
        Requirement("broadcast", 2, m),
        Requirement("broadcast", n, 3),
        Requirement("<=", 1, n),
    ]

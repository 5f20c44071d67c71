"""The values of attributes that instances are tried with."""

from typing import Any

import pytest

from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.errors import IllTyped
from relax_egraph.ir.op import REQUIRED, Op
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.prove.attributes import values_of
from relax_egraph.prove.nodes import Leaf

pytest.importorskip("z3", reason="proofs need z3-solver")

SCALAR = TensorStructInfo(ShapeExpr(()), None, 0)
INFOS = {
    "tensor": SCALAR,
    "tensors": TupleStructInfo((SCALAR, SCALAR)),
    "shape": ShapeStructInfo((), 0),
    "prim": PrimStructInfo("int64", 1),
}
OTHERS: dict[str, Any] = {"int": 1, "int or ints": (), "str": "", "bool": False, "float": 1.0}
WITH_AXIS = [
    op.op
    for op in operators().values()
    if any((a.name, a.kind) == ("axis", "int") for a in op.op.attrs)
]


def accepts(op: Op, axis: int) -> bool:
    """Whether `op` has a result for operands without axes."""
    infos = [INFOS[o.kind] for o in op.operands[: op.required]]
    attrs = {a.name: OTHERS[a.kind] if a.default is REQUIRED else a.default for a in op.attrs}
    try:
        op.rule(*infos, **attrs | {"axis": axis})
    except IllTyped:
        return False
    return True


@pytest.mark.parametrize("op", WITH_AXIS, ids=str)
def test_an_axis_that_an_operator_accepts_of_operands_without_axes_is_tried(op: Op) -> None:
    attr = next(a for a in op.attrs if a.name == "axis")
    x = Leaf("x", SCALAR)

    values = values_of(op, attr, ((x,) if op.operands[0].kind == "tensors" else x,))

    assert values or not any(accepts(op, axis) for axis in (-1, 0, 1))

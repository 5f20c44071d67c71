"""How two struct infos relate, and what a call makes of its callee's symbols."""

import pytest

from relax_egraph.ir.agreement import Relation, bind, common, relation, substituted
from relax_egraph.ir.dims import symbol
from relax_egraph.ir.expr import Var
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)

n, m, k = symbol("n"), symbol("m"), symbol("k")
F32 = "float32"
INFO = tensor((n, 4), F32)
HELD = TensorStructInfo(Var("s"), F32, 2)
OBJECT = ObjectStructInfo()


def pair(*fields: StructInfo) -> TupleStructInfo:
    return TupleStructInfo(fields)


@pytest.mark.parametrize(
    ("declared", "known", "expected"),
    [
        (INFO, INFO, "implied"),
        (tensor(None, F32, 2), INFO, "implied"),
        (tensor(None, None), INFO, "implied"),
        (INFO, OBJECT, "implied"),
        (OBJECT, INFO, "implied"),
        (INFO, tensor(None, F32, 2), "unproven"),
        (INFO, tensor((m, 4), F32), "unproven"),
        (INFO, tensor((n, 4), None), "unproven"),
        (tensor(None, F32, 2), tensor(None, F32), "unproven"),
        (INFO, tensor((n, 5), F32), "contradiction"),
        (INFO, tensor((n + 1, 4), F32), "contradiction"),
        (INFO, tensor((n,), F32), "contradiction"),
        (INFO, tensor((n, 4), "int8"), "contradiction"),
        (INFO, ShapeStructInfo((n, 4), 2), "contradiction"),
        (HELD, HELD, "implied"),
        (HELD, INFO, "unproven"),
        (ShapeStructInfo(None, 2), ShapeStructInfo((n, 4), 2), "implied"),
        (ShapeStructInfo((n, 4), 2), ShapeStructInfo((n, 3), 2), "contradiction"),
        (pair(INFO, OBJECT), pair(INFO, INFO), "implied"),
        (pair(INFO), pair(INFO, INFO), "contradiction"),
        (pair(INFO, INFO), pair(INFO, tensor((m, 4), F32)), "unproven"),
        (PrimStructInfo("int64"), PrimStructInfo("int64", n), "implied"),
        (PrimStructInfo("int64", n), PrimStructInfo("int64"), "unproven"),
        (PrimStructInfo("int64", 3), PrimStructInfo("int64", 4), "contradiction"),
        (PrimStructInfo("int64"), PrimStructInfo("bool"), "contradiction"),
        (FuncStructInfo(None, OBJECT), FuncStructInfo((INFO,), INFO), "implied"),
        (FuncStructInfo((INFO,), INFO), FuncStructInfo((), INFO), "contradiction"),
        (FuncStructInfo((), INFO), FuncStructInfo((), pair()), "contradiction"),
    ],
)
def test_what_is_declared_relates_to_what_is_known(
    declared: StructInfo, known: StructInfo, expected: Relation
) -> None:
    assert relation(declared, known) == expected


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (INFO, INFO, INFO),
        (INFO, tensor((m, 4), F32), tensor(None, F32, 2)),
        (INFO, tensor((n, 4), "int8"), tensor((n, 4), None)),
        (INFO, tensor((n,), F32), tensor(None, F32)),
        (HELD, HELD, HELD),
        (pair(INFO, INFO), pair(INFO, OBJECT), pair(INFO, OBJECT)),
        (pair(INFO), pair(), OBJECT),
        (ShapeStructInfo((n,), 1), ShapeStructInfo((n,), 1), ShapeStructInfo((n,), 1)),
        (ShapeStructInfo((n,), 1), ShapeStructInfo((m,), 1), ShapeStructInfo(None, 1)),
        (PrimStructInfo("int64", 1), PrimStructInfo("int64", 2), PrimStructInfo("int64")),
        (INFO, ShapeStructInfo(), OBJECT),
        (OBJECT, OBJECT, OBJECT),
    ],
)
def test_what_two_branches_have_in_common(
    a: StructInfo, b: StructInfo, expected: StructInfo
) -> None:
    assert common(a, b) == expected


def test_symbols_of_parameters_are_bound_where_they_stand_alone() -> None:
    params = [
        tensor((n, m * 2), F32),
        pair(ShapeStructInfo((m,), 1)),
        PrimStructInfo("int64", k),
        OBJECT,
    ]
    args = [
        tensor((3, 8), F32),
        pair(ShapeStructInfo((n + 1,), 1)),
        PrimStructInfo("int64", 7),
        INFO,
    ]

    assert bind(params, args) == {"n": 3, "m": n + 1, "k": 7}


def test_the_first_argument_that_says_a_symbol_decides() -> None:
    assert bind([tensor((n, n), F32)], [tensor((3, 4), F32)]) == {"n": 3}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (tensor((n, m * 2), F32), tensor((5, 6), F32)),
        (tensor((n, k), F32), tensor(None, F32, 2)),
        (HELD, tensor(None, F32, 2)),
        (ShapeStructInfo((m,), 1), ShapeStructInfo((3,), 1)),
        (PrimStructInfo("int64", n), PrimStructInfo("int64", 5)),
        (PrimStructInfo("int64", k), PrimStructInfo("int64")),
        (pair(tensor((n,), F32), OBJECT), pair(tensor((5,), F32), OBJECT)),
    ],
)
def test_symbols_are_replaced_and_shapes_of_others_are_unknown(
    info: StructInfo, expected: StructInfo
) -> None:
    assert substituted(info, {"n": 5, "m": 3}) == expected

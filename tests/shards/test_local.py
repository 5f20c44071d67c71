"""What an operator does to one part is what it does to all of them, part by part."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor
from relax_egraph.shards.local import on_a_part

Array = np.ndarray[Any, Any]


def array(*shape: int) -> Array:
    return np.random.default_rng(len(shape)).standard_normal(shape, np.float32)


X, GAMMA = array(2, 3, 4, 6), array(6)
PARTWISE: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("add", (X, array(2, 1, 4, 1)), {}),
    ("add", (X, GAMMA), {}),
    ("nn.relu", (X,), {}),
    ("matmul", (X, array(2, 1, 6, 5)), {}),
    ("matmul", (X, array(6, 5)), {}),
    ("permute_dims", (X,), {"axes": (0, 2, 3, 1)}),
    ("reshape", (X, (2, 12, 6)), {}),
    ("broadcast_to", (array(2, 1, 6), (2, 5, 6)), {}),
    ("broadcast_to", (GAMMA, (2, 5, 6)), {}),
    ("expand_dims", (X,), {"axis": (1, -1)}),
    ("squeeze", (array(2, 3, 1),), {"axis": (-1,)}),
    ("nn.softmax", (X,), {"axis": -1}),
    ("nn.layer_norm", (X, GAMMA, GAMMA), {"axes": (-1,)}),
    ("nn.rms_norm", (X, GAMMA), {"axes": (3,)}),
    ("nn.rotary_embedding", (X, array(4, 6), array(4, 6)), {}),
    ("sum", (X,), {"axis": (1, 3)}),
    ("max", (X,), {"axis": (2,), "keepdims": True}),
    ("strided_slice", (X, (1,), (3,)), {"axes": (2,)}),
]


def _infos(operands: tuple[Any, ...]) -> list[Any]:
    return [
        ShapeStructInfo(o, len(o)) if isinstance(o, tuple) else tensor(o.shape, "float32")
        for o in operands
    ]


@pytest.mark.parametrize(("name", "operands", "attrs"), PARTWISE)
def test_an_operator_on_parts(name: str, operands: tuple[Any, ...], attrs: dict[str, Any]) -> None:
    op, infos = OPS[name], _infos(operands)
    attrs = {**complete_attrs(op, attrs)}
    result = op.rule(*infos, **attrs)
    assert isinstance(result, TensorStructInfo)
    in_parts = [isinstance(o, np.ndarray) and o.ndim > 2 for o in operands]

    local = on_a_part(op, infos, in_parts, attrs, result)

    assert local is not None
    whole = REFERENCE[name](*operands, **attrs)
    for r in range(2):
        own = [
            o[r] if has else i.values if isinstance(i, ShapeStructInfo) else o
            for o, has, i in zip(operands, in_parts, local.operands, strict=True)
        ]
        np.testing.assert_allclose(REFERENCE[name](*own, **local.attrs), whole[r], rtol=1e-5)


ACROSS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("sum", (X,), {"axis": (0,)}),
    ("sum", (X,), {}),
    ("nn.softmax", (X,), {"axis": 0}),
    ("permute_dims", (X,), {"axes": (1, 0, 2, 3)}),
    ("reshape", (X, (6, 4, 6)), {}),
    ("expand_dims", (X,), {"axis": (0,)}),
    ("strided_slice", (X, (0,), (1,)), {"axes": (0,)}),
    ("nn.layer_norm", (X, X, X), {"axes": (0, 1, 2, 3)}),
    ("cumsum", (X,), {"axis": 1}),
]


@pytest.mark.parametrize(("name", "operands", "attrs"), ACROSS)
def test_an_operator_across_parts_or_one_that_is_not_known(
    name: str, operands: tuple[Any, ...], attrs: dict[str, Any]
) -> None:
    op, infos = OPS[name], _infos(operands)
    attrs = {**complete_attrs(op, attrs)}
    in_parts = [k == 0 for k in range(len(operands))]

    result = op.rule(*infos, **attrs)

    assert isinstance(result, TensorStructInfo)
    assert on_a_part(op, infos, in_parts, attrs, result) is None

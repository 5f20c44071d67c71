"""What the e-graph is told of operators holds for all of their instances."""

from random import Random

import numpy as np
import pytest

from relax_egraph.egraph.rulebook.traits import NO_DTYPE
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.op import complete_attrs
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Draw

INSTANCES = 60


@pytest.mark.parametrize("name", [n for n, t in operators().items() if t.dtype])
def test_the_result_has_the_dtype_of_what_is_said_to_have_it(name: str) -> None:
    traits, random = operators()[name], Random(name)
    fixed = traits.dtype.strip('"')
    for _ in range(INSTANCES):
        case = SAMPLERS[name](Draw(random))
        operands = zip(traits.op.operands, case.operands, strict=True)
        attrs = complete_attrs(traits.op, case.attrs)
        values = {o.name: v.dtype.name for o, v in operands if isinstance(v, np.ndarray)} | attrs

        result = apply_op(traits.op, case.operands, case.attrs)

        expected = values.get(traits.dtype, fixed)
        of_one = isinstance(result, np.ndarray)  # calls that make several are opaque
        assert not of_one or expected in (None, *NO_DTYPE) or result.dtype.name == expected


def test_dtypes_come_from_operands_attributes_or_the_operator() -> None:
    names = ("matmul", "where", "nn.conv2d", "full_like", "argsort", "equal", "bucketize")

    assert {name: operators()[name].dtype for name in names} == {
        "matmul": "y",
        "where": "y",
        "nn.conv2d": "out_dtype",
        "full_like": "dtype",
        "argsort": "dtype",
        "equal": '"bool"',
        "bucketize": "",
    }


@pytest.mark.parametrize("name", [n for n, t in operators().items() if t.shape])
def test_the_result_has_the_shape_of_the_operand_that_is_said_to_be_it(name: str) -> None:
    traits, random = operators()[name], Random(name)
    place = [o.name for o in traits.op.operands].index(traits.shape)
    for _ in range(INSTANCES):
        case = SAMPLERS[name](Draw(random))

        result = apply_op(traits.op, case.operands, case.attrs)

        assert result.shape == tuple(case.operands[place])


def test_shapes_are_operands_of_the_operators_that_take_their_result_shape() -> None:
    assert {n: t.shape for n, t in operators().items() if t.shape} == {
        "reshape": "shape",
        "broadcast_to": "shape",
        "full": "shape",
        "ones": "shape",
        "zeros": "shape",
        "collapse_sum_to": "shape",
        "reinterpret": "shape",
    }


def test_the_order_of_axes_is_an_attribute_of_permutations_alone() -> None:
    assert {n: t.order for n, t in operators().items() if t.order} == {"permute_dims": "axes"}

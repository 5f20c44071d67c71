"""Shapes that a program computes from shapes are known before it runs."""

from textwrap import indent
from typing import Any

import numpy as np
import pytest

from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import Sequential, fold_shapes, remove_all_unused
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays

FOLDED = Sequential((fold_shapes, remove_all_unused), name="folded").as_pass()


def body(signature: str, bindings: str, result: str, symbols: str = "") -> str:
    declared = "".join(f"    {s} = T.int64()\n" for s in symbols.split())
    lines = indent(bindings.strip("\n"), "        ")
    return f"""
@R.function
def main({signature}):
{declared}    with R.dataflow():
{lines}
        out = {result}
        R.output(out)
    return out
"""


HEADS = """
t = R.shape_to_tensor(R.shape_of(x))
b = R.expand_dims(R.take(t, R.const(0, "int64"), axis=0), axis=[0])
s = R.expand_dims(R.take(t, R.const(1, "int64"), axis=0), axis=[0])
to = R.concat((b, s, R.const([4, 8], "int64")), axis=0)
y = R.reshape(x, R.tensor_to_shape(to))
z = R.permute_dims(y, axes=[0, 2, 1, 3])
back = R.concat((b, s, R.const([32], "int64")), axis=0)
"""


def test_the_heads_of_attention_as_exporters_part_them() -> None:
    takes, result = 'x: R.Tensor((n, m, 32), "float32")', "R.reshape(z, R.tensor_to_shape(back))"
    parted = """
y = R.reshape(x, R.shape([n, m, 4, 8]))
z = R.permute_dims(y, axes=[0, 2, 1, 3])
"""
    changed = becomes(
        FOLDED,
        body(takes, HEADS, result, "n m"),
        body(takes, parted, "R.reshape(z, R.shape([n, m, 32]))", "n m"),
    )

    main = changed["main"]
    assert isinstance(main, Function)
    assert str(main.ret_struct_info) == 'R.Tensor((n, m, 32), "float32")'


def test_static_shapes() -> None:
    becomes(
        FOLDED,
        body('x: R.Tensor((2, 3, 32), "float32")', HEADS, "R.reshape(z, R.tensor_to_shape(back))"),
        body(
            'x: R.Tensor((2, 3, 32), "float32")',
            "y = R.reshape(x, R.shape([2, 3, 4, 8]))\nz = R.permute_dims(y, axes=[0, 2, 1, 3])",
            "R.reshape(z, R.shape([2, 3, 32]))",
        ),
    )


@pytest.mark.parametrize(
    ("computed", "shape"),
    [
        ("R.shape_to_tensor(R.shape_of(x))", "[n, 4, 6]"),
        ("R.astype(R.astype(t, 'int32'), 'int64')", "[n, 4, 6]"),
        ("R.strided_slice(t, axes=[0], begin=[0], end=[2])", "[n, 4]"),
        ("R.strided_slice(t, axes=[0], begin=[-1], end=[-4], strides=[-1])", "[6, 4, n]"),
        ("R.flip(t, axis=0)", "[6, 4, n]"),
        ("R.take(t, R.const([2, 0], 'int64'), axis=0)", "[6, n]"),
        ("R.stack((R.take(t, R.const(0, 'int64')), R.const(24, 'int64')))", "[n, 24]"),
        ("R.reshape(R.size(x), R.shape([1]))", "[n * 24]"),
        ("R.prod(t, axis=[0], keepdims=True)", "[n * 24]"),
        ("R.reshape(R.sum(t), R.shape([1]))", "[n + 10]"),
        ("R.add(t, R.const([1, 2, 3], 'int64'))", "[n + 1, 6, 9]"),
        ("R.multiply(t, R.const(2, 'int64'))", "[n * 2, 8, 12]"),
        (
            "R.maximum(R.subtract(t, R.const(4, 'int64')), R.const(0, 'int64'))",
            "[max(n - 4, 0), 0, 2]",
        ),
        ("R.minimum(t, R.const(5, 'int64'))", "[min(n, 5), 4, 5]"),
        ("R.floor_divide(t, R.const(2, 'int64'))", "[n // 2, 2, 3]"),
        ("R.floor_mod(t, R.const(4, 'int64'))", "[n % 4, 0, 2]"),
        ("R.negative(R.negative(t))", "[n, 4, 6]"),
        (
            "R.where(R.equal(R.const([1, -1, 1], 'int64'), R.const(-1, "
            "'int64')), R.const([7, 7, 7], 'int64'), t)",
            "[n, 7, 6]",
        ),
        (
            "R.where(R.less(R.const([-1, 2, 2], 'int64'), R.const(0, "
            "'int64')), t, R.const([3, 3, 3], 'int64'))",
            "[n, 3, 3]",
        ),
        (
            "R.where(R.greater_equal(t, R.const(0, 'int64')), t, R.const([3, 3, 3], 'int64'))",
            "[n, 4, 6]",
        ),
        ("R.squeeze(R.split(R.expand_dims(t, axis=[1]), 3)[1], axis=[1])", "[4]"),
        ("R.concat((R.full(R.shape([2]), R.const(1, 'int64')), t))", "[1, 1, n, 4, 6]"),
        ("R.concat((R.ones(R.shape([1]), dtype='int64'), R.split(t, [1])[1]))", "[1, 4, 6]"),
        ("R.flatten(R.broadcast_to(t, R.shape([2, 3])))", "[n, 4, 6, n, 4, 6]"),
    ],
)
def test_a_shape_that_is_computed(computed: str, shape: str) -> None:
    takes = 'x: R.Tensor((n, 4, 6), "float32")'
    text = f"t = R.shape_to_tensor(R.shape_of(x))\nc = {computed}\ns = R.tensor_to_shape(c)"
    before = body(takes, text, 'R.zeros(s, dtype="float32")', "n")
    after = body(takes, "", f'R.zeros(R.shape({shape}), dtype="float32")', "n")

    changed = becomes(FOLDED, before, after)

    for n in (0, 1, 5, 7):
        same_value(parse(before), changed, floats(n, 4, 6))


CAST = """
t = R.shape_to_tensor(R.shape_of(x))
s = R.tensor_to_shape(R.multiply(t, R.const([1, 2], "int64")))
known = R.match_cast(s, R.Shape((p, q)))
y = R.zeros(R.shape([p, q + 1]), dtype="float32")
"""


def test_a_symbol_that_is_cast_to_is_the_dimension() -> None:
    becomes(
        FOLDED,
        body('x: R.Tensor((n, m), "float32")', CAST, "R.exp(y)", "n m p q"),
        body(
            'x: R.Tensor((n, m), "float32")',
            'y = R.zeros(R.shape([n, m * 2 + 1]), dtype="float32")',
            "R.exp(y)",
            "n m",
        ),
    )


def test_a_cast_that_may_fail_stays() -> None:
    bindings = """
s = R.shape_of(x)
known = R.match_cast(s, R.Shape((p, 8)))
y = R.zeros(R.shape([p]), dtype="float32")
"""
    becomes(
        FOLDED,
        body('x: R.Tensor((n, m), "float32")', bindings, "R.exp(y)", "n m p"),
        body(
            'x: R.Tensor((n, m), "float32")',
            "known = R.match_cast(R.shape([n, m]), R.Shape((n, 8)))\n"
            'y = R.zeros(R.shape([n]), dtype="float32")',
            "R.exp(y)",
            "n m",
        ),
    )


def test_what_branches_learn_is_not_known_outside() -> None:
    text = """
@R.function
def main(c: R.Tensor((), "bool"), x: R.Tensor((n, m), "float32")) -> R.Tensor(ndim=1):
    n, m, p = T.int64(), T.int64(), T.int64()
    if c:
        s = R.match_cast(R.shape_of(x), R.Shape((p, 3)))
        y: R.Tensor(ndim=1) = R.zeros(R.shape([p]), dtype="float32")
    else:
        s = R.match_cast(R.shape_of(x), R.Shape((3, p)))
        y: R.Tensor(ndim=1) = R.zeros(R.shape([p]), dtype="float32")
    return y
"""
    before = parse(text)
    after = FOLDED(before)

    assert_well_formed(after)
    for taken, shape in ((True, (2, 3)), (False, (3, 2))):
        assert same_value(before, after, np.array(taken), floats(*shape)).shape == (2,)


def test_positions_of_slices() -> None:
    bindings = """
t = R.shape_to_tensor(R.shape_of(x))
m = R.expand_dims(R.take(t, R.const(1, "int64")), axis=[0])
end = R.concat((R.const([2], "int64"), m))
"""
    becomes(
        FOLDED,
        body(
            'x: R.Tensor((4, n), "float32")',
            bindings,
            "R.dynamic_strided_slice(x, R.const([0, 1], 'int64'), end, R.const([1, 2], 'int64'))",
            "n",
        ),
        body(
            'x: R.Tensor((4, n), "float32")',
            "",
            "R.strided_slice(x, [0, 1], R.shape([0, 1]), R.shape([2, n]), [1, 2])",
            "n",
        ),
    )


def run(module: IRModule, *args: Any) -> Any:
    return evaluate(module, "main", *args)


def test_what_depends_on_data_stays() -> None:
    stays(
        fold_shapes,
        body(
            'x: R.Tensor((n, 6), "float32"), t: R.Tensor((2,), "int64")',
            "s = R.tensor_to_shape(t)",
            "R.reshape(x, s)",
            "n",
        ),
    )


def test_an_element_that_depends_on_data_leaves_the_others_known() -> None:
    before = parse(
        body(
            'x: R.Tensor((n, 6), "float32"), k: R.Tensor((1,), "int64")',
            """
t = R.shape_to_tensor(R.shape_of(x))
rows = R.strided_slice(t, axes=[0], begin=[0], end=[1])
y = R.reshape(x, R.tensor_to_shape(R.concat((rows, R.const([2, 3], "int64")))))
z = R.tensor_to_shape(R.concat((rows, k)))
""",
            "R.reshape(y, z)",
            "n",
        )
    )
    after = FOLDED(before)

    assert "R.reshape(x, R.shape([n, 2, 3]))" in after.script()
    assert "R.tensor_to_shape" in after.script()
    same_value(before, after, floats(4, 6), np.array([6]))


@pytest.mark.parametrize(
    "computed",
    [
        "R.subtract(t, R.const([1], 'int64'))",  # -1 where n is 0
        "R.floor_divide(R.const([8], 'int64'), t)",  # by 0
        "R.floor_mod(R.const([8], 'int64'), t)",
        "R.where(R.equal(t, R.const(3, 'int64')), t, R.const([7], 'int64'))",
        "R.astype(R.astype(t, 'float32'), 'int64')",
        "R.astype(R.add(R.astype(R.const([100], 'int64'), 'int8'), R.astype(t, 'int8')), 'int64')",
    ],
)
def test_what_may_be_no_dimension_stays(computed: str) -> None:
    text = f"t = R.shape_to_tensor(R.shape_of(x))\ns = R.tensor_to_shape({computed})"
    before = parse(body('x: R.Tensor((n,), "float32")', text, 'R.zeros(s, dtype="float32")', "n"))
    after = FOLDED(before)

    assert "R.tensor_to_shape" in after.script()
    for n in (1, 3, 4):
        same_value(before, after, floats(n))


def test_an_extent_of_a_tensor_is_not_negative() -> None:
    takes = 'x: R.Tensor((n, 2), "float32")'
    before = parse(
        body(
            takes,
            """
y = R.strided_slice(x, [0], R.shape([1]), R.shape([n]), assume_inbound=True)
s = R.tensor_to_shape(R.flip(R.shape_to_tensor(R.shape_of(y)), axis=0))
""",
            "R.reshape(y, s)",
            "n",
        )
    )
    after = FOLDED(before)

    assert "R.shape([2, n - 1])" in after.script()
    same_value(before, after, floats(4, 2))


def test_numbers_that_leave_their_dtype_stay() -> None:
    text = body(
        'x: R.Tensor((n, 65536), "float32")',
        """
t = R.astype(R.shape_to_tensor(R.shape_of(x)), "int32")
k = R.strided_slice(t, axes=[0], begin=[1], end=[2])
s = R.tensor_to_shape(R.multiply(k, k))
""",
        'R.zeros(s, dtype="float32")',
        "n",
    )
    after = FOLDED(parse(text))

    assert "R.tensor_to_shape" in after.script()
    assert run(after, floats(1, 65536)).shape == (0,)


def test_a_program_that_computes_no_shape_is_itself() -> None:
    stays(fold_shapes, body('x: R.Tensor((n, 2), "float32")', "y = R.exp(x)", "R.exp(y)", "n"))

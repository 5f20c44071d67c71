"""Slices: of symbolic extents, as scripts write them, and what is refused."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, ShapeExpr, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.ops.slices import slice_of
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.script import print_module
from tests.ir.ops.test_operators import Known, module_of
from tests.support.ops.case import Case

n, m = dims.symbol("n"), dims.symbol("m")


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


X = of(2, 3)


def at(*positions: Dim) -> ShapeExpr:
    return ShapeExpr(positions)


def computed(name: str, *operands: Any, **attrs: Attr) -> Any:
    return apply_op(OPS[name], operands, attrs)


@pytest.mark.parametrize("stride", [1, 2, 3, -1, -2])
def test_a_slice_of_symbolic_extent_is_that_of_python(stride: int) -> None:
    positions = [-4, -2, -1, 0, 1, 3, 2**63 - 1, -(2**63)]
    for begin in positions:
        for end in positions:
            found = slice_of(n, begin, end, stride)
            assert found is not None
            for extent in range(5):
                expected = range(extent)[begin:end:stride]
                first, count = (dims.evaluate(d, {"n": extent}) for d in found)
                assert (count, first if count else 0) == (
                    len(expected),
                    expected[0] if expected else 0,
                )


@pytest.mark.parametrize(
    ("begin", "end", "stride", "expected"),
    [
        (0, n, 1, (0, n)),
        (1, n, 1, (1, dims.maximum(dims.sub(n, 1), 0))),
        (dims.sub(n, 1), n, 1, (dims.maximum(dims.sub(n, 1), 0), dims.minimum(n, 1))),
        (0, m, 1, (0, dims.minimum(m, n))),
        (-1, -(2**63), -1, (dims.sub(n, 1), n)),
        (dims.sub(n, 2), n, 1, None),
    ],
)
def test_a_slice_between_symbols_has_an_extent_where_it_is_known_from_which_end_they_count(
    begin: Dim, end: Dim, stride: int, expected: tuple[Dim, Dim] | None
) -> None:
    assert slice_of(n, begin, end, stride) == expected


@pytest.mark.parametrize(
    ("begin", "end", "attrs", "expected"),
    [
        (at(0), at(m), {}, tensor((dims.minimum(m, n), 3), "float32")),
        (at(1), at(m), {"assume_inbound": True}, tensor((dims.sub(m, 1), 3), "float32")),
        (at(dims.sub(n, 2)), at(n), {"assume_inbound": True}, tensor((2, 3), "float32")),
        (at(0), at(n), {"strides": (2,)}, tensor((dims.floordiv(n + 1, 2), 3), "float32")),
        (at(dims.sub(n, 2)), at(n), {}, tensor(None, "float32", 2)),
        (at(0), Var("end", ShapeStructInfo(None, 1)), {}, tensor(None, "float32", 2)),
    ],
)
def test_a_slice_says_what_is_known_of_its_shape(
    begin: Expr, end: Expr, attrs: dict[str, Attr], expected: StructInfo
) -> None:
    made = call("strided_slice", of(n, 3), begin, end, axes=(0,), **attrs)

    assert made.struct_info == expected


SLICES = """@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32")) -> R.Tensor(("min(2, n)", 4), "float32"):
        n = T.int64()
        with R.dataflow():
            y: R.Tensor((min(2, n), 4), "float32") = R.strided_slice({})
            R.output(y)
        return y
"""
WRITTEN = "x, axes=[0, 1], begin=[-2, 0], end=[n, 8], strides=[1, 2]"


@pytest.mark.parametrize(
    "operands",
    [
        "x, [0, 1], [-2, 0], [n, 8], [1, 2]",
        "x, (R.prim_value(0), R.prim_value(1)), (R.prim_value(-2), R.prim_value(0)), "
        "(R.prim_value(n), R.prim_value(8)), (R.prim_value(1), R.prim_value(2)), "
        "assume_inbound=False",
        "x, begin=R.shape([-2, 0]), end=(n, 8), strides=(1, 2), axes=(0, 1)",
    ],
)
def test_a_slice_reads_in_every_form_that_scripts_give_it(operands: str) -> None:
    expected = parse(SLICES.format(WRITTEN))

    assert_structural_equal(parse(SLICES.format(operands)), expected)
    assert "".join(WRITTEN.split()) in "".join(print_module(expected).split())


@pytest.mark.parametrize(
    ("begin", "end", "stride"), [((3,), (5,), 1), ((-9,), (1,), 1), ((2,), (1,), 1)]
)
def test_a_slice_that_breaks_its_promise_is_refused_at_run_time(
    begin: tuple[int, ...], end: tuple[int, ...], stride: int
) -> None:
    attrs: dict[str, Attr] = {"axes": (0,), "strides": (stride,), "assume_inbound": True}

    with pytest.raises(RunError) as raised:
        computed("strided_slice", np.arange(4), begin, end, **attrs)

    assert str(raised.value) == (
        f'R.strided_slice of R.Tensor((4,), "int64"), R.shape({list(begin)}), '
        f"R.shape({list(end)}): {begin[0]}:{end[0]}:{stride} is not within the extent 4"
    )


def test_a_slice_that_breaks_its_promise_reads_nothing_outside() -> None:
    x, attrs = np.arange(4), {"axes": (0,), "assume_inbound": True}
    module = module_of("strided_slice", [(Case((x, (7,), (9,)), attrs), Known({4: "n"}))])

    result = VirtualMachine(build(module))["f0"](x)

    assert result.tolist() == [3, 3]


def test_a_dynamic_slice_refuses_the_stride_0() -> None:
    zero = np.zeros(1, np.int64)

    with pytest.raises(RunError) as raised:
        computed("dynamic_strided_slice", np.arange(4), zero, zero + 3, zero)

    assert str(raised.value) == (
        'R.dynamic_strided_slice of R.Tensor((4,), "int64"), R.Tensor((1,), "int64"), '
        'R.Tensor((1,), "int64"), R.Tensor((1,), "int64"): slice step cannot be zero'
    )


GIVEN = 'R.Tensor((2, 3), "float32")'


@pytest.mark.parametrize(
    ("name", "operands", "attrs", "message"),
    [
        (
            "strided_slice",
            (X, at(0), at(1, 2)),
            {"axes": (0,)},
            f"R.strided_slice of {GIVEN} along axes [0], begin=(0,), end=(1, 2): "
            "end has 2 numbers, needs 1",
        ),
        (
            "strided_slice",
            (X, at(0), at(1)),
            {"axes": (0,), "strides": (0,)},
            f"R.strided_slice of {GIVEN} along axes [0], begin=(0,), end=(1,): a stride is 0",
        ),
        (
            "strided_slice",
            (X, at(0, 0), at(1, n)),
            {"axes": (0, -2)},
            f"R.strided_slice of {GIVEN} along axes [0, -2], begin=(0, 0), end=(1, n): "
            "an axis is repeated",
        ),
        (
            "strided_slice",
            (X, at(0), at(5)),
            {"axes": (0,), "assume_inbound": True},
            f"R.strided_slice of {GIVEN} along axes [0], begin=(0,), end=(5,): "
            "the slice is not within axis 0",
        ),
        (
            "strided_slice",
            (of(n), at(0), at(2**63 - 1)),
            {"axes": (0,), "assume_inbound": True},
            'R.strided_slice of R.Tensor((n,), "float32") along axes [0], begin=(0,), '
            "end=(9223372036854775807,): the slice is not within axis 0",
        ),
        (
            "dynamic_strided_slice",
            (X, of(3, dtype="int64"), of(2, dtype="int64"), of(2, dtype="int64")),
            {},
            f'R.dynamic_strided_slice of {GIVEN}: begin is R.Tensor((3,), "int64"), '
            "needs 2 numbers",
        ),
        (
            "dynamic_strided_slice",
            (X, of(2, dtype="int64"), of(2, dtype="int32"), of(2, dtype="int64")),
            {},
            f'R.dynamic_strided_slice of {GIVEN}: end is R.Tensor((2,), "int32"), '
            "needs a tensor of rank 1 of int64",
        ),
    ],
)
def test_what_does_not_fit_is_refused(
    name: str, operands: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as raised:
        call(name, *operands, **attrs)

    assert str(raised.value) == message

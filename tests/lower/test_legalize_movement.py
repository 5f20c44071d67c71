"""The operators that move elements move them as numpy does; what is not proven has no loops."""

from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.tir import te
from relax_egraph.tir.interpret import interpret
from tests.support.legalized import Known, assert_close, legalized, sample, static, symbolic

SHAPES = pytest.mark.parametrize("known", [static, symbolic])


@SHAPES
@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (-1, 1, 0)])
def test_permute_dims_is_that_of_numpy(known: Known, axes: tuple[int, ...] | None) -> None:
    x = sample((2, 3, 4), "int32")

    actual = legalized(known, "permute_dims", x, axes=axes)

    assert_close(actual, np.transpose(x, axes))


@SHAPES
@pytest.mark.parametrize(
    ("shape", "target"), [((), (2, 3)), ((3,), (2, 3)), ((2, 1), (2, 3)), ((1, 3), (0, 3))]
)
def test_broadcast_to_is_that_of_numpy(
    known: Known, shape: tuple[int, ...], target: tuple[int, ...]
) -> None:
    x = sample(shape, "float32")

    actual = legalized(known, "broadcast_to", x, target)

    assert_close(actual, np.broadcast_to(x, target))


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((6, 4), (4, 6)),
        ((2, 3, 4), (6, 4)),
        ((6, 4), (2, 3, 4)),
        ((6, 4), (3, 8)),
        ((1, 6), (6, 1, 1)),
        ((4, 4), (2, 2, 4)),
        ((12,), (2, 3, 2)),
        ((2, 3), (6,)),
        ((), (1, 1)),
        ((1,), ()),
        ((0, 3), (5, 0)),
        ((3, 0), (0,)),
        ((2, 3, 4, 5), (4, 6, 5, 1)),
    ],
)
def test_reshape_keeps_the_row_major_order(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    x = sample(shape, "float32")

    actual = legalized(static, "reshape", x, target)

    assert_close(actual, x.reshape(target))


n, m = dims.symbol("n"), dims.symbol("m")


@pytest.mark.parametrize(
    ("shape", "target"),
    [
        ((n, 12), (n, 3, 4)),
        ((n, 3, 4), (n, 12)),
        ((n, 12), (n * 3, 4)),
        ((n * 3, 4), (n, 12)),
        ((n, m), (n * m,)),
        ((n * m,), (n, m)),
        ((n * m,), (m, n)),
        ((n, m), (m, n)),
        ((1, n, m), (m, n, 1)),
        ((4, n + 1), (2, 2, n + 1)),
        ((4, n + 1), (4 * n + 4,)),
        ((4 * n + 4,), (n + 1, 4)),
    ],
)
@pytest.mark.parametrize("values", [{"n": 3, "m": 2}, {"n": 1, "m": 5}, {"n": 0, "m": 2}])
def test_reshape_of_symbolic_extents_keeps_the_row_major_order(
    shape: Shape, target: Shape, values: dict[str, int]
) -> None:
    x = sample(extents(shape, values), "float32")
    placeholder = te.placeholder([dims.canonical(d) for d in shape], "float32", "x")

    out = LEGALIZE["reshape"](placeholder, tuple(dims.canonical(d) for d in target))
    assert isinstance(out, te.Tensor)
    actual = interpret(te.create_prim_func(placeholder, out), [x], values)[0]

    assert_close(actual, x.reshape(extents(target, values)))


def extents(shape: Shape, values: dict[str, int]) -> tuple[int, ...]:
    return tuple(dims.evaluate(dims.canonical(d), values) for d in shape)


@SHAPES
@pytest.mark.parametrize("shape", [(), (3,), (2, 1, 3), (0, 2)])
def test_flatten_keeps_the_row_major_order(known: Known, shape: tuple[int, ...]) -> None:
    x = sample(shape, "float32")

    actual = legalized(known, "flatten", x)

    assert_close(actual, x.reshape(-1))


@SHAPES
@pytest.mark.parametrize("axis", [(0,), (-1,), (0, 2), (-1, 0, 2)])
def test_expand_dims_is_that_of_numpy(known: Known, axis: tuple[int, ...]) -> None:
    x = sample((3, 2), "float32")

    actual = legalized(known, "expand_dims", x, axis=axis)

    assert_close(actual, np.expand_dims(x, axis))


@SHAPES
@pytest.mark.parametrize(("shape", "axis"), [((1, 3), (0,)), ((2, 1, 1), (-1, 1)), ((1,), (0,))])
def test_squeeze_is_that_of_numpy(
    known: Known, shape: tuple[int, ...], axis: tuple[int, ...]
) -> None:
    x = sample(shape, "float32")

    actual = legalized(known, "squeeze", x, axis=axis)

    assert_close(actual, np.squeeze(x, axis))


UNDECIDED: list[tuple[str, list[Shape], dict[str, Any], str]] = [
    ("add", [(n,), (m,)], {}, "whether the shapes broadcast is known only at run time"),
    (
        "matmul",
        [(2, n), (m, 2)],
        {},
        "whether the inner extents agree is known only at run time",
    ),
    (
        "squeeze",
        [(n, 2)],
        {"axis": (0,)},
        "whether the axes to squeeze have extent 1 is known only at run time",
    ),
]


@pytest.mark.parametrize(("name", "shapes", "attrs", "message"), UNDECIDED)
def test_what_is_decided_at_run_time_has_no_loops(
    name: str, shapes: list[Shape], attrs: dict[str, Any], message: str
) -> None:
    operands = [te.placeholder(s, "float32", "x") for s in shapes]

    with pytest.raises(NotLowerable) as raised:
        LEGALIZE[name](*operands, **attrs)

    assert str(raised.value) == message


def test_a_reshape_that_may_not_fit_has_no_loops() -> None:
    target: tuple[Dim, ...] = (m, 2)

    with pytest.raises(NotLowerable) as raised:
        LEGALIZE["reshape"](te.placeholder((n, 4), "float32", "x"), target)

    assert str(raised.value) == "whether the elements fill the shape is known only at run time"

"""What joins, cuts and repeats tensors: what it refuses, symbolic extents, numbers by hand."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.dims import Dim, parse, symbol
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Attr, Expr, Tuple, Var
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import StructInfo, TupleStructInfo, tensor
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.lower.legalize_ops import legalize_ops
from relax_egraph.script import print_module

n, m = symbol("n"), symbol("m")
F32 = '"float32"'


def of(*shape: Dim, dtype: str = "float32") -> Var:
    return Var("x", tensor(shape, dtype))


def parts(*tensors: Expr) -> Tuple:
    return Tuple(tensors)


REFUSED: list[tuple[str, tuple[Expr, ...], dict[str, Attr], str]] = [
    ("concat", (parts(),), {}, "R.concat of nothing: needs one tensor or more"),
    ("stack", (parts(),), {}, "R.stack of nothing: needs one tensor or more"),
    ("meshgrid", (parts(),), {}, "R.meshgrid of nothing: needs one tensor or more"),
    (
        "concat",
        (of(2, 3),),
        {},
        f"R.concat: operand tensors is R.Tensor((2, 3), {F32}), needs a tuple of tensors",
    ),
    (
        "concat",
        (parts(of(2, 3), of(2)),),
        {},
        f"R.concat of R.Tensor((2, 3), {F32}), R.Tensor((2,), {F32}): needs tensors of one rank",
    ),
    (
        "concat",
        (parts(of(2), of(2, dtype="int8")),),
        {},
        f'R.concat of R.Tensor((2,), {F32}), R.Tensor((2,), "int8"): needs tensors of one dtype',
    ),
    (
        "concat",
        (parts(of(n, 3), of(n, 4)),),
        {},
        f"R.concat of R.Tensor((n, 3), {F32}), R.Tensor((n, 4), {F32}): "
        "needs tensors of one shape but for axis 0",
    ),
    (
        "concat",
        (parts(of(2, 3)),),
        {"axis": 2},
        f"R.concat of R.Tensor((2, 3), {F32}): axis 2 is outside of rank 2",
    ),
    (
        "stack",
        (parts(of(2), of(3)),),
        {},
        f"R.stack of R.Tensor((2,), {F32}), R.Tensor((3,), {F32}): needs tensors of one shape",
    ),
    (
        "stack",
        (parts(of(2)),),
        {"axis": -3},
        f"R.stack of R.Tensor((2,), {F32}): axis -3 is outside of the result's rank 2",
    ),
    (
        "split",
        (of(4),),
        {"indices_or_sections": 0},
        f"R.split of R.Tensor((4,), {F32}) into 0 parts: needs 1 or more",
    ),
    (
        "split",
        (of(4),),
        {"indices_or_sections": (3, 1)},
        f"R.split of R.Tensor((4,), {F32}) at [3, 1]: needs indices that ascend from 0",
    ),
    (
        "meshgrid",
        (parts(of(2), of(2, 2)),),
        {},
        f"R.meshgrid of R.Tensor((2,), {F32}), R.Tensor((2, 2), {F32}): needs tensors of rank 1",
    ),
    (
        "meshgrid",
        (parts(of(2)),),
        {"indexing": "ji"},
        'R.meshgrid: indexing is "ji", needs "ij" or "xy"',
    ),
    (
        "tile",
        (of(2),),
        {"repeats": (1, -1)},
        f"R.tile of R.Tensor((2,), {F32}): repeats [1, -1], needs 0 or more",
    ),
    (
        "repeat",
        (of(2),),
        {"repeats": -1},
        f"R.repeat of R.Tensor((2,), {F32}): repeats -1, needs 0 or more",
    ),
    (
        "flip",
        (of(2),),
        {"axis": 1},
        f"R.flip of R.Tensor((2,), {F32}): axis 1 is outside of rank 1",
    ),
    (
        "reverse_sequence",
        (of(2, 3), of(3, dtype="int32")),
        {},
        f'R.reverse_sequence of R.Tensor((2, 3), {F32}) and R.Tensor((3,), "int32"): '
        "needs 2 lengths",
    ),
    (
        "reverse_sequence",
        (of(2, 3), of(2)),
        {},
        f"R.reverse_sequence of R.Tensor((2, 3), {F32}) and R.Tensor((2,), {F32}): "
        "seq_lengths needs int32 or int64",
    ),
    (
        "reverse_sequence",
        (of(2, 3), of(2, 1, dtype="int32")),
        {},
        f'R.reverse_sequence of R.Tensor((2, 3), {F32}) and R.Tensor((2, 1), "int32"): '
        "seq_lengths has rank 2, needs 1",
    ),
    (
        "reverse_sequence",
        (of(2, 3), of(2, dtype="int32")),
        {"seq_axis": -2},
        f'R.reverse_sequence of R.Tensor((2, 3), {F32}) and R.Tensor((2,), "int32"): '
        "seq_axis and batch_axis are both axis 0",
    ),
    (
        "nn.batch_flatten",
        (of(),),
        {},
        f"R.nn.batch_flatten of R.Tensor((), {F32}): needs a tensor of rank 1 or more",
    ),
]


@pytest.mark.parametrize(("name", "args", "attrs", "message"), REFUSED)
def test_what_is_proven_wrong_is_refused(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], message: str
) -> None:
    with pytest.raises(IllTyped) as refusal:
        call(name, *args, **attrs)

    assert str(refusal.value) == message


def dims_of(*shapes: tuple[str | int, ...]) -> StructInfo:
    """A tuple of tensors whose extents are written as script writes them."""
    known = [tuple(parse(str(d)) for d in shape) for shape in shapes]
    return TupleStructInfo(tuple(tensor(shape, "float32") for shape in known))


UNKNOWN = Var("x", tensor(None, "float32"))

KNOWN: list[tuple[str, tuple[Expr, ...], dict[str, Attr], StructInfo]] = [
    ("concat", (parts(of(n, 2), of(m, 2)),), {}, tensor((dims.add(n, m), 2), "float32")),
    ("concat", (parts(of(n, 2), of(3, 4)),), {"axis": 1}, tensor((3, 6), "float32")),
    ("concat", (parts(of(n, 2), UNKNOWN),), {}, tensor(None, "float32", 2)),
    ("concat", (parts(of(n, 2), of(3)),), {"axis": None}, tensor((parse("n * 2 + 3"),), "float32")),
    ("stack", (parts(of(n), of(3)),), {"axis": 1}, tensor((3, 2), "float32")),
    ("stack", (parts(UNKNOWN, UNKNOWN),), {}, tensor(None, "float32")),
    ("split", (of(n),), {"indices_or_sections": 1}, dims_of(("n",))),
    (
        "split",
        (of(parse("n * 6"), 2),),
        {"indices_or_sections": 3},
        dims_of(*[("n * 2", 2)] * 3),
    ),
    (
        "split",
        (of(n),),
        {"indices_or_sections": 2},
        dims_of(("(n + 1) // 2",), ("n - (n + 1) // 2",)),
    ),
    ("split", (of(5),), {"indices_or_sections": 4}, dims_of((2,), (2,), (1,), (0,))),
    ("split", (of(n),), {"indices_or_sections": (3,)}, dims_of(("min(3, n)",), ("n - min(3, n)",))),
    ("tile", (of(n, 3),), {"repeats": (2, 1, 2)}, tensor((2, n, 6), "float32")),
    ("repeat", (of(n, 3),), {"repeats": 2}, tensor((parse("n * 6"),), "float32")),
    ("nn.batch_flatten", (of(n, 3, m),), {}, tensor((n, parse("m * 3")), "float32")),
    ("squeeze", (of(1, 3, 1),), {}, tensor((3,), "float32")),
    ("squeeze", (of(1, parse("n + 2")),), {}, tensor((parse("n + 2"),), "float32")),
    ("squeeze", (of(1, n),), {}, tensor(None, "float32")),
]


@pytest.mark.parametrize(("name", "args", "attrs", "expected"), KNOWN)
def test_symbolic_extents_are_told_as_far_as_they_are_known(
    name: str, args: tuple[Expr, ...], attrs: dict[str, Attr], expected: StructInfo
) -> None:
    assert call(name, *args, **attrs).struct_info == expected


def test_concat_of_unequal_shapes_without_an_axis_is_one_row() -> None:
    x, y = np.array([[1, 2], [3, 4]]), np.array(5)

    result = apply_op(OPS["concat"], ((x, y),), {"axis": None})

    assert result.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("extent", "sections", "expected"),
    [
        (6, 3, [[0, 1], [2, 3], [4, 5]]),
        (5, 3, [[0, 1], [2, 3], [4]]),
        (5, 4, [[0, 1], [2, 3], [4], []]),
        (2, 5, [[0], [1], [], [], []]),
        (0, 2, [[], []]),
        (4, (1, 1, 9), [[0], [], [1, 2, 3], []]),
    ],
)
def test_the_last_parts_of_a_split_are_smaller(
    extent: int, sections: int | tuple[int, ...], expected: list[list[int]]
) -> None:
    result = apply_op(OPS["split"], (np.arange(extent),), {"indices_or_sections": sections})

    assert [part.tolist() for part in result] == expected


def test_a_sequence_is_reversed_up_to_its_length() -> None:
    x = np.arange(12).reshape(3, 4)
    lengths = np.array([-1, 3, 9])

    result = apply_op(OPS["reverse_sequence"], (x, lengths), {})

    assert result.tolist() == [[0, 1, 2, 3], [6, 5, 4, 7], [11, 10, 9, 8]]


def test_a_grid_has_its_first_two_axes_swapped_if_it_is_asked_for_by_xy() -> None:
    x, y = np.array([1, 2]), np.array([3, 4, 5])

    a, b = apply_op(OPS["meshgrid"], ((x, y),), {"indexing": "xy"})

    assert a.tolist() == [[1, 2]] * 3
    assert b.tolist() == [[3, 3], [4, 4], [5, 5]]


SCRIPT = """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")):
    n = T.int64()
    m = T.int64()
    with R.dataflow():
        a, b = R.split(R.concat((x, y), axis=0), 2)
        c = R.split(R.concat([x, x], axis=1), [1, 3], axis=-1)
        d = c[2]
        e = R.stack((d, R.flip(d, axis=1)), axis=1)
        f = R.repeat(R.tile(y, [2, 1]), repeats=3, axis=0)
        g = R.meshgrid([R.flatten(x), R.flatten(y)])[1]
        R.output(a, b, d, e, f, g)
    return (a, b, d, e, f, g)
"""


def expected_of(x: Any, y: Any) -> list[Any]:
    both = np.concatenate([x, y])
    half = -(-len(both) // 2)
    d = np.concatenate([x, x], 1)[:, 3:]
    grid = np.meshgrid(x.ravel(), y.ravel(), indexing="ij")[1]
    return [
        both[:half],
        both[half:],
        d,
        np.stack([d, d[:, ::-1]], 1),
        np.repeat(np.tile(y, (2, 1)), 3, 0),
        grid,
    ]


@pytest.mark.parametrize("extents", [(3, 2), (1, 0), (0, 0), (0, 5), (4, 4)])
def test_a_program_that_joins_and_cuts_runs_for_every_extent(extents: tuple[int, int]) -> None:
    module = rx.parse(SCRIPT)
    x, y = (np.random.default_rng(k).random((e, 4), np.float32) for k, e in enumerate(extents))

    results = [
        evaluate(module, "main", x, y),
        rx.VirtualMachine(rx.build(module))["main"](x, y),
        rx.VirtualMachine(rx.build(rx.optimize(module)))["main"](x, y),
    ]

    for result in results:
        for actual, expected in zip(result, expected_of(x, y), strict=True):
            np.testing.assert_array_equal(actual, expected)


def test_what_joins_and_cuts_is_printed_and_read_back() -> None:
    module = rx.parse(SCRIPT)

    assert_structural_equal(rx.parse(print_module(module)), module)


def test_joins_and_cuts_of_symbolic_extents_have_loops() -> None:
    text = print_module(legalize_ops(rx.parse(SCRIPT)))

    assert "relax.run." not in text


CONCAT = """
@R.function
def main(x: R.Tensor(("n", 2), "float32"), y: R.Tensor(("n", "m"), "float32")):
    gv = R.concat((x, y))
    return gv
"""


def test_extents_that_are_not_proven_to_agree_are_checked_at_run_time() -> None:
    vm = rx.VirtualMachine(rx.build(rx.parse(CONCAT)))
    x = np.ones((3, 2), np.float32)

    result = vm["main"](x, x)

    assert result.shape == (6, 2)
    with pytest.raises(RunError, match="needs tensors of one shape but for axis 0"):
        vm["main"](x, np.ones((3, 5), np.float32))


def test_a_loop_function_of_concat_copies_each_operand_to_its_place() -> None:
    before = rx.parse(CONCAT.replace('"m"', "2"))

    text = print_module(legalize_ops(before))

    assert text.partition("    @T.prim_func\n")[2] == (
        "    def concat(\n"
        '        tensors0: T.Buffer(("n", 2), "float32"),\n'
        '        tensors1: T.Buffer(("n", 2), "float32"),\n'
        '        concat: T.Buffer(("n * 2", 2), "float32"),\n'
        "    ):\n"
        "        n = T.int64()\n"
        "        for i0, i1 in T.grid(n, 2):\n"
        '            with T.block("concat_tensors0"):\n'
        '                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])\n'
        "                concat[v_i0, v_i1] = tensors0[v_i0, v_i1]\n"
        "        for i0, i1 in T.grid(n, 2):\n"
        '            with T.block("concat_tensors1"):\n'
        '                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])\n'
        "                concat[v_i0 + n, v_i1] = tensors1[v_i0, v_i1]\n"
    )

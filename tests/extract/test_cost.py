"""Prices follow the formula, on the sizes that hints give, and every operator has one."""

import math
from dataclasses import replace

import pytest

from relax_egraph.extract import REFERENCE_PROFILE, Level, Profile, price
from relax_egraph.extract.cost import FOLDING, OPAQUE, RUNTIME_CALL, VIEW, Costs
from relax_egraph.extract.work import WORK
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Input, Kernel, Schedule, Step
from relax_egraph.ir.op import OPS
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor

N = dims.symbol("n")
FULL = Schedule("elementwise", 1.0, 1.0)
INTEGERS = ("bool", "int8", "uint8", "int16", "int32", "int64")
ROUND = Profile(
    name="round",
    launch=1.0,
    peak={"float32": 10.0, "float64": 5.0, **dict.fromkeys(INTEGERS, 10.0)},
    levels=(Level(1600.0, 8.0), Level(math.inf, 4.0)),
)
"""A machine of round numbers, on which a second is long."""


def kernel(name: str, result: TensorStructInfo, *operands: TensorStructInfo) -> Kernel:
    inputs = tuple(map(Input, operands))
    step = Step(OPS[name], tuple(range(len(inputs))), (), result)
    return Kernel(inputs, (step,), (len(inputs),))


def f32(*shape: dims.Dim) -> TensorStructInfo:
    return tensor(shape, "float32")


def test_every_operator_has_its_work() -> None:
    assert set(WORK) == {name for name, op in OPS.items() if not op.intrinsic}


def test_memory_bounds_an_elementwise_kernel() -> None:
    added = kernel("add", f32(100), f32(100), f32(100))

    seconds = price(added, FULL, ROUND)

    assert seconds == pytest.approx(1.0 + 1200 / 8 + (100 / 10) / 64)


def test_arithmetic_bounds_a_matrix_product() -> None:
    product = kernel("matmul", f32(10, 30), f32(10, 20), f32(20, 30))

    seconds = price(product, FULL, ROUND)

    moved = 4 * (10 * 20 + 20 * 30 + 10 * 30)
    memory = 1600 / 8 + (moved - 1600) / 4
    assert seconds == pytest.approx(1.0 + 2 * 10 * 20 * 30 / 10 + memory / 64)


def test_a_schedule_reaches_a_share_of_the_machine() -> None:
    added = kernel("add", f32(100), f32(100), f32(100))

    seconds = price(added, Schedule("elementwise", 0.01, 0.5), ROUND)

    assert seconds == pytest.approx(1.0 + (100 / 10) / 0.01 + (1200 / 8) / 0.5 / 64)


def test_symbols_are_what_the_hints_say_or_64() -> None:
    m = dims.symbol("m")
    symbolic = kernel("nn.relu", f32(N, m), f32(N, m))
    concrete = kernel("nn.relu", f32(3, 64), f32(3, 64))

    assert price(symbolic, FULL, ROUND, {"n": 3}) == price(concrete, FULL, ROUND)


def test_a_dimension_that_hints_make_negative_has_the_default_size() -> None:
    costs = Costs(ROUND, {"n": 5})

    assert costs.size(dims.sub(8, N)) == 3
    assert costs.size(dims.sub(4, N)) == 64


def test_each_dtype_has_its_peak() -> None:
    single = kernel("exp", f32(1000), f32(1000))
    double = kernel("exp", tensor((1000,), "float64"), tensor((1000,), "float64"))

    narrow, wide = (price(k, Schedule("elementwise", 0.001, 1.0), ROUND) for k in (single, double))

    assert wide == pytest.approx(2 * narrow, rel=1e-3)


def test_what_a_broadcast_repeats_is_counted_each_time() -> None:
    shape = ShapeStructInfo((50, 100), 2)
    exp = Step(OPS["exp"], (0,), (), f32(100))
    wide = Step(OPS["broadcast_to"], (1, shape), (), f32(50, 100))
    below = Kernel((Input(f32(100)),), (exp, wide), (2,))
    above = Kernel(
        (Input(f32(100)),),
        (replace(wide, operands=(0, shape)), replace(exp, operands=(1,), struct_info=f32(50, 100))),
        (2,),
    )

    assert price(below, FULL, ROUND) == price(above, FULL, ROUND)


def test_what_follows_a_reduction_is_computed_once_for_each_row() -> None:
    total = Step(OPS["sum"], (0,), (("axis", (1,)), ("keepdims", True)), f32(50, 1))
    root = Step(OPS["sqrt"], (1,), (), f32(50, 1))
    wide = Step(OPS["broadcast_to"], (2, ShapeStructInfo((50, 100), 2)), (), f32(50, 100))
    rows = Kernel((Input(f32(50, 100)),), (total, root, wide), (3,))

    seconds = price(rows, Schedule("rows", 0.01, 1.0), ROUND)

    arithmetic = (50 * 100 + 8 * 50) / 10 / 0.01
    memory = 1600 / 8 + (2 * 4 * 5000 - 1600) / 4
    assert seconds == pytest.approx(1.0 + arithmetic + memory / 64)


def test_a_known_scalar_is_not_read() -> None:
    scale = Kernel(
        (Input(f32(1)), Input(f32(), 2.0)),
        (Step(OPS["multiply"], (0, 1), (), f32(1)),),
        (2,),
    )

    assert price(scale, FULL, ROUND) == pytest.approx(1.0 + 8 / 8 + 0.1 / 64)


def test_a_view_costs_next_to_nothing() -> None:
    flat = kernel("flatten", f32(10000), f32(100, 100))

    assert price(flat, Schedule("view", 1.0, 1.0)) == VIEW
    assert 0 < FOLDING < VIEW < REFERENCE_PROFILE.launch < min(OPAQUE, RUNTIME_CALL)


def test_of_two_kernels_that_memory_bounds_the_one_with_fewer_steps_is_cheaper() -> None:
    infos = (Input(f32(8)),) * 3
    fma = Kernel(infos, (Step(OPS["ewise_fma"], (0, 1, 2), (), f32(8)),), (3,))
    both = Kernel(
        infos,
        (Step(OPS["multiply"], (0, 1), (), f32(8)), Step(OPS["add"], (3, 2), (), f32(8))),
        (4,),
    )

    assert price(fma, FULL) < price(both, FULL)


def test_a_call_at_run_time_costs_its_call_and_what_is_known_of_its_work() -> None:
    costs = Costs(ROUND)

    found = (tensor(None, "float32", 1),)

    nothing = costs.operator("unique", {}, (tensor(None, "float32"),), found, None)
    something = costs.operator("unique", {}, (f32(100),), found, None)

    assert nothing == RUNTIME_CALL
    assert something == pytest.approx(RUNTIME_CALL + 100 * 100 / 10 / 0.05)


def test_sizes_of_what_is_not_known_are_not_made_up() -> None:
    costs = Costs(ROUND)

    assert costs.elements(tensor(None, "float32", 2)) is None
    assert costs.nbytes(tensor((3, 4), None)) is None
    assert costs.nbytes(tensor((3, 4), "int64")) == 96
    unknown = tensor(None, "float32", 2)
    assert costs.flops("add", {}, (f32(3),), unknown) is None
    assert costs.flops("matmul", {}, (unknown, f32(3, 3)), f32(3, 3)) is None
    assert costs.flops("reshape", {}, (f32(3),), unknown) == 0


IMAGE = {"groups": 1, "kernel_layout": "OIHW"}


@pytest.mark.parametrize(
    ("name", "attrs", "operands", "result", "flops"),
    [
        ("matmul", {}, [(3, 5, 7), (7, 2)], (3, 5, 2), 2 * 3 * 5 * 2 * 7),
        ("nn.conv2d", IMAGE, [(2, 6, 8, 8), (4, 6, 3, 5)], (2, 4, 6, 4), 192 * 2 * 6 * 3 * 5),
        ("nn.conv2d", IMAGE, [(2, 6, 8, 8), (6, 1, 3, 3)], (2, 6, 6, 6), 432 * 2 * 9),
        (
            "nn.conv2d_transpose",
            {"groups": 1, "kernel_layout": "IOHW"},
            [(1, 3, 4, 4), (3, 5, 2, 2)],
            (1, 5, 8, 8),
            2 * (3 * 4 * 4) * (5 * 2 * 2),
        ),
        ("nn.max_pool2d", {"pool_size": (3, 2)}, [(1, 4, 9, 8)], (1, 4, 3, 4), 48 * 6),
        ("einsum", {"subscripts": "bik,bkj->bij"}, [(2, 3, 4), (2, 4, 5)], (2, 3, 5), 2 * 120),
        ("einsum", {"subscripts": "ij->i"}, [(3, 4)], (3,), 12),
        (
            "nn.attention",
            {},
            [(2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 4)],
            (2, 5, 3, 4),
            2 * 3 * 5 * 7 * (2 * 8 + 2 * 4 + 30),
        ),
        ("nn.layer_norm", {}, [(4, 6), (6,), (6,)], (4, 6), 6 * 24),
        ("sum", {}, [(4, 6)], (4,), 24),
        ("strided_slice", {}, [(4, 6)], (2, 6), 0),
    ],
)
def test_work_follows_a_formula(
    name: str,
    attrs: dict[str, Attr],
    operands: list[tuple[int, ...]],
    result: tuple[int, ...],
    flops: int,
) -> None:
    infos = [f32(*shape) for shape in operands]

    assert Costs(ROUND).flops(name, attrs, infos, f32(*result)) == flops


def test_an_operator_with_loops_of_its_own_is_priced_like_a_kernel() -> None:
    norm = ((f32(10, 10), f32(10), f32(10)), (f32(10, 10),))
    schedule = Schedule("rows", 0.5, 0.5)

    seconds = Costs(ROUND).operator("nn.layer_norm", {}, *norm, schedule)

    assert seconds == pytest.approx(1.0 + (4 * 220 / 8) / 0.5 + (6 * 100 / 10 / 0.5) / 64)


def test_a_slice_reads_what_it_takes() -> None:
    bounds = (ShapeStructInfo((0,), 1), ShapeStructInfo((3,), 1))
    attrs = (("axes", (1,)), ("strides", None), ("assume_inbound", False))
    step = Step(OPS["strided_slice"], (0, *bounds), attrs, f32(10, 3))
    alone = Kernel((Input(f32(10, 50)),), (step,), (1,))

    whole, taken = Costs(ROUND), 2 * 4 * 30 / 8

    assert price(alone, FULL, ROUND) == pytest.approx(1.0 + taken)
    assert whole.operator(
        "strided_slice", dict(attrs), (f32(10, 50),), (f32(10, 3),), FULL
    ) == pytest.approx(1.0 + taken)

"""Operators that run by themselves have a schedule each, or are called at run time."""

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.struct_info import TensorStructInfo, tensor
from relax_egraph.lower.legalize import CHECKS, LEGALIZE
from relax_egraph.lower.library import Library
from relax_egraph.lower.library.operators import OPERATORS, WINDOWED
from relax_egraph.lower.library.products import CONVOLUTIONS

N = dims.symbol("n")


def f32(*shape: dims.Dim) -> TensorStructInfo:
    return tensor(shape, "float32")


def test_every_operator_with_loops_that_no_kernel_has_as_a_step_has_a_schedule() -> None:
    known = OPERATORS.keys() | WINDOWED
    alone = {name for name in LEGALIZE.keys() | CHECKS if not OPS[name].fusible}

    assert known == alone | CONVOLUTIONS
    assert not OPERATORS.keys() & WINDOWED


@pytest.mark.parametrize(
    ("data", "weight", "attrs", "anchor", "flops"),
    [
        ((1, 56, 56, 8), (8, 8, 1, 1), {}, "matmul", 0.85),
        ((1, 56, 56, 8), (8, 8, 1, 1), {"padding": (1, 1)}, "matmul", 0.85),
        ((1, 56, 56, 64), (64, 64, 1, 1), {"strides": (2, 2)}, "conv", 0.9),
        ((1, N, 112, 64), (64, 64, 3, 3), {"padding": (1, 1)}, "conv", 1.0),
        ((1, 56, 56, 64), (64, 64, 3, 3), {"strides": (2, 2)}, "conv", 0.9),
        ((1, 56, N, 3), (64, 3, 3, 3), {"padding": (1, 1)}, "conv", 0.45),
        ((1, 56, 56, 8), (8, 1, 3, 3), {"groups": 8, "padding": (1, 1)}, "conv", 0.3),
        ((1, 56, 56, 64), (64, 32, 3, 3), {"groups": 2, "padding": (1, 1)}, "conv", 0.85),
        ((1, 56, 56, 64), (64, 64, 5, 5), {}, "conv", 0.9),
    ],
)
def test_a_convolution_runs_as_its_window_and_its_channels_allow(
    data: tuple[dims.Dim, ...],
    weight: tuple[int, ...],
    attrs: dict[str, int | str | tuple[int, ...]],
    anchor: str,
    flops: float,
) -> None:
    op = OPS["nn.conv2d"]
    complete = complete_attrs(op, {**attrs, "data_layout": "NHWC"})
    operands = (f32(*data), f32(*weight))
    result = op.rule(*operands, **complete)
    assert isinstance(result, TensorStructInfo)

    schedule = Library().schedule_of_operator(op, complete, operands, (result,))

    assert schedule is not None
    assert (schedule.anchor, schedule.flops) == (anchor, flops)


@pytest.mark.parametrize(
    ("data", "out", "moves"), [("NHWC", "NHWC", 0), ("NHWC", "NCHW", 24), ("NCHW", "NHWC", 18)]
)
def test_a_convolution_pays_for_each_element_that_it_transposes(
    data: str, out: str, moves: int
) -> None:
    op, extents = OPS["nn.conv2d"], {"N": 1, "C": 32, "H": N, "W": 56}
    operands = (f32(*(extents[letter] for letter in data)), f32(64, 32, 1, 1))
    attrs = complete_attrs(op, {"data_layout": data, "out_layout": out})
    result = op.rule(*operands, **attrs)
    assert isinstance(result, TensorStructInfo)

    schedule = Library().schedule_of_operator(op, attrs, operands, (result,))

    assert schedule is not None
    assert schedule.flops == pytest.approx(64 / (64 / 0.85 + moves))


def test_a_pool_of_everything_is_a_reduction() -> None:
    op = OPS["nn.avg_pool2d"]
    everything, part = (complete_attrs(op, {"pool_size": (k, k)}) for k in (7, 3))

    found = [
        Library().schedule_of_operator(op, attrs, (f32(1, 8, 7, 7),), (f32(1, 8, n, n),))
        for attrs, n in ((everything, 1), (part, 5))
    ]

    assert [s and s.anchor for s in found] == ["rows", "pool"]


def test_what_is_not_known_is_called_at_run_time() -> None:
    library, unknown = Library(), tensor(None, "float32", 2)
    attrs = complete_attrs(OPS["nn.rms_norm"], {"axes": (1,)})

    assert (
        library.schedule_of_operator(OPS["nn.rms_norm"], attrs, (unknown, f32(4)), (unknown,))
        is None
    )
    assert library.schedule_of_operator(OPS["median"], {}, (f32(4),), (f32(4),)) is None
    assert library.schedule_of_operator(OPS["split"], {}, (f32(4),), ()) is None

"""Products in the loop over time: packed, by micro-kernels, and as the reference computes them."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.block_builder import BlockBuilder, call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Expr, Var, const
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import OPS
from relax_egraph.ir.ops.recurrence import DIRECTIONS
from relax_egraph.ir.struct_info import tensor
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.intrinsics.tile_sizes import strip
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import PrimFunc, TensorIntrinsic
from tests.support.widths import target_of

STATES = {"nn.lstm": 2, "nn.gru": 1}
GATES = {"nn.lstm": 4, "nn.gru": 3}


def operands_of(
    name: str, times: int, batch: int, size: int, direction: str, dtype: str = "float32"
) -> list[Any]:
    count, width = DIRECTIONS[direction], GATES[name] * size
    shapes = [(times, batch, count * width), (count, size, width)]
    shapes += [(count, batch, size)] * STATES[name]
    draws = (np.random.default_rng(k).uniform(-0.3, 0.3, s) for k, s in enumerate(shapes))
    return [x.astype(dtype) for x in draws]


def module_of(name: str, operands: list[Any], constant: bool, **attrs: Attr) -> IRModule:
    """The layer, of symbolic time and batch, with a constant recurrence or a parameter."""
    batch: Dim = dims.symbol("batch")
    x, recurrence, *states = operands
    dtype = x.dtype.name
    params = [Var("x", tensor((dims.symbol("time"), batch, x.shape[2]), dtype))]
    shapes = [(s.shape[0], batch, s.shape[2]) for s in states]
    params += [Var(f"s{k}", tensor(shape, dtype)) for k, shape in enumerate(shapes)]
    bb, parameter = BlockBuilder(), Var("r", tensor(recurrence.shape, dtype))
    weight: Expr = const(recurrence) if constant else parameter
    with bb.function("main", [*params, *([] if constant else [parameter])]):
        bb.emit_func_output(bb.emit(call(name, params[0], weight, *params[1:], **attrs)))
    return bb.get()


def run(
    module: IRModule,
    operands: list[Any],
    constant: bool,
    threads: int = 1,
    target: str = "native",
) -> Any:
    x, recurrence, *states = operands
    machine = VirtualMachine(build(module, target=target), num_threads=threads)
    return machine["main"](x, *states, *([] if constant else [recurrence]))


def assert_as_reference(name: str, operands: list[Any], results: Any, **attrs: Attr) -> None:
    for actual, expected in zip(results, apply_op(OPS[name], operands, attrs), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=2e-6, strict=True)


@pytest.mark.parametrize(
    ("name", "attrs"),
    [
        ("nn.lstm", {"direction": "forward"}),
        ("nn.lstm", {"direction": "bidirectional"}),
        ("nn.gru", {"direction": "reverse", "reset_after": True}),
        ("nn.gru", {"direction": "bidirectional", "reset_after": False}),
    ],
)
@pytest.mark.parametrize("constant", [True, False])
def test_layers_with_a_packed_recurrence_agree_with_the_reference(
    name: str, attrs: dict[str, Attr], constant: bool
) -> None:
    direction = str(attrs["direction"])
    module = module_of(name, operands_of(name, 1, 1, 40, direction), constant, **attrs)
    for number, (times, batch) in enumerate(((9, 1), (4, 7), (0, 2)), len(direction)):
        operands = operands_of(name, times, batch, 40, direction)

        results = run(module, operands, constant, threads=2, target=target_of(number))

        assert_as_reference(name, operands, results, **attrs)


def loops_of(module: IRModule, schedule: str) -> PrimFunc:
    functions = lower_module(module).functions.values()
    (loops,) = (
        f for f in functions if isinstance(f, PrimFunc) and f.attrs.get("schedule") == schedule
    )
    return loops


def test_a_constant_recurrence_is_packed_when_the_program_is_built() -> None:
    operands = operands_of("nn.lstm", 1, 1, 40, "bidirectional")

    loops = loops_of(module_of("nn.lstm", operands, True, direction="bidirectional"), "recurrence")

    width = strip(scheduled_machine())
    packed = (2, -(-160 // width), 40, width)
    assert [b.shape for b in loops.inputs if b.name.startswith("packed")] == [packed]
    assert not any(b.shape == (2, 40, 160) for b in loops.inputs)
    assert sum(isinstance(s, TensorIntrinsic) for s in statements(loops.body)) == 1


def test_a_recurrence_of_float64_multiplies_by_a_micro_kernel_of_its_own() -> None:
    operands = operands_of("nn.lstm", 6, 2, 5, "forward", "float64")
    module = module_of("nn.lstm", operands, True)

    loops = loops_of(module, "recurrence")

    used = {s.name for s in statements(loops.body) if isinstance(s, TensorIntrinsic)}
    assert used == {"gemm_tile_float64"}
    assert_as_reference("nn.lstm", operands, run(module, operands, True))

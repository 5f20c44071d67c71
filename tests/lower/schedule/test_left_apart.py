"""Rows of a left operand that share sets of the first-level cache are copied apart."""

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.legalize.linear_algebra import matmul
from relax_egraph.lower.schedule import schedule_with
from relax_egraph.lower.schedule.left_apart import FEWEST_COLUMNS
from relax_egraph.tir import te

WIDE = FEWEST_COLUMNS
ROWS = dims.symbol("rows")


def copied(
    rows: Dim, depth: Dim, columns: Dim = WIDE, target: str = "x86_64:x86-64-v3", right: int = 1
) -> list[tuple[Dim, ...]]:
    """The shapes of copies for ``x · w``, where the operand number `right` is constant."""
    x, w = te.placeholder((rows, depth), name="x"), te.placeholder((depth, columns), name="w")
    function = te.create_prim_func(x, w, matmul(x, w))
    with scheduling_for(processor(target)):
        scheduled = schedule_with(function, {right}).function
    return [b.shape for b in scheduled.allocs if b.name.startswith("left")]


def test_rows_a_power_of_two_apart_are_copied() -> None:
    assert copied(128, 1024) == [(128, 1040)]
    assert copied(ROWS, 4096) == [(ROWS, 4112)]


def test_rows_in_sets_of_their_own_are_not() -> None:
    assert copied(128, 960) == copied(128, 1040) == copied(128, 512) == []


@pytest.mark.parametrize(
    ("target", "depths"),
    [
        ("x86_64:x86-64-v3", [1024, 2048, 4096]),  # 6 rows, 8 ways of 4 KiB
        ("x86_64:icelake-server", []),  # 12 ways
        ("aarch64:neoverse-n1", [2048, 4096]),  # 5 rows, 4 ways of 16 KiB
    ],
)
def test_the_machine_decides(target: str, depths: list[int]) -> None:
    powers = [256, 512, 1024, 2048, 4096]
    assert [d for d in powers if copied(96, d, target=target)] == depths


def test_a_copy_has_to_pay() -> None:
    assert copied(5, 1024) == []  # less than a tile
    assert copied(128, 1024, WIDE - 1) == []
    assert copied(128, 1024, dims.symbol("columns")) == []
    assert copied(128, 1024, right=0) == []  # panels of columns: the rows are read well


@pytest.mark.parametrize("shape", [(7, 1024), (2, 3, 1024), (50, 1024)])
@pytest.mark.parametrize("target", ["native", "generic"])
def test_the_result_is_the_same(shape: tuple[int, ...], target: str) -> None:
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s, np.float32) for s in (shape, (1024, WIDE)))
    operand = ir.Var("x", ir.tensor((ROWS, *shape[1:]), "float32"))
    builder = ir.BlockBuilder()
    with builder.function("main", [operand]):
        with builder.dataflow():
            product = builder.emit(ir.call("matmul", operand, ir.const(w)))
            result = builder.emit_output(ir.call("nn.relu", product))
        builder.emit_func_output(result)

    main = rx.VirtualMachine(rx.build(rx.optimize(builder.get()), target=target))["main"]

    assert np.allclose(main(x), np.maximum(x @ w, 0), atol=1e-3)

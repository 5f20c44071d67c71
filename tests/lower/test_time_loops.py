"""Loops over time, written as tail recursion, become one kernel if that computes the same."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import VirtualMachine, build, parse
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.lower.time_loops import time_loops
from relax_egraph.tir.stmt import PrimFunc

LOOP = """
@I.ir_module
class Module:
    @R.function(private=True)
    def step(
        turn: R.Tensor((), "int64"), last: R.Tensor((), "int64"), go_on: R.Tensor((), "bool"),
        state: R.Tensor(("b", 40), "float32"), items: R.Object,
        x: R.Tensor(("t", "b", 40), "float32"), w: R.Tensor((40, 40), "float32"),
    ) -> R.Tuple(R.Tensor(("b", 40), "float32"), R.Object):
        cls = Module
        with R.dataflow():
            next_turn = R.add(turn, R.const(1, "int64"))
            now = R.take(x, {index}, axis=0)
            product = R.matmul(state, w)
            total = R.add(product, now)
            new = R.tanh(total)
            longer = R.call_pure_packed(
                "vm.builtin.sequence_append", items, {item}, sinfo_args=(R.Object,)
            )
            rest = cls.loop(next_turn, last, go_on, new, longer, x, w)
            R.output(rest)
        return rest

    @R.function(private=True)
    def loop(
        turn: R.Tensor((), "int64"), last: R.Tensor((), "int64"), go_on: R.Tensor((), "bool"),
        state: R.Tensor(("b", 40), "float32"), items: R.Object,
        x: R.Tensor(("t", "b", 40), "float32"), w: R.Tensor((40, 40), "float32"),
    ) -> R.Tuple(R.Tensor(("b", 40), "float32"), R.Object):
        cls = Module
        with R.dataflow():
            before = R.less(turn, last)
            more = R.logical_and(before, go_on)
            R.output(more)
        if more:
            result: R.Tuple(R.Tensor(("b", 40), "float32"), R.Object) = cls.step(
                turn, last, go_on, state, items, x, w
            )
        else:
            result: R.Tuple(R.Tensor(("b", 40), "float32"), R.Object) = (state, items)
        return result

    @R.function
    def main(
        x: R.Tensor(("t", "b", 40), "float32"), h: R.Tensor(("b", 40), "float32"),
        w: R.Tensor((40, 40), "float32"),
    ):
        t, b = T.int64(), T.int64()
        cls = Module
        with R.dataflow():
            times = R.shape_to_tensor(R.shape([{times}]))
            last = R.reshape(times, R.shape([]))
            both = cls.loop(
                R.const({start}, "int64"), last, R.const(True, "bool"), h, R.tuple(), x, w
            )
            state = both[0]
            items = both[1]
            every = R.call_pure_packed(
                "vm.builtin.sequence_stack", items, R.prim_value({axis}), R.shape([0, 40]),
                R.const(0.0, "float32"), sinfo_args=(R.Tensor(ndim=3, dtype="float32"),),
            )
            gv = (state, every)
            R.output(gv)
        return gv
"""
USUAL = {"index": "turn", "item": "new", "times": "t", "start": "0", "axis": "0"}


def module(**parts: str) -> rx.IRModule:
    text = LOOP
    for name, part in (USUAL | parts).items():
        text = text.replace("{" + name + "}", part)
    return parse(text)


def drawn(times: int, batch: int) -> list[Any]:
    rng = np.random.default_rng(0)
    shapes = [(times, batch, 40), (batch, 40), (40, 40)]
    return [rng.uniform(-0.3, 0.3, s).astype(np.float32) for s in shapes]


def by_turns(x: Any, state: Any, w: Any) -> tuple[Any, Any]:
    items: list[Any] = []
    for now in x:
        state = np.tanh(state @ w + now)
        items.append(state)
    return state, np.stack(items)


def kernels(lowered: rx.IRModule) -> dict[str, str]:
    """The loop functions of loops, and their schedules."""
    return {
        name: str(f.attrs.get("schedule"))
        for name, f in lowered.functions.items()
        if isinstance(f, PrimFunc) and name.endswith("_turns")
    }


@pytest.mark.parametrize("optimize", [False, True])
def test_a_loop_over_time_is_one_kernel_that_computes_what_the_recursion_does(
    optimize: bool,
) -> None:
    recursion = module()
    program = rx.optimize(recursion) if optimize else recursion
    machine = VirtualMachine(build(program))

    assert kernels(lower_module(program)) == {"loop_turns": "recurrence"}
    assert {n for n, _ in lower_module(program).relax_functions()} == {"main"}
    for times, batch in ((7, 3), (4, 1), (1, 2)):
        inputs = drawn(times, batch)
        expected = by_turns(*inputs)
        for actual, wanted in zip(machine["main"](*inputs), expected, strict=True):
            np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-6)


def test_what_is_not_the_whole_of_a_tensor_in_order_stays_a_recursion() -> None:
    for parts in (
        {"start": "1"},  # a turn is left out
        {"axis": "1"},  # items are stacked along another axis
        {"times": "5"},  # the tensor has another number of parts
        {"index": "last"},  # each turn reads the same part
    ):
        stays = module(**parts)

        assert time_loops(stays) is stays


def test_items_may_be_another_value_of_the_turn() -> None:
    recursion = module(item="now")
    inputs = drawn(5, 2)

    _, every = VirtualMachine(build(recursion))["main"](*inputs)

    assert kernels(lower_module(recursion)) == {"loop_turns": "recurrence"}
    np.testing.assert_array_equal(every, inputs[0])

"""Breakpoints, steps and traces."""

import io
import operator
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.vm import Debugger, ExecBuilder, VirtualMachine
from relax_egraph.vm.debugger import Pause
from relax_egraph.vm.stack import Place


def squares() -> VirtualMachine:
    """``main(n)``: one more than the sum of ``square(i)`` for `i` from `n` down to 1."""
    ib = ExecBuilder()
    with ib.function("square", 1, ["i"], private=True):
        ib.emit_call("mul", [ib.r(0), ib.r(0)], dst=ib.r(1), origin="s (model.py:3:9)")
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1, ["n"]):
        again, end = ib.label(), ib.label()
        ib.emit_call("vm.builtin.copy", [1], dst=ib.r(1), origin="sum")
        ib.place(again)
        ib.emit_if(ib.r(0), end)
        ib.emit_call("square", [ib.r(0)], dst=ib.r(2), origin="squared")
        ib.emit_call("add", [ib.r(1), ib.r(2)], dst=ib.r(1), origin="sum")
        ib.emit_call("add", [ib.r(0), -1], dst=ib.r(0), origin="n")
        ib.emit_goto(again)
        ib.place(end)
        ib.emit_ret(ib.r(1))
    return VirtualMachine(ib.get(), {"mul": operator.mul, "add": operator.add})


def places(pauses: list[Pause]) -> list[tuple[str, int]]:
    return [(p.function, p.at) for p in pauses]


def test_a_breakpoint_shows_where_it_is_and_what_registers_hold() -> None:
    debugger = Debugger(squares())
    seen: list[Pause] = []
    debugger.breakpoint("main", 3, seen.append)

    result = debugger["main"](2)

    assert result == 6
    assert places(seen) == [("main", 3), ("main", 3)]
    first, second = seen
    assert (first.text, first.origin, first.depth) == (
        "call  add  in: %1, %2  dst: %1",
        "sum",
        0,
    )
    assert (first.registers, second.registers) == ({0: 2, 1: 1, 2: 4}, {0: 1, 1: 5, 2: 1})
    assert second.values == {"n": 1, "sum": 5, "squared": 1}


def test_a_breakpoint_at_a_value_is_before_each_instruction_that_computes_it() -> None:
    debugger = Debugger(squares())
    seen: list[Pause] = []
    debugger.breakpoint("main", origin="sum", hook=seen.append)
    debugger.breakpoint("square", origin="s", hook=seen.append)

    debugger["main"](1)

    assert places(seen) == [("main", 0), ("square", 0), ("main", 3)]
    assert (seen[1].origin, seen[1].depth) == ("s (model.py:3:9)", 1)


def test_the_stack_of_a_pause_has_the_callers() -> None:
    debugger = Debugger(squares())
    seen: list[Pause] = []
    debugger.breakpoint("square", 0, seen.append)

    debugger["main"](1)

    assert list(map(str, seen[0].stack)) == [
        "main, instruction 2: call  square  in: %0  dst: %2  # squared",
        "square, instruction 0: call  mul  in: %0, %0  dst: %1  # s (model.py:3:9)",
    ]
    assert all(isinstance(place, Place) for place in seen[0].stack)


def test_each_step_is_seen_in_the_order_of_execution() -> None:
    debugger = Debugger(squares())
    seen: list[Pause] = []
    debugger.step(seen.append)

    debugger["main"](1)

    main = [("main", at) for at in (0, 1, 2, 3, 4, 5, 1, 6)]
    assert places(seen) == [*main[:3], ("square", 0), ("square", 1), *main[3:]]


def test_what_a_pause_says_stays_true_of_its_moment() -> None:
    debugger = Debugger(squares())
    seen: list[Pause] = []
    debugger.step(seen.append)

    debugger["main"](2)

    sums = [p.values["sum"] for p in seen if p.at == 1 and p.function == "main"]
    assert sums == [1, 5, 6]


def test_several_hooks_at_one_instruction_are_all_called_and_may_be_forgotten() -> None:
    debugger = Debugger(squares())
    seen: list[str] = []
    debugger.breakpoint("main", 0, lambda _: seen.append("first"))
    debugger.breakpoint("main", 0, lambda _: seen.append("second"))

    debugger["main"](0)
    debugger.clear()
    result = debugger["main"](1)

    assert sorted(seen) == ["first", "second"]
    assert result == 2


class Stop(Exception):
    """What a hook raises to end the call."""


def test_a_hook_ends_the_call_by_an_exception() -> None:
    def stop(pause: Pause) -> None:
        if pause.values["n"] == 1:
            raise Stop

    debugger = Debugger(squares())
    debugger.breakpoint("main", origin="squared", hook=stop)

    with pytest.raises(Stop) as error:
        debugger["main"](3)

    assert error.value.__notes__ == [
        "virtual machine stack, innermost last:\n"
        "  main, instruction 2: call  square  in: %0  dst: %2  # squared"
    ]
    debugger.clear()
    assert debugger["main"](3) == 15


def test_the_machine_itself_does_not_stop() -> None:
    vm = squares()
    debugger = Debugger(vm)
    seen: list[Pause] = []
    debugger.step(seen.append)

    results = vm["main"](3), debugger["square"](4)

    assert results == (15, 16)
    assert places(seen) == [("square", 0), ("square", 1)]


def test_places_that_are_not_there_are_refused() -> None:
    debugger = Debugger(squares())

    with pytest.raises(KeyError, match="no function 'nope' in the executable; there are: square"):
        debugger.breakpoint("nope", 0)
    with pytest.raises(ValueError, match=r"^function 'main' has instructions 0\.\.6, got 7$"):
        debugger.breakpoint("main", 7)
    with pytest.raises(ValueError, match=r"^function 'main' has instructions 0\.\.6, got -1$"):
        debugger.breakpoint("main", -1)
    with pytest.raises(ValueError, match=r"'main' computes 't'; there are: sum, squared, n$"):
        debugger.breakpoint("main", origin="t")
    with pytest.raises(ValueError, match=r"^a breakpoint needs either an instruction"):
        debugger.breakpoint("main")
    assert debugger["main"](1) == 2


def test_a_value_that_has_another_name_on_another_path_has_none() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ["c"]):
        end = ib.label()
        ib.emit_call("vm.builtin.copy", [1], dst=ib.r(1), origin="a")
        ib.emit_call("vm.builtin.copy", [2], dst=ib.r(2), origin="b")
        ib.emit_if(ib.r(0), end)
        ib.emit_call("vm.builtin.copy", [3], dst=ib.r(1), origin="other")
        ib.emit_call("vm.builtin.copy", [4], dst=ib.r(3), origin="only here")
        ib.place(end)
        ib.emit_call("vm.builtin.make_tuple", [ib.r(1), ib.r(2)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
    debugger = Debugger(VirtualMachine(ib.get()))
    seen: list[Pause] = []
    debugger.breakpoint("main", 5, seen.append)

    debugger["main"](True)

    assert seen[0].registers == {0: True, 1: 3, 2: 2}
    assert seen[0].values == {"c": True, "b": 2}


def test_what_is_killed_is_not_held() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1, ["x"]):
        ib.emit_call("vm.builtin.copy", [ib.r(0)], dst=ib.r(1), origin="y")
        ib.emit_call("vm.builtin.kill", [ib.r(1)], dst=ib.r(1))
        ib.emit_ret(ib.r(0))
    debugger, stream = Debugger(VirtualMachine(ib.get())), io.StringIO()
    seen: list[Pause] = []
    debugger.step(seen.append)
    debugger.trace(stream)

    debugger["main"](7)

    assert [p.values for p in seen] == [{"x": 7}, {"x": 7, "y": 7}, {"x": 7}]
    assert stream.getvalue() == (
        "main, instruction 0: call  vm.builtin.copy  in: %0  dst: %1  # y\n"
        "    %1 y = 7\n"
        "main, instruction 1: call  vm.builtin.kill  in: %1  dst: %1\n"
        "main, instruction 2: ret   %0\n"
    )


# --- programs that were compiled ------------------------------------------------------

MODEL = """
@I.ir_module
class M:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            lv0 = R.matmul(x, w)
            lv1 = R.exp(lv0)
            gv = R.add(lv1, x)
            R.output(gv)
        return gv
"""


def compiled() -> Debugger:
    return Debugger(VirtualMachine(rx.build(rx.parse(MODEL))))


def test_a_kernel_is_found_by_the_name_of_its_result() -> None:
    debugger = compiled()
    seen: dict[str, Any] = {}

    def look(pause: Pause) -> None:
        seen.update({name: value.copy() for name, value in pause.values.items() if name == "lv1"})

    debugger.breakpoint("main", origin="gv", hook=look)
    x, w = np.ones((2, 4), np.float32), np.eye(4, dtype=np.float32)

    result = debugger["main"](x, w)

    np.testing.assert_allclose(seen["lv1"], np.exp(x), rtol=1e-6)
    np.testing.assert_allclose(result, np.exp(x) + x, rtol=1e-6)


def test_without_a_hook_a_pause_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    debugger = Debugger(squares())
    debugger.breakpoint("main", origin="squared")

    debugger["main"](1)

    assert capsys.readouterr().out == (
        "main, instruction 2: call  square  in: %0  dst: %2  # squared\n  %0 n = 1\n  %1 sum = 1\n"
    )


def test_a_trace_has_every_instruction_and_what_it_computed() -> None:
    debugger, stream = Debugger(squares()), io.StringIO()
    debugger.trace(stream)

    debugger["main"](1)

    assert stream.getvalue() == (
        "main, instruction 0: call  vm.builtin.copy  in: i1  dst: %1  # sum\n"
        "    %1 sum = 1\n"
        "main, instruction 1: if    %0  else: 6\n"
        "main, instruction 2: call  square  in: %0  dst: %2  # squared\n"
        "  square, instruction 0: call  mul  in: %0, %0  dst: %1  # s (model.py:3:9)\n"
        "      %1 s = 1\n"
        "  square, instruction 1: ret   %1\n"
        "    %2 squared = 1\n"
        "main, instruction 3: call  add  in: %1, %2  dst: %1  # sum\n"
        "    %1 sum = 2\n"
        "main, instruction 4: call  add  in: %0, i-1  dst: %0  # n\n"
        "    %0 n = 0\n"
        "main, instruction 5: goto  1\n"
        "main, instruction 1: if    %0  else: 6\n"
        "main, instruction 6: ret   %1\n"
    )


def test_a_trace_describes_what_kernels_write() -> None:
    debugger, stream = compiled(), io.StringIO()
    debugger.trace(stream)

    debugger["main"](np.ones((2, 4), np.float32), np.eye(4, dtype=np.float32))

    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert [line for line in lines if line.startswith(("lv", "gv"))] == [
        f'{name} = R.Tensor((2, 4), "float32")' for name in ("lv0", "lv1", "gv")
    ]

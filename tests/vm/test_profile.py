"""Where the time of a call goes: calls, their sums, what they moved and computed, as a trace."""

import json
import operator
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relax_egraph import build, parse
from relax_egraph.errors import RunError
from relax_egraph.extract import REFERENCE_PROFILE
from relax_egraph.vm import ExecBuilder, Executable, VirtualMachine
from relax_egraph.vm.call_report import CallReport, Span, TimedCall
from relax_egraph.vm.machine import Engine
from tests.support.native import MODULE, W, machines, with_kernels, x_of


def adding() -> Executable:
    """``main(x, y, n)``: ``y = x + x`` by a function of its own, then ``see(y)``."""
    ib = ExecBuilder()
    with ib.function("inner", 3, private=True):
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(1), ib.r(2)])
        ib.emit_ret(ib.r(1))
    with ib.function("main", 3, ["x", "y", "n"]):
        ib.emit_call("inner", [ib.r(0), ib.r(1), ib.r(2)], dst=ib.r(3))
        ib.emit_call("see", [ib.r(3)], dst=ib.r(4))
        ib.emit_call("vm.builtin.copy", [ib.r(4)], dst=ib.r(4))
        ib.emit_ret(ib.r(4))
    return replace(with_kernels(ib), work={"add": "@0"})


def floats(count: int) -> Any:
    return np.arange(count, dtype=np.float32)


def both(x: Any) -> Any:
    return x, x.astype(np.float64)


def profiled(repeat: int = 1, **options: Any) -> CallReport:
    vm = VirtualMachine(adding(), {"see": both})
    return vm.profile("main", floats(6), floats(6), n=6, repeat=repeat, **options)


@pytest.mark.parametrize("repeat", [1, 3])
def test_each_call_is_a_row(repeat: int) -> None:
    report = profiled(repeat)

    rows = [(c.kind, c.name, c.function, c.instruction) for c in report.calls]
    moved = [(c.arrays, c.dtype, c.nbytes, c.operations) for c in report.calls]
    assert (report.function, report.repeat) == ("main", repeat)
    assert rows == [
        ("kernel", "add", "inner", 0),
        ("packed", "see", "main", 1),
        ("builtin", "vm.builtin.copy", "main", 2),
    ]
    assert moved == [
        (("float32[6]", "float32[6]", "float32[6]"), "float32", 48, 6),
        (("float32[6]", "float32[6]", "float64[6]"), "float64", 72, None),
        (("float32[6]", "float64[6]", "float32[6]", "float64[6]"), "float64", 0, None),
    ]


@pytest.mark.parametrize("repeat", [1, 5])
def test_times_are_those_of_one_run(repeat: int) -> None:
    report = profiled(repeat)

    begins = [0.0, *(t for c in report.calls for t in (c.begin, c.end)), report.seconds]
    assert begins == sorted(begins)
    assert all(0 < c.seconds <= c.end - c.begin for c in report.calls)
    assert 0 < report.outside < report.seconds
    assert report.outside + sum(c.end - c.begin for c in report.calls) == pytest.approx(
        report.seconds
    )


def test_functions_are_around_what_they_call() -> None:
    report = profiled()

    inner, main = report.spans
    add, see, _ = report.calls
    assert (inner.name, main.name) == ("inner", "main")
    assert main.begin < inner.begin < add.begin < add.end < inner.end < see.begin < main.end


def test_a_machine_says_how_fast_a_call_could_be() -> None:
    class Machine:
        def seconds(self, operations: float, nbytes: float, dtype: str) -> float:
            assert (operations, nbytes, dtype) == (6, 48, "float32")
            return 1e-12

    report = profiled(machine=Machine())

    shares = [c.share for c in report.calls]
    assert shares == [pytest.approx(1e-12 / report.calls[0].seconds), None, None]


def test_the_profile_of_a_machine_is_a_roofline() -> None:
    seconds = REFERENCE_PROFILE.seconds

    by_arithmetic, by_memory = seconds(240e9, 1, "float32"), seconds(1, 100e9 * 1e-6, "float32")

    assert by_arithmetic == pytest.approx(1)
    assert by_memory == pytest.approx(1e-6)
    assert seconds(0, 0, "no dtype") == 0


def test_work_that_does_not_fit_its_kernel_is_not_known() -> None:
    exe = replace(adding(), work={"add": "@3 * 2"})
    vm = VirtualMachine(exe, {"see": str})

    report = vm.profile("main", floats(6), floats(6), 6)

    assert report.calls[0].operations is None


# --- what is written in place -----------------------------------------------------------


@pytest.mark.parametrize("repeat", [1, 4])
def test_what_is_written_in_place_is_written_once(repeat: int) -> None:
    ib = ExecBuilder()
    with ib.function("main", 2):
        ib.emit_call("double", [ib.r(0), ib.r(1)])
        ib.emit_ret(ib.r(0))
    x, expected = floats(5), 2 * floats(5)

    VirtualMachine(with_kernels(ib)).profile("main", x, 5, repeat=repeat)

    np.testing.assert_array_equal(x, expected)


def test_an_array_that_is_read_and_written_moves_twice() -> None:
    ib = ExecBuilder()
    with ib.function("main", 2):
        ib.emit_call("add", [ib.r(0), ib.r(0), ib.r(0), ib.r(1)])
        ib.emit_ret(ib.r(0))

    report = VirtualMachine(with_kernels(ib)).profile("main", floats(5), 5)

    assert [c.nbytes for c in report.calls] == [2 * 5 * 4]


def test_an_array_that_is_given_twice_is_the_same_array_in_each_run() -> None:
    same: list[bool] = []
    ib = ExecBuilder()
    with ib.function("main", 2):
        ib.emit_call("see", [ib.r(0), ib.r(1)], dst=ib.r(2))
        ib.emit_ret(ib.r(2))

    def see(pair: Any, y: Any) -> None:
        same.append(pair[0] is y)

    vm = VirtualMachine(ib.get(), {"see": see})
    x = floats(3)

    vm.profile("main", (x, 1), x, repeat=3)

    assert same == [True] * 3


def test_runs_that_take_another_way_do_not_count() -> None:
    turns = iter([True, False, True, False])
    ib = ExecBuilder()
    with ib.function("main"):
        other = ib.label()
        ib.emit_call("turn", dst=ib.r(0))
        ib.emit_if(ib.r(0), other)
        ib.emit_call("wait", [1])
        ib.place(other)
        ib.emit_ret(ib.imm(0))

    def wait(milliseconds: int) -> None:
        time.sleep(milliseconds / 1000)

    vm = VirtualMachine(ib.get(), {"turn": lambda: next(turns), "wait": wait})

    report = vm.profile("main", repeat=4)

    assert [c.name for c in report.calls] == ["turn"]


# --- calls within calls -----------------------------------------------------------------


def test_calls_within_a_packed_function_are_within_its_time() -> None:
    ib = ExecBuilder()
    with ib.function("inner", 1, private=True):
        ib.emit_call("work", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    with ib.function("main", 1):
        ib.emit_call("apply", [ib.f("inner"), ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))
    vm = VirtualMachine(ib.get(), {"apply": operator.call, "work": abs})

    report = vm.profile("main", -3)

    outer, inside = report.calls
    assert (outer.name, inside.name) == ("apply", "work")
    assert outer.begin < inside.begin < inside.end < outer.end
    assert report.outside == pytest.approx(report.seconds - (outer.end - outer.begin))
    assert [s.name for s in report.spans] == ["inner", "main"]


def test_recursion_nests_and_tail_calls_follow_each_other() -> None:
    ib = ExecBuilder()
    for name, tail in (("nest", False), ("follow", True)):
        with ib.function(name, 1):
            end = ib.label()
            ib.emit_if(ib.r(0), end)
            ib.emit_call("minus", [ib.r(0), 1], dst=ib.r(1))
            ib.emit_call(name, [ib.r(1)], dst=ib.r(1))
            if not tail:
                ib.emit_call("minus", [ib.r(1), 1], dst=ib.r(1))
            ib.emit_ret(ib.r(1))
            ib.place(end)
            ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get(), {"minus": operator.sub})

    nested, following = (vm.profile(name, 3).spans for name in ("nest", "follow"))

    assert len(nested) == len(following) == 4
    for inner, outer in pairwise(nested):
        assert outer.begin < inner.begin < inner.end <= outer.end
    for first, second in pairwise(following):
        assert first.end <= second.begin


def test_a_loop_to_the_first_instruction_is_one_call() -> None:
    turns = iter([True, True, False])
    ib = ExecBuilder()
    with ib.function("main"):
        again, end = ib.label(), ib.label()
        ib.place(again)
        ib.emit_call("turn", dst=ib.r(0))
        ib.emit_if(ib.r(0), end)
        ib.emit_goto(again)
        ib.place(end)
        ib.emit_ret(ib.r(0))
    vm = VirtualMachine(ib.get(), {"turn": lambda: next(turns)})

    report = vm.profile("main")

    assert [s.name for s in report.spans] == ["main"]
    assert len(report.calls) == 3


def test_an_exception_arrives_and_the_machine_stays_usable() -> None:
    vm = VirtualMachine(build(parse(MODULE)))

    with pytest.raises(RunError, match="dimension 0 is 3, needs 4"):
        vm.profile("main", x_of(1), W[:3])

    assert vm.profile("main", x_of(1), W).calls


@pytest.mark.parametrize("engine", ["interpreter", "auto"])
def test_both_engines_profile_the_same_calls(engine: Engine) -> None:
    vm = machines(build(parse(MODULE)))[engine]

    report = vm.profile("main", x_of(2), w=W)

    kernels = [(c.name, c.nbytes, c.operations) for c in report.calls if c.kind == "kernel"]
    assert [(name, operations) for name, _, operations in kernels] == [
        ("add", 8),
        ("multiply", 8),
        ("negative", 8),
    ]


# --- what is said -----------------------------------------------------------------------


def call(name: str, begin: float, end: float, **known: Any) -> TimedCall:
    fields: dict[str, Any] = {
        "kind": "kernel",
        "function": "main",
        "instruction": 3,
        "origin": "y",
        "arrays": ("float32[4, 1000]",),
        "dtype": "float32",
        "nbytes": 16_000,
        "operations": 4000,
    }
    times = {"begin": begin, "end": end, "seconds": end - begin}
    fields |= times | known
    return TimedCall(name=name, **fields)


MIXED = ("float32[]", "float32[4]", "int64[2, 3, 4]")


@pytest.fixture
def report() -> CallReport:
    calls = (
        call("vm.builtin.alloc_storage", 1e-6, 2e-6, kind="builtin", nbytes=0, operations=None),
        call("exp", 2e-6, 4e-6, share=0.25, seconds=1.6e-6, price=1.25e-6),
        call("exp", 5e-6, 9e-6, origin="z", share=0.125),
        call("user.see", 9e-6, 9.5e-6, kind="packed", origin="", operations=None, arrays=MIXED),
    )
    return CallReport("main", 3, 10e-6, calls, (Span("main", 0.5e-6, 9.75e-6),))


def test_a_report_prints_as_a_table(report: CallReport) -> None:
    assert str(report) == TABLE


TABLE = """\
main: 10 µs, the least of 3, interpreted

      value   calls           arrays                       time   of all     price   GB/s   GFLOP/s   roofline
 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────
  0   y       exp             float32 4×1000             1.6 µs    16.0%   1.25 µs     10       2.5      25.0%
  1   z       exp             float32 4×1000               4 µs    40.0%                4         1      12.5%
  2           user.see        float32 () 4 int64 2×3×4   500 ns     5.0%               32

      2 ×     exp                                        5.6 µs    56.0%

      1 ×     builtins                                     1 µs    10.0%
              between calls                              2.5 µs    25.0%"""  # noqa: E501 (as wide as it prints)


def test_a_report_as_plain_data(report: CallReport) -> None:
    data = json.loads(json.dumps(report.as_dict()))

    assert data["calls"][1] == {
        "kind": "kernel",
        "name": "exp",
        "function": "main",
        "instruction": 3,
        "origin": "y",
        "begin": 2e-6,
        "end": 4e-6,
        "seconds": 1.6e-6,
        "arrays": ["float32[4, 1000]"],
        "dtype": "float32",
        "nbytes": 16_000,
        "operations": 4000,
        "share": 0.25,
        "price": 1.25e-6,
        "bandwidth": pytest.approx(1e10),
        "rate": pytest.approx(2.5e9),
    }
    assert data["sums"][0] == {
        "kind": "kernel",
        "name": "exp",
        "count": 2,
        "seconds": pytest.approx(5.6e-6),
        "nbytes": 32_000,
        "operations": 8000,
    }
    assert [s["name"] for s in data["sums"]] == ["exp", "vm.builtin.alloc_storage", "user.see"]
    assert data["outside"] == pytest.approx(2.5e-6)
    assert (data["function"], data["repeat"], data["seconds"]) == ("main", 3, 10e-6)


def test_a_report_as_a_chrome_trace(report: CallReport, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"

    report.save_trace(path)

    trace = json.loads(path.read_text("utf-8"))
    process, main, storage, exp, *others = trace["traceEvents"]
    assert trace == report.chrome_trace()
    assert [*tmp_path.iterdir()] == [path]
    assert process["ph"] == "M"
    assert main == {
        "name": "main",
        "cat": "function",
        "ph": "X",
        "ts": 0.5,
        "dur": 9.25,
        "pid": 1,
        "tid": 1,
        "args": {},
    }
    assert storage["cat"] == "builtin"
    assert exp == {
        "name": "exp",
        "cat": "kernel",
        "ph": "X",
        "ts": 2.0,
        "dur": 2.0,
        "pid": 1,
        "tid": 1,
        "args": {
            "value": "y",
            "at": "main, instruction 3",
            "arrays": ["float32[4, 1000]"],
            "bytes": 16_000,
            "operations": 4000,
        },
    }
    assert [e["name"] for e in others] == ["exp", "user.see"]


def test_a_trace_that_cannot_be_written_leaves_the_old_one(
    report: CallReport, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_text("old")
    bad = replace(report, calls=(call("exp", 0, 1, arrays=(object(),)),))

    with pytest.raises(TypeError):
        bad.save_trace(path)

    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("trace.json", "old")]

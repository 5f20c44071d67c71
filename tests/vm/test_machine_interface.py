"""The digit classifier in the hands of a user: every way to call it, time it and watch it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from examples.digits.model import Digits, build_model
from relax_egraph.errors import RunError
from relax_egraph.vm import Executable
from relax_egraph.vm.instrument import CallEvent, Skip
from relax_egraph.vm.machine import Engine

DIGITS = Digits.load()
X = np.ascontiguousarray(DIGITS.images[:3])
ROWS, INPUTS, HIDDEN, CLASSES = 3, 64, 128, 10


@pytest.fixture(scope="module")
def executable() -> Executable:
    return rx.build(rx.optimize(build_model(DIGITS.weights)))


@pytest.fixture(params=["auto", "interpreter"])
def vm(executable: Executable, request: pytest.FixtureRequest) -> rx.VirtualMachine:
    engine: Engine = request.param
    return rx.VirtualMachine(executable, engine=engine, num_threads=1)


def is_right(logits: Any, x: Any = X) -> None:
    np.testing.assert_allclose(logits, DIGITS.logits(x), rtol=1e-4, atol=1e-4)


class Foreign:
    """An array of another library."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


@pytest.mark.parametrize("given", [X, np.asfortranarray(X), X[::-1][::-1], Foreign(X)])
def test_arrays_of_any_layout_and_library(vm: rx.VirtualMachine, given: Any) -> None:
    is_right(vm["main"](given))
    is_right(vm["main"](x=given))


def test_a_call_in_steps(vm: rx.VirtualMachine) -> None:
    vm.set_input("main", X)
    vm.invoke_stateful("main")
    first = vm.get_outputs("main")
    vm.set_input("main", x=X[:1])
    vm.invoke_stateful("main")

    is_right(first)
    is_right(vm.get_outputs("main"), X[:1])


def test_a_call_in_steps_wants_its_steps(vm: rx.VirtualMachine) -> None:
    with pytest.raises(RunError) as no_input:
        vm.invoke_stateful("main")
    vm.set_input("main", X)
    with pytest.raises(RunError) as no_output:
        vm.get_outputs("main")

    assert str(no_input.value) == (
        "function 'main' has no arguments yet in this thread: use set_input"
    )
    assert str(no_output.value) == (
        "function 'main' has no result yet in this thread: use invoke_stateful"
    )


def test_a_function_with_its_arguments(vm: rx.VirtualMachine) -> None:
    vm.save_function("main", "classify three", X)

    is_right(vm["classify three"]())
    assert "classify three" in vm


def test_a_function_is_timed(vm: rx.VirtualMachine) -> None:
    timing = vm.time_evaluator("main", number=3, repeat=5)(X)

    assert len(timing.results) == 5
    assert 0 < timing.min <= timing.median <= timing.max < 1
    assert str(timing).endswith("(5 × 3 calls)")


def test_a_profile_counts_what_was_done(vm: rx.VirtualMachine, tmp_path: Path) -> None:
    report = vm.profile("main", X, repeat=3)

    first, second = (c for c in report.calls if c.kind == "kernel")
    assert (first.name, second.name) == ("fused_matmul_add_relu", "fused_matmul_add")
    assert first.operations is not None
    assert second.operations is not None
    assert first.operations >= ROWS * HIDDEN * 2 * INPUTS
    assert second.operations >= ROWS * CLASSES * 2 * HIDDEN
    assert first.arrays[0] == f"float32[{ROWS}, {INPUTS}]"
    assert first.arrays[-1] == f"float32[{ROWS}, {HIDDEN}]"
    assert 0 < first.seconds + second.seconds <= report.seconds

    report.save_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    names = {event["name"] for event in trace["traceEvents"] if event["ph"] == "X"}
    assert {"main", "fused_matmul_add_relu", "fused_matmul_add"} <= names
    json.dumps(report.as_dict())


def test_an_instrument_sees_kernels_and_may_skip_them(vm: rx.VirtualMachine) -> None:
    seen: list[tuple[str, str]] = []

    def watch(event: CallEvent) -> Skip | None:
        if event.name.startswith("fused"):
            seen.append((event.when, event.name))
        return None

    vm.set_instrument(watch)
    is_right(vm["main"](X))
    vm.set_instrument(None)
    is_right(vm["main"](X))

    first, second = "fused_matmul_add_relu", "fused_matmul_add"
    assert seen == [("before", first), ("after", first), ("before", second), ("after", second)]


def test_weights_cannot_be_written(executable: Executable) -> None:
    arrays = [c for c in executable.constants if isinstance(c, np.ndarray)]

    assert arrays
    assert not any(a.flags.writeable for a in arrays)


def test_results_are_the_callers_own(vm: rx.VirtualMachine) -> None:
    first = vm["main"](X)
    kept = first.copy()
    second = vm["main"](X + 1)

    assert first.flags.writeable
    assert not np.shares_memory(first, second)
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(X, DIGITS.images[:3])

"""Profiles a function: runs it several times in an interpreter and times its calls."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from relax_egraph.vm.call_report import CallReport, Roofline, TimedCall
from relax_egraph.vm.decoding import Around
from relax_egraph.vm.executable import Executable
from relax_egraph.vm.interpreter import Interpreter
from relax_egraph.vm.recorder import Recorder


def profile(
    interpreting: Callable[[Around], Interpreter],
    function: str,
    arguments: Sequence[Any],
    executable: Executable,
    repeat: int,
    machine: Roofline | None,
) -> CallReport:
    """See `VirtualMachine.profile`; `interpreting` creates an interpreter that records calls.

    Only runs with the same sequence of calls as the shortest run count.
    """
    recorder = Recorder(executable)
    interpreter = interpreting(recorder.around)
    for program in interpreter.programs.values():
        recorder.follow(program)
    run = partial(interpreter.run, interpreter.programs[function])
    runs: list[CallReport] = []
    for left in reversed(range(repeat)):
        run_arguments = _copied(arguments, {}) if left else arguments
        seconds, calls, spans = recorder.record(partial(run, run_arguments))
        runs.append(CallReport(function, repeat, seconds, calls, spans))
    best = min(runs, key=lambda r: r.seconds)
    alike = [r.calls for r in runs if [*map(_site, r.calls)] == [*map(_site, best.calls)]]
    calls = tuple(_fastest(best.calls[k], [c[k] for c in alike], machine) for k in _numbers(best))
    return replace(best, calls=calls)


def _numbers(report: CallReport) -> range:
    return range(len(report.calls))


def _site(call: TimedCall) -> tuple[str, int]:
    return call.function, call.instruction


def _fastest(call: TimedCall, same: Sequence[TimedCall], machine: Roofline | None) -> TimedCall:
    """`call`, with the least time of the same call in all runs."""
    seconds = min(c.seconds for c in same)
    share = None
    if machine is not None and call.operations is not None and seconds:
        share = machine.seconds(call.operations, call.nbytes, call.dtype) / seconds
    return replace(call, seconds=seconds, share=share)


def _copied(value: Any, copies: dict[int, Any]) -> Any:
    """`value` with copies of the writable arrays, one copy for each array."""
    if isinstance(value, tuple):
        return tuple(_copied(v, copies) for v in value)
    if not isinstance(value, np.ndarray) or not value.flags.writeable:
        return value
    return copies.setdefault(id(value), value.copy())

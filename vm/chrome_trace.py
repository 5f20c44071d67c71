"""Export of profiles as Chrome traces: JSON for Perfetto and ``chrome://tracing``."""

from collections.abc import Sequence
from typing import Any, Protocol


class Report(Protocol):
    """A `CallReport`, as far as traces use it."""

    @property
    def spans(self) -> Sequence[Any]:
        """Calls of functions."""
        ...

    @property
    def calls(self) -> Sequence[Any]:
        """Calls of packed functions."""
        ...


def trace_of(report: Report) -> dict[str, Any]:
    """`report` in the Trace Event Format: complete events, times in microseconds.

    The events of calls nest inside the event of their caller.
    """
    events: list[dict[str, Any]] = [
        {"name": s.name, "cat": "function", **_complete(s.begin, s.end), "args": {}}
        for s in report.spans
    ]
    events += [
        {
            "name": c.name,
            "cat": c.kind,
            **_complete(c.begin, c.end),
            "args": {
                "value": c.origin,
                "at": f"{c.function}, instruction {c.instruction}",
                "arrays": list(c.arrays),
                "bytes": c.nbytes,
                "operations": c.operations,
            },
        }
        for c in report.calls
    ]
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    name = {"name": "process_name", "ph": "M", "pid": 1, "args": {"name": "relax-egraph"}}
    return {"traceEvents": [name, *events], "displayTimeUnit": "ns"}


def _complete(begin: float, end: float) -> dict[str, Any]:
    times = {"ts": round(begin * 1e6, 3), "dur": round((end - begin) * 1e6, 3)}
    return {"ph": "X", **times, "pid": 1, "tid": 1}

"""The report of a profile: the time and memory traffic of each call of a packed function."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from relax_egraph.base import notebook
from relax_egraph.base.files import replacing
from relax_egraph.vm.chrome_trace import trace_of
from relax_egraph.vm.timing import duration

if TYPE_CHECKING:
    from rich.table import Table

Kind: TypeAlias = Literal["kernel", "packed", "builtin"]

_WIDE = 160
"""Columns of the table as text."""


class Roofline(Protocol):
    """A model of the machine that bounds the time of a call from below."""

    def seconds(self, operations: float, nbytes: float, dtype: str) -> float:
        """The least seconds for `operations` on elements of `dtype` and `nbytes` of traffic."""
        ...


@dataclass(frozen=True, slots=True)
class TimedCall:
    """A call of the packed function `name`: instruction `instruction` of `function`.

    `begin` and `end` are seconds since the start of the shortest run, `seconds` is the least time
    in all runs.  `arrays` are the array arguments, as ``float32[3, 4]``, then the results; `dtype`
    is the dtype of the largest.
    `nbytes` counts each array once, and an array that is read and written twice: the least
    traffic if all elements are used; for builtins it is 0.
    `operations` are the arithmetic operations, if the kernel declares them; `share` is the least
    time of the machine for them and for the bytes, as a share of `seconds`.  `price` is the
    price of the kernel in extraction: seconds at the assumed sizes.
    """

    kind: Kind
    name: str
    function: str
    instruction: int
    origin: str
    begin: float
    end: float
    seconds: float
    arrays: tuple[str, ...]
    dtype: str
    nbytes: int
    operations: int | None
    share: float | None = None
    price: float | None = None

    @property
    def bandwidth(self) -> float:
        """Bytes per second."""
        return self.nbytes / self.seconds if self.seconds else 0.0

    @property
    def rate(self) -> float | None:
        """Operations per second, where they are known."""
        if self.operations is None:
            return None
        return self.operations / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Span:
    """A call of a function of the executable, in seconds since the start of the run."""

    name: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class CallSum:
    """All calls of one packed function."""

    kind: Kind
    name: str
    count: int
    seconds: float
    nbytes: int
    operations: int | None


@dataclass(frozen=True, slots=True)
class CallReport:
    """The time of one interpreted call of `function`, by calls of packed functions.

    `seconds` is the shortest of `repeat` runs, without the overhead of recording.
    """

    function: str
    repeat: int
    seconds: float
    calls: tuple[TimedCall, ...]
    spans: tuple[Span, ...]

    @property
    def outside(self) -> float:
        """Seconds of the shortest run outside of packed functions."""
        inside, end = 0.0, 0.0
        for call in self.calls:  # in order of `begin`; one may be within another
            inside += max(0.0, call.end - max(call.begin, end))
            end = max(end, call.end)
        return self.seconds - inside

    def sums(self) -> tuple[CallSum, ...]:
        """Times by packed function, the longest first."""
        calls: dict[str, list[TimedCall]] = {}
        for call in self.calls:
            calls.setdefault(call.name, []).append(call)
        sums_of_calls = [_sum(same) for same in calls.values()]
        return tuple(sorted(sums_of_calls, key=lambda s: -s.seconds))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain data, times in seconds."""
        return {
            "function": self.function,
            "engine": "interpreter",
            "repeat": self.repeat,
            "seconds": self.seconds,
            "outside": self.outside,
            "calls": [{**_fields(c), "bandwidth": c.bandwidth, "rate": c.rate} for c in self.calls],
            "sums": [_fields(s) for s in self.sums()],
        }

    def chrome_trace(self) -> dict[str, Any]:
        """The shortest run in the Trace Event Format of Perfetto and Chrome."""
        return trace_of(self)

    def save_trace(self, path: str | Path) -> None:
        """Write `chrome_trace` as JSON; the file at `path` is replaced atomically."""
        with replacing(Path(path)) as file:
            file.write(json.dumps(self.chrome_trace()).encode())

    def table(self) -> "Table":
        """A table for rich: kernels and functions of the user, sums, builtins, and the rest."""
        from rich import box  # 20 ms: not before they are needed
        from rich.table import Table

        named = [c for c in self.calls if c.kind != "builtin"]
        builtins = [c.seconds for c in self.calls if c.kind == "builtin"]
        title = (
            f"{self.function}: {duration(self.seconds)}, the least of {self.repeat}, interpreted"
        )
        table = Table(title=title, title_justify="left", box=box.SIMPLE)
        for heading in ("", "value", "calls"):
            table.add_column(heading, no_wrap=True)
        table.add_column("arrays")
        for heading in ("time", "of all", "price", "GB/s", "GFLOP/s", "roofline"):
            table.add_column(heading, justify="right", no_wrap=True)
        for number, call in enumerate(named):
            shapes = _shapes(call.arrays)
            table.add_row(str(number), call.origin, call.name, shapes, *self._figures(call))
        table.add_section()
        for total in self.sums():
            if total.kind != "builtin" and total.count > 1:
                of_all = self._of_all(total.seconds)
                table.add_row("", f"{total.count} ×", total.name, "", *of_all, *[""] * 4)
        table.add_section()
        table.add_row("", f"{len(builtins)} ×", "builtins", "", *self._of_all(sum(builtins)))
        table.add_row("", "", "between calls", "", *self._of_all(self.outside))
        return table

    def __str__(self) -> str:
        from rich.console import Console  # 10 ms: not before it is needed

        console = Console(file=StringIO(), width=_WIDE, color_system=None)
        console.print(self.table())
        text = console.file
        assert isinstance(text, StringIO)
        return "\n".join(line.rstrip() for line in text.getvalue().rstrip().splitlines())

    def _repr_html_(self) -> str:
        return notebook.table(self.table())

    def _of_all(self, seconds: float) -> tuple[str, str]:
        return duration(seconds), f"{seconds / self.seconds:.1%}" if self.seconds else ""

    def _figures(self, call: TimedCall) -> tuple[str, ...]:
        price = "" if call.price is None else duration(call.price)
        rate = "" if call.rate is None else f"{call.rate / 1e9:.3g}"
        share = "" if call.share is None else f"{call.share:.1%}"
        return *self._of_all(call.seconds), price, f"{call.bandwidth / 1e9:.3g}", rate, share


def _shapes(arrays: tuple[str, ...]) -> str:
    """``float32[3, 4]``, ``float32[4]`` as ``float32 3×4 4``."""
    written, last = list[str](), ""
    for array in arrays:
        dtype, _, extents = array.removesuffix("]").partition("[")
        shape = extents.replace(", ", "×") or "()"
        written.append(shape if dtype == last else f"{dtype} {shape}")
        last = dtype
    return " ".join(written)


def _sum(calls: list[TimedCall]) -> CallSum:
    counts = [c.operations for c in calls if c.operations is not None]
    return CallSum(
        calls[0].kind,
        calls[0].name,
        len(calls),
        sum(c.seconds for c in calls),
        sum(c.nbytes for c in calls),
        sum(counts) if len(counts) == len(calls) else None,
    )


def _fields(record: TimedCall | CallSum) -> Mapping[str, Any]:
    return {name: getattr(record, name) for name in record.__slots__}

"""Instruments: a function of the user observes each call of a packed function."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from relax_egraph.vm.arguments import convert
from relax_egraph.vm.builtins import Packed
from relax_egraph.vm.decoding import Around, CallSite


@dataclass(frozen=True, slots=True, eq=False)
class CallEvent:
    """A call of the packed function `name`: a kernel, a function of the user, or a builtin.

    It is instruction `instruction` of `function`, and computes the value `origin` of the source, if
    known.  Kernels write into their last `arguments` and have no `result`; the arguments of a
    builtin do not include the constants of the instruction.
    """

    when: Literal["before", "after"]
    name: str
    function: str
    instruction: int
    origin: str
    arguments: tuple[Any, ...]
    result: Any = None


@dataclass(frozen=True, slots=True, eq=False)
class Skip:
    """Returned by an instrument before a call to skip it: `result` replaces its result."""

    result: Any = None


Instrument: TypeAlias = Callable[[CallEvent], Skip | None]
"""Called before each call of a packed function, and after it unless it was skipped or failed."""


def watched_by(instrument: Instrument) -> Around:
    """A wrapper of packed functions that calls `instrument` before and after each call.

    A call raises ``TypeError`` if the instrument returns anything but ``None`` or a `Skip`.
    """

    def around(site: CallSite, callee: Packed) -> Packed:
        def call(*args: Any) -> Any:
            event = CallEvent("before", site.callee, site.function, site.at, site.origin, args)
            answer = instrument(event)
            if isinstance(answer, Skip):
                return convert(f"the result of {site.callee!r} from Skip", answer.result)
            if answer is not None:
                kind = type(answer).__name__
                raise TypeError(f"an instrument returns None or Skip(result), not {kind}")
            result = callee(*args)
            instrument(replace(event, when="after", result=result))
            return result

        return call

    return around

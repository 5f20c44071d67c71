"""What a user knows of costs better than the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from relax_egraph.errors import ExtractionError, nearest
from relax_egraph.extract.work import WORK, Applied
from relax_egraph.ir.kernel import Kernel
from relax_egraph.parameters import SECONDS, check_fields, function, mapping, optional


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds that take the place of the model's.

    * `operators`: by name, the seconds of computing for one application of an operator, from its
      attributes and the extents of its tensors; launching and moving are counted besides.
    * `kernel`: the seconds of one run of a kernel, from the kernel, the sizes of symbols, and
      what the model says, with `operators`; infinite for one that is not to be used.
    * `opaque`: by the name of a loop function or a packed function, the seconds of a call that
      stays as it is.

    A price that is negative or not a number is an `ExtractionError` when it is asked for.
    """

    operators: Mapping[str, Callable[[Applied], float]] = field(default_factory=dict)
    kernel: Callable[[Kernel, Mapping[str, int], float], float] | None = None
    opaque: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, _PRICES)
        for name in self.operators:
            if name not in WORK:
                said = f"operators: there is no operator {name!r}", nearest(name, WORK)
                raise ValueError("; ".join(filter(None, said)))

    def computing(self, op: str, applied: Applied) -> float:
        """Seconds of computing for one application of `op`, which has a price."""
        return _checked(self.operators[op](applied), f"R.{op}")

    def of_kernel(self, kernel: Kernel, sizes: Mapping[str, int], seconds: float) -> float:
        """Seconds of one run of `kernel`, which the model prices at `seconds`."""
        if self.kernel is None:
            return seconds
        return _checked(self.kernel(kernel, sizes, seconds), _named(kernel))

    def of_call(self, name: str, seconds: float) -> float:
        """Seconds for a call of `name` that stays as it is; `seconds` if it has no price."""
        return _checked(self.opaque.get(name, seconds), name)


_PRICES = {
    "operators": mapping("prices by the names of operators", function("a function of an Applied")),
    "kernel": optional(function("a function of a kernel, sizes and seconds")),
    "opaque": mapping("seconds by the names of functions", SECONDS),
}


def _named(kernel: Kernel) -> str:
    return "the kernel of " + ", ".join(f"R.{step.op.name}" for step in kernel.steps)


def _checked(seconds: float, what: str) -> float:
    if not seconds >= 0:
        raise ExtractionError(f"{what} is priced at {seconds} seconds; a price is not negative")
    return seconds

"""Prices that a user states in place of the cost model's."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from relax_egraph.base.parameters import SECONDS, Kind, check_fields, function, mapping, optional
from relax_egraph.errors import ExtractionError, nearest
from relax_egraph.extract.work import WORK, Applied, Extents
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.operators import find, in_force


@dataclass(frozen=True, slots=True)
class PricedCall:
    """A call of a loop function or a packed function, in numbers.

    `shapes` and `dtypes` are those of its operands, `result` and `dtype` those of its result, or of
    the first of several; ``None`` if unknown.
    """

    shapes: tuple[Extents, ...]
    dtypes: tuple[str | None, ...]
    result: Extents
    dtype: str | None


CallPrice: TypeAlias = float | Callable[[PricedCall], float]
"""The seconds of every call of a function, or a function of the shapes and dtypes of a call."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Seconds that replace those of the cost model.

    * `operators`: by name, the seconds of arithmetic of one application of an operator, from its
      attributes and the extents of its tensors; launch and memory traffic are added by the model.
    * `kernel`: the seconds of one run of a kernel, from the kernel, the sizes of symbols, and the
      model's price, which includes `operators`; infinite to exclude the kernel.
    * `calls`: by the name of a loop function or a packed function, the seconds of a call of it: a
      number, or a function of a `PricedCall`.  Functions that rules call need one.

    A price that is negative or not a number is an `ExtractionError` when it is used.
    """

    operators: Mapping[str, Callable[[Applied], float]] = field(default_factory=dict)
    kernel: Callable[[Kernel, Mapping[str, int], float], float] | None = None
    calls: Mapping[str, CallPrice] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields(self, _PRICES)
        for name in self.operators:
            if name not in WORK and find(name) is None:
                known = (*WORK, *(op.name for op in in_force().own))
                message = f"operators: there is no operator {name!r}", nearest(name, known)
                raise ValueError("; ".join(filter(None, message)))

    def computing(self, op: str, applied: Applied) -> float:
        """Seconds of arithmetic for one application of `op`, which has a price."""
        return _checked(self.operators[op](applied), f"R.{op}")

    def of_kernel(self, kernel: Kernel, sizes: Mapping[str, int], seconds: float) -> float:
        """Seconds of one run of `kernel`, which the model prices at `seconds`."""
        if self.kernel is None:
            return seconds
        return _checked(self.kernel(kernel, sizes, seconds), _named(kernel))

    def of_call(self, name: str, call: PricedCall) -> float:
        """Seconds for a `call` of `name`, which has a price."""
        price = self.calls[name]
        return _checked(price(call) if callable(price) else price, name)


_CALL = Kind(
    f"{SECONDS.needs}, or a function of a PricedCall",
    lambda price: callable(price) or SECONDS.has_type(price),
    lambda price: callable(price) or SECONDS.in_range(price),
)

_PRICES = {
    "operators": mapping("prices by the names of operators", function("a function of an Applied")),
    "kernel": optional(function("a function of a kernel, sizes and seconds")),
    "calls": mapping("seconds by the names of functions", _CALL),
}


def _named(kernel: Kernel) -> str:
    return "the kernel of " + ", ".join(f"R.{step.op.name}" for step in kernel.steps)


def _checked(seconds: float, what: str) -> float:
    if not seconds >= 0:
        raise ExtractionError(f"{what} is priced at {seconds} seconds; a price is not negative")
    return seconds

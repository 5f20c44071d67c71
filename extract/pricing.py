"""By what programs are compared: seconds on one machine, over the sizes that symbols have."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from relax_egraph.extract import cost
from relax_egraph.extract.cost import Costs, Sizes
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.profile import REFERENCE_PROFILE, Profile
from relax_egraph.ir.expr import Attr, Binding, Call, ExternFunc, GlobalVar
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.struct_info import TensorStructInfo

Hints: TypeAlias = Sizes | Sequence[tuple[float, Sizes]]
"""The sizes of symbols, 64 for one that is not named; or several such, each with its weight."""


class Pricing:
    """Seconds of what programs are made of: the mean over the sizes in `hints`, by their weights.

    Raises ``ValueError`` for a weight that is not positive, or a size that is negative.
    """

    def __init__(
        self, profile: Profile, hints: Hints | None = None, prices: Prices | None = None
    ) -> None:
        scenarios = _scenarios({} if hints is None else hints)
        whole = math.fsum(weight for weight, _ in scenarios)
        self._prices = prices or Prices()
        self._costs = [(w / whole, Costs(profile, s, self._prices)) for w, s in scenarios]
        self._any = self._costs[0][1]

    def known(self, info: TensorStructInfo) -> bool:
        """Whether the size of a tensor in bytes is known."""
        return self._any.nbytes(info) is not None

    def reading(self, info: TensorStructInfo) -> float:
        """Seconds to read a tensor; what is not known counts as nothing."""
        return self._mean(lambda costs: costs.reading(info))

    def computing(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        result: TensorStructInfo,
    ) -> float:
        """Seconds for the arithmetic of `op`, at peak."""

        def of(costs: Costs) -> float:
            found = costs.computing(op, attrs, operands, result)
            return found.at_peak + found.stated

        return self._mean(of)

    def kernel(self, kernel: Kernel, schedule: Schedule) -> float:
        """Seconds for one run of `kernel`, all of whose shapes are known."""
        return self._mean(lambda costs: costs.kernel(kernel, schedule))

    def operator(
        self,
        op: str,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
        schedule: Schedule | None,
    ) -> float:
        """Seconds for `op` as it stands, by loops of its own or else called at run time."""
        return self._mean(lambda costs: costs.operator(op, attrs, operands, results, schedule))

    def opaque(self, binding: Binding) -> float:
        """Seconds for a binding that stays as it is."""
        return self._prices.of_call(_callee(binding), cost.OPAQUE)

    def _mean(self, seconds: Callable[[Costs], float]) -> float:
        if len(self._costs) == 1:
            return seconds(self._any)
        return math.fsum(weight * seconds(costs) for weight, costs in self._costs)


def price(
    kernel: Kernel,
    schedule: Schedule,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
) -> float:
    """Seconds for one run of `kernel`, which has known shapes, as `schedule` runs it."""
    return Pricing(profile, hints).kernel(kernel, schedule)


def _scenarios(hints: Hints) -> list[tuple[float, Sizes]]:
    found = [(1.0, hints)] if isinstance(hints, Mapping) else [*hints]
    if not found:
        raise ValueError("hints are the sizes of symbols, or a list of them with weights")
    for weight, sizes in found:
        if not 0 < weight < math.inf:
            raise ValueError(f"the weight of {dict(sizes)} is {weight}; it must be positive")
        _check(sizes.items())
    return found


def _check(sizes: Iterable[tuple[str, int]]) -> None:
    for name, size in sizes:
        if size < 0:
            raise ValueError(f"the hint for {name} is {size}; a size is not negative")


def _callee(binding: Binding) -> str:
    """The name of the loop function or packed function that a binding calls; else empty."""
    value = binding.value
    if not isinstance(value, Call):
        return ""
    for what in (value.op, *value.args[:1]):
        if isinstance(what, GlobalVar | ExternFunc):
            return what.name
    return ""

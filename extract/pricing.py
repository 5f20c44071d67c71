"""The objective of extraction: mean seconds on one machine over weighted sizes of the symbols."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from relax_egraph.base.parameters import (
    SIZES,
    Kind,
    collection,
    is_collection,
    number,
    optional,
)
from relax_egraph.extract import cost
from relax_egraph.extract.cost import Costs, Sizes
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.profile import REFERENCE_PROFILE, Profile
from relax_egraph.ir.expr import Attr, Binding, Call, ExternFunc, GlobalVar, Tuple
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo

Hints: TypeAlias = Sizes | Sequence[tuple[float, Sizes]]
"""Sizes of symbols, 64 for a symbol that is not named; or several such, each with a weight."""


_WEIGHT = number("a weight, more than 0", lambda weight: 0 < weight < math.inf)
_SCENARIO = Kind(
    "a weight and sizes of symbols, such as (0.5, {'n': 64})",
    is_collection,
    lambda pair: len(pair) == 2,
    lambda name, pair: [(f"{name}[0]", pair[0], _WEIGHT), (f"{name}[1]", pair[1], SIZES)],
)
_SCENARIOS = collection(_SCENARIO.needs, _SCENARIO)

HINTS = Kind(
    f"{SIZES.needs}, or a list of such with weights, such as [(0.5, {{'n': 1}}), …]",
    lambda hints: isinstance(hints, Mapping) or is_collection(hints),
    lambda hints: isinstance(hints, Mapping) or len(hints) > 0,
    lambda name, hints: (SIZES if isinstance(hints, Mapping) else _SCENARIOS).parts(name, hints),
)
"""The check of an argument of type `Hints`."""


class Pricing:
    """Seconds of kernels, operators and bindings: the weighted mean over the sizes in `hints`.

    Raises ``ValueError`` for a weight that is not positive, or a size that is negative.
    """

    def __init__(
        self, profile: Profile, hints: Hints | None = None, prices: Prices | None = None
    ) -> None:
        optional(HINTS).check("hints", hints)
        scenarios = scenarios_of({} if hints is None else hints)
        whole = math.fsum(weight for weight, _ in scenarios)
        self._prices = prices or Prices()
        self._costs = [(w / whole, Costs(profile, s, self._prices)) for w, s in scenarios]
        self._any = self._costs[0][1]

    @property
    def launch(self) -> float:
        """Seconds to start a kernel."""
        return self._any.profile.launch

    def known(self, info: TensorStructInfo) -> bool:
        """Whether the size of a tensor in bytes is known."""
        return self._any.nbytes(info) is not None

    def reading(self, info: TensorStructInfo) -> float:
        """Seconds to read a tensor; an unknown size counts as nothing."""
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
            time = costs.computing(op, attrs, operands, result)
            return time.at_peak + time.stated

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
        """Seconds for `op` outside of kernels: by its own loops, or called at run time."""
        return self._mean(lambda costs: costs.operator(op, attrs, operands, results, schedule))

    def opaque(self, binding: Binding) -> float:
        """Seconds for an opaque binding."""
        return self.call(_callee(binding), _operands(binding), binding.var.struct_info)

    def call(self, name: str, operands: Sequence[TensorStructInfo], result: StructInfo) -> float:
        """Seconds for a call of `name`, a loop function or a packed function."""
        if name not in self._prices.calls:
            return cost.OPAQUE
        return self._mean(lambda costs: costs.call(name, operands, result))

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
    """Seconds for one run of `kernel` by `schedule`; its shapes are known."""
    return Pricing(profile, hints).kernel(kernel, schedule)


def scenarios_of(hints: Hints) -> Sequence[tuple[float, Sizes]]:
    """The sizes in `hints`, each with its weight."""
    return [(1.0, hints)] if isinstance(hints, Mapping) else hints


def _operands(binding: Binding) -> list[TensorStructInfo]:
    """The struct info of the tensors that a binding passes to what it calls."""
    args = binding.value.args if isinstance(binding.value, Call) else ()
    every = (v for a in args for v in (a.fields if isinstance(a, Tuple) else (a,)))
    return [v.struct_info for v in every if isinstance(v.struct_info, TensorStructInfo)]


def _callee(binding: Binding) -> str:
    """The name of the loop function or packed function that a binding calls; else empty."""
    value = binding.value
    if not isinstance(value, Call):
        return ""
    for what in (value.op, *value.args[:1]):
        if isinstance(what, GlobalVar | ExternFunc):
            return what.name
    return ""

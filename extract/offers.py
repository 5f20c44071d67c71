"""Offers of a library: each structure of kernels is scheduled and priced once.

The views of a module share them, since their regions have many kernels in common.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from relax_egraph.extract.cut import Structure
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.pricing import Pricing
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Promise
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import TensorStructInfo


@dataclass(frozen=True, slots=True)
class Offer:
    """A kernel that the library runs by the schedule `anchor`, at `seconds`: its promise."""

    kernel: Kernel
    anchor: str
    seconds: float


class Offers:
    """The offers of `library` at the prices of `pricing`, under one set of assumptions."""

    def __init__(self, library: KernelLibrary, pricing: Pricing) -> None:
        self.pricing = pricing
        self._library = library
        self._kernels: dict[Structure, Offer | None] = {}
        self._symbols: dict[object, int] = {}
        self._unknown: set[int] = set()
        self._operators: dict[object, float] = {}

    def symbol(self, key: object, info: TensorStructInfo) -> int:
        """The symbol of a load or step in structures: equal for those with an equal `key`."""
        symbol = self._symbols.get(key)
        if symbol is None:
            symbol = self._symbols[key] = len(self._symbols)
            if not self.pricing.known(info):
                self._unknown.add(symbol)
        return symbol

    def of(self, structure: Structure, kernel: Callable[[], Kernel]) -> Offer | None:
        """The offer for the kernels of `structure`, such as `kernel` returns; ``None`` if none.

        The library is not queried for a kernel with an unknown shape or dtype.
        """
        if structure not in self._kernels:
            loads, steps = structure
            symbols = {*loads, *(symbol for symbol, _ in steps)}
            is_known = self._unknown.isdisjoint(symbols)
            self._kernels[structure] = self._query(kernel()) if is_known else None
        return self._kernels[structure]

    def may_grow(self, operators: frozenset[str]) -> bool:
        """Whether a refused kernel with steps of `operators` may run with further steps on top."""
        return self._library.may_grow(operators)

    def operator(
        self,
        op: str,
        attrs: tuple[tuple[str, Attr], ...],
        operands: Sequence[TensorStructInfo],
        others: tuple[object, ...],
        results: Sequence[TensorStructInfo],
    ) -> float:
        """Seconds for `op` outside of kernels; `others` are its operands that are no tensors."""
        key = (op, attrs, operands, others, results)
        if key not in self._operators:
            schedule = self._library.schedule_of_operator(named(op), dict(attrs), operands, results)
            seconds = self.pricing.operator(op, dict(attrs), operands, results, schedule)
            self._operators[key] = seconds
        return self._operators[key]

    def _query(self, kernel: Kernel) -> Offer | None:
        schedule = self._library.schedule_of(kernel)
        if schedule is None:
            return None
        seconds = self.pricing.kernel(kernel, schedule)
        promise = Promise(schedule.anchor, seconds)
        offer = Offer(replace(kernel, promise=promise), schedule.anchor, seconds)
        return offer if seconds < math.inf else None

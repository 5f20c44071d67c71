"""Fresh names for the variables of schedules."""

from collections.abc import Iterable, Sequence

from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.analysis import symbols_of_stmt
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.stmt import PrimFunc


class Names:
    """A generator of variables with distinct names that are not in `used`."""

    def __init__(self, used: Iterable[str]) -> None:
        self._used = set(used)

    @classmethod
    def beside(cls, function: PrimFunc) -> "Names":
        """Names distinct from those of the symbols and buffers of `function`."""
        buffers = (b.name for b in (*function.params, *function.allocs))
        return cls({*function.symbols, *symbols_of_stmt(function.body), *buffers})

    def fresh(self, prefix: str) -> str:
        """`prefix` with the smallest number that makes a new name."""
        number = 0
        while f"{prefix}{number}" in self._used:
            number += 1
        self._used.add(f"{prefix}{number}")
        return f"{prefix}{number}"

    def var(self, prefix: str) -> TirVar:
        """A new variable."""
        return TirVar(self.fresh(prefix))

    def renamed(
        self, axes: Sequence[Axis], prefix: str
    ) -> tuple[tuple[Axis, ...], dict[TirVar, TirExpr]]:
        """`axes` with new variables, and the map from old to new ones."""
        new = tuple(Axis(self.var(prefix), a.extent) for a in axes)
        return new, {a.var: b.var for a, b in zip(axes, new, strict=True)}

"""The conditions on sizes that a module assumes, because its operators refuse other sizes."""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Function, If, MatchCast, SeqExpr, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.solving import condition
from relax_egraph.ir.struct_info import known_extents
from relax_egraph.ir.walk import bindings_of


@dataclass(frozen=True, slots=True)
class Demand:
    """A `condition` on sizes that an `operator` needs of its `operand`; `function` checks it.

    For what the program checks of itself, the operator is "a check".
    """

    function: str
    condition: str
    operator: str
    operand: str

    def __str__(self) -> str:
        return f"{self.condition} ({self.operator}, {self.operand})"


def demands_of(module: IRModule) -> tuple[Demand, ...]:
    """The conditions of the checks that `ir.fitting` inserted, each once for a function.

    A call of a function succeeds only where they hold.
    """
    first: dict[tuple[str, str], Demand] = {}
    for name, function in module.relax_functions():
        for cast in _refusing(function.body):
            named, _, _ = cast.refusal.partition(" ")
            operator = named[2:] if named.startswith("R.") else "a check"
            operand = cast.value.name if isinstance(cast.value, Var) else "shape"
            for old, new in _changed(cast):
                text = condition(old, new)
                first.setdefault((name, text), Demand(name, text, operator, operand))
    return tuple(first.values())


def _refusing(seq: SeqExpr) -> Iterator[MatchCast]:
    for binding in bindings_of(seq):
        match binding.value:
            case If(true_branch=true, false_branch=false):
                yield from _refusing(true)
                yield from _refusing(false)
            case Function(body=body):
                yield from _refusing(body)
            case _ if isinstance(binding, MatchCast) and binding.refusal:
                yield binding
            case _:
                pass


def _changed(cast: MatchCast) -> Iterator[tuple[Dim, Dim]]:
    pairs = zip(
        known_extents(cast.value.struct_info), known_extents(cast.struct_info), strict=False
    )
    return ((old, new) for old, new in pairs if old != new)

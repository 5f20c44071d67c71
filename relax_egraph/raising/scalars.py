"""The operator of each scalar expression: the loops of elementwise operators, read backwards."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from relax_egraph.errors import NotLowerable
from relax_egraph.ir.op import OPS
from relax_egraph.lower.legalize import activation, binary, unary
from relax_egraph.tir.analysis import tree_size
from relax_egraph.tir.expr import Binary, Cast, Imm, Intrinsic, Not, Select, TirExpr, TirVar
from relax_egraph.tir.rewrite import operands, variables

_TABLES = (unary.SCALARS, binary.SCALARS, activation.SCALARS)
_LATER = frozenset({"ewise_add", "logical_xor"})
"""Operators whose scalars are those of another operator."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """The scalar expression of `operator`, over the variables `holes`."""

    operator: str
    expr: TirExpr
    holes: tuple[TirVar, ...]

    def match(self, expr: TirExpr) -> tuple[TirExpr, ...] | None:
        """The operands if `expr` has this form; ``None`` if it has not."""
        bound: dict[TirVar, TirExpr] = {}
        return tuple(bound[h] for h in self.holes) if self._fits(self.expr, expr, bound) else None

    def _fits(self, part: TirExpr, expr: TirExpr, bound: dict[TirVar, TirExpr]) -> bool:
        if isinstance(part, TirVar):
            return part.dtype == expr.dtype and bound.setdefault(part, expr) == expr
        if isinstance(part, Imm):
            return isinstance(expr, Imm) and repr(part) == repr(expr)
        if _root(part) != _root(expr):
            return False
        pairs = zip(operands(part), operands(expr), strict=True)
        return all(self._fits(a, b, bound) for a, b in pairs)


def operator_of(expr: TirExpr) -> tuple[str, tuple[TirExpr, ...]] | None:
    """The largest elementwise operator that `expr` is of, and its operands; ``None`` if none is."""
    below = operands(expr)
    if not below:
        return None
    for pattern in _patterns(below[-1].dtype).get(_root(expr), ()):
        matched = pattern.match(expr)
        if matched is not None:
            return pattern.operator, matched
    return None


def _root(expr: TirExpr) -> tuple[str, ...]:
    match expr:
        case Binary(kind=kind):
            return ("binary", kind)
        case Intrinsic(name=name):
            return ("intrinsic", name)
        case Cast(dtype=dtype):
            return ("cast", dtype)
        case Select():
            return ("select",)
        case Not():
            return ("not",)
        case _:
            return ("leaf", type(expr).__name__)


@lru_cache(64)
def _patterns(dtype: str) -> Mapping[tuple[str, ...], tuple[Pattern, ...]]:
    """The patterns with operands of `dtype`, by their root, the largest ones first."""
    roots: dict[tuple[str, ...], list[Pattern]] = {}
    for pattern in sorted(_written(dtype), key=_specific):
        roots.setdefault(_root(pattern.expr), []).append(pattern)
    return {root: tuple(several) for root, several in roots.items()}


def _specific(pattern: Pattern) -> tuple[int, int, bool]:
    is_logical = pattern.operator.startswith("logical")
    return -tree_size(pattern.expr), len(pattern.holes), not is_logical


def _written(dtype: str) -> Iterator[Pattern]:
    for table in _TABLES:
        for name, scalar in table.items():
            if name in _LATER:
                continue
            holes = tuple(TirVar(o.name, dtype) for o in OPS[name].operands)
            if name == "where":
                holes = (TirVar("condition", "bool"), *holes[1:])
            try:
                expr = scalar(*holes)
            except (NotLowerable, TypeError):
                continue  # the operator has no operands of this dtype
            if variables(expr) == frozenset(holes) and not isinstance(expr, TirVar):
                yield Pattern(name, expr, holes)

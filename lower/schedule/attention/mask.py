"""Masks that hide all keys from a query except a contiguous run."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from relax_egraph.lower.schedule.index import coefficients
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.tir.expr import Binary, Imm, Select, TirExpr, TirVar, binary
from relax_egraph.tir.rewrite import substitute


@dataclass(frozen=True, slots=True)
class Run:
    """The keys from `first` to below `end`, in terms of the query; both are monotonic in it.

    ``None`` means that the mask does not limit that side.
    """

    first: TirExpr | None = None
    end: TirExpr | None = None

    def at(self, point: Mapping[TirVar, TirExpr]) -> "Run":
        """The run of one query, with the values of variables in `point`."""
        return Run(
            self.first and substitute(self.first, point), self.end and substitute(self.end, point)
        )


ALL = Run()


def split_mask(score: TirExpr, row: TirVar | None, key: TirVar) -> tuple[Run, TirExpr]:
    """The run of keys outside which `score` is -∞, and the score inside it.

    A mask of another form remains in the score.
    """
    match score:
        case Select(condition=condition, a=visible, b=Imm(value=value)) if value == -math.inf:
            run = _run(condition, row, key)
            return (ALL, score) if run is None else (run, visible)
        case _:
            return ALL, score


def _run(condition: TirExpr, row: TirVar | None, key: TirVar) -> Run | None:
    first: TirExpr | None = None
    end: TirExpr | None = None
    for part in _conjuncts(condition):
        match part:
            case Binary(kind="<" | "<=" | ">" | ">=" as kind, a=a, b=b) if a.dtype == "int64":
                low, high = (a, b) if kind in ("<", "<=") else (b, a)
                room = high - low + (1 if "=" in kind else 0)  # positive for visible keys
            case _:
                return None
        along = coefficients(room, (key, row) if row else (key,))
        if along is None:
            return None
        of_key, of_row = along[0], along[1] if row else 0
        rest = substitute(room, {key: ZERO})
        if of_key == -1 and isinstance(of_row, int) and of_row >= 0:
            end = rest if end is None else binary("min", end, rest)
        elif of_key == 1 and isinstance(of_row, int) and of_row <= 0:
            begin = 1 - rest
            first = begin if first is None else binary("max", first, begin)
        else:
            return None
    return Run(first, end)


def _conjuncts(condition: TirExpr) -> Iterator[TirExpr]:
    match condition:
        case Binary(kind="and", a=a, b=b):
            yield from _conjuncts(a)
            yield from _conjuncts(b)
        case _:
            yield condition

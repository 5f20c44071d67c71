"""Values on conditions over axes: each axis is cut where the condition changes."""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.raising.frame import Frame
from relax_egraph.raising.indices import linear
from relax_egraph.tir.expr import Binary, Not, Select, TirExpr, TirVar
from relax_egraph.tir.rewrite import variables

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class Cut:
    """``value`` is `before` where ``axis < at``, else `after`."""

    axis: TirVar
    at: Dim
    before: TirExpr
    after: TirExpr


def ranges(condition: TirExpr, frame: Frame) -> dict[TirVar, tuple[Dim, Dim]] | None:
    """The first index and the end of each axis between which `condition` holds, and only there.

    ``None`` if it does not hold in such a box.
    """
    box: dict[TirVar, tuple[Dim, Dim]] = {}
    for part in _conjuncts(condition):
        bound = _bound(part, frame)
        if bound is None:
            return None
        axis, at, is_below = bound
        first, end = box.get(axis, (0, frame.extents[axis]))
        box[axis] = (first, at) if is_below else (at, end)
    for axis, (first, end) in box.items():
        ordered = dims.prove_ge(first, 0) and dims.prove_ge(end, first)
        if not ordered or not dims.prove_ge(frame.extents[axis], end):
            return None
    return box


def cut_of(choice: Select, frame: Frame) -> Cut | None:
    """The first place where the condition of `choice` changes along an axis of `frame`."""
    match choice.condition:
        case Binary(kind="and", a=a, b=b):
            inner = Select(b, choice.a, choice.b, choice.lazy)
            return cut_of(Select(a, inner, choice.b, choice.lazy), frame)
        case Binary(kind="or", a=a, b=b):
            inner = Select(b, choice.a, choice.b, choice.lazy)
            return cut_of(Select(a, choice.a, inner, choice.lazy), frame)
        case Not(a=a):
            return cut_of(Select(a, choice.b, choice.a, choice.lazy), frame)
        case condition:
            bound = _bound(condition, frame)
    if bound is None:
        return None
    axis, at, is_below = bound
    if not dims.prove_ge(at, 0) or not dims.prove_ge(frame.extents[axis], at):
        return None
    before, after = (choice.a, choice.b) if is_below else (choice.b, choice.a)
    return Cut(axis, at, before, after)


def _conjuncts(condition: TirExpr) -> Iterator[TirExpr]:
    if isinstance(condition, Binary) and condition.kind == "and":
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    else:
        yield condition


def _bound(condition: TirExpr, frame: Frame) -> tuple[TirVar, Dim, bool] | None:
    """An axis and a place: the condition holds before it, if the third is true, else from it on."""
    match condition:
        case Binary(kind="<" | "<=" | ">" | ">=" as kind, a=a, b=b) if a.dtype == "int64":
            pass
        case _:
            return None
    if not variables(condition):
        return None
    terms = linear(a - b, frame.extents)
    if terms is None or len(terms[0]) != 1:
        return None
    ((axis, step),) = terms[0].items()
    if axis not in frame.axes or step not in (1, -1):
        return None
    at = dims.mul(-1, terms[1]) if step == 1 else terms[1]
    kind = kind if step == 1 else _MIRRORED[kind]
    if kind in ("<=", ">"):
        at = dims.add(at, 1)
    return axis, at, kind in ("<", "<=")

"""Values on conditions over axes: each axis is cut where the condition changes."""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.raising.frame import Frame
from relax_egraph.raising.indices import linear
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Binary, Imm, Not, Select, TirExpr, TirVar
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

    ``None`` if it does not hold in such a box.  That the box has elements may be a part of it.
    """
    box: dict[TirVar, tuple[Dim, Dim]] = {}
    nonempty: list[Dim] = []
    for part in _conjuncts(condition):
        bound = _bound(part, frame)
        if bound is None:
            extent = _positive(part)
            if extent is None:
                return None
            nonempty.append(extent)
            continue
        axis, at, is_below = bound
        first, end = box.get(axis, (0, frame.extents[axis]))
        box[axis] = (first, _lesser(at, end)) if is_below else (_greater(at, first), end)
    for axis, (first, end) in box.items():
        ordered = dims.prove_ge(first, 0) and dims.prove_ge(end, first)
        if not ordered or not dims.prove_ge(frame.extents[axis], end):
            return None
    counts = [dims.sub(end, first) for first, end in box.values()]
    counts += [frame.extents[a] for a in frame.axes if a not in box]
    if not all(any(_is_empty_with(d, c) for c in counts) for d in nonempty):
        return None
    return box


def _lesser(a: Dim, b: Dim) -> Dim:
    return a if dims.prove_ge(b, a) else dims.minimum(a, b)


def _greater(a: Dim, b: Dim) -> Dim:
    return a if dims.prove_ge(a, b) else dims.maximum(a, b)


def _positive(condition: TirExpr) -> Dim | None:
    """The dimension that `condition` says is above 0."""
    match condition:
        case Binary(kind=">", a=a, b=Imm(value=0)):
            return dim_of(a)
        case _:
            return None


def _is_empty_with(dim: Dim, count: Dim) -> bool:
    """Whether `count` is 0 where `dim` is."""
    return any(dims.equal(dim, d) for d in (count, dims.minimum(1, count)))


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

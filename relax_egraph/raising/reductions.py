"""Reductions as operators: contractions of two or more factors, and reductions of one tensor."""

from collections.abc import Sequence
from string import ascii_lowercase

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float, is_stored
from relax_egraph.ir.expr import Expr, Tuple
from relax_egraph.raising.frame import Frame, Labels, placed
from relax_egraph.raising.indices import Along, axes_in, index_of
from relax_egraph.raising.nests import Nest
from relax_egraph.raising.unreadable import Unreadable
from relax_egraph.raising.values import Sum, Values
from relax_egraph.tir.expr import Binary, BufferLoad, Imm, Intrinsic, TirExpr, TirVar, binary
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.scalar import greatest, least

_REDUCTIONS = {"+": "sum", "*": "prod", "max": "max", "min": "min"}
_COMBINES = {"+": "add", "*": "multiply", "max": "maximum", "min": "minimum"}

Reduced = tuple[Expr, Labels]
"""A tensor, and the axis of each of its dimensions."""


def reduction(values: Values, nest: Nest, target: Labels) -> Expr:
    """The results of `nest`, a reduction, with dimensions in the order of `target`."""
    kind, term = _combined(nest)
    if kind in ("+", "*") and is_stored(nest.buffer.dtype):
        raise Unreadable(f"it accumulates in {nest.buffer.dtype}")
    frame = Frame(tuple(a for a in target if a is not None), nest.axes)
    factors = _factors(term) if kind == "+" and term.dtype != "bool" else [term]
    reduced = _contraction(values, factors, nest, frame) or _single(values, kind, term, nest, target)
    result = placed(values.emit, *reduced, target)
    if reduced[0] in values.sums and result is not reduced[0]:
        known = values.sums[reduced[0]]
        if not known.keepdims and [t for t in target if t is not None] == [*reduced[1]]:
            values.sums[result] = known
    return _with_init(values, kind, nest, result, target)


def _combined(nest: Nest) -> tuple[str, TirExpr]:
    """The function that combines, and the term."""

    def is_own(e: TirExpr) -> bool:
        return isinstance(e, BufferLoad) and e.buffer is nest.buffer and e.indices == nest.at

    match nest.value:
        case Binary(kind=kind, a=a, b=b) if kind in _REDUCTIONS and is_own(a) != is_own(b):
            term = b if is_own(a) else a
        case Binary(kind="or" | "and" as logic, a=a, b=b) if is_own(a) != is_own(b):
            kind, term = {"or": "max", "and": "min"}[logic], b if is_own(a) else a
        case Intrinsic(name="fma", args=(a, b, own)) if is_own(own):
            kind, term = "+", binary("*", a, b)
        case _:
            raise Unreadable(f"{nest.buffer.name} is stored more than once, and is no reduction")
    if any(load.buffer is nest.buffer for load in loads(term)):
        raise Unreadable(f"a reduction reads other elements of {nest.buffer.name}")
    return kind, term


def _with_init(values: Values, kind: str, nest: Nest, result: Expr, target: Labels) -> Expr:
    """`result`, combined with what was there before: nothing, if that is neutral."""
    emit, dtype = values.emit, nest.buffer.dtype
    match nest.init:
        case None:
            before = values.tensors.get(nest.buffer)
            if before is None:
                raise Unreadable(f"{nest.buffer.name} is accumulated from nothing")
            if values.filled.get(nest.buffer) == _neutral(kind, dtype):
                return result
        case Imm(value=value) if value == _neutral(kind, dtype):
            return result
        case init:
            frame = Frame(tuple(a for a in target if a is not None), nest.axes)
            before = values.of(init, frame)
            if not isinstance(init, Imm):
                before = placed(emit, values.whole(init, frame), frame.axes, target)
    return emit(_COMBINES[kind], before, result)


def _neutral(kind: str, dtype: str) -> float | int:
    match kind:
        case "+":
            return 0
        case "*":
            return 1
        case "max":
            return least(dtype)
        case _:
            return greatest(dtype)


def _factors(term: TirExpr) -> list[TirExpr]:
    if isinstance(term, Binary) and term.kind == "*":
        return [*_factors(term.a), *_factors(term.b)]
    return [term]


def _contraction(
    values: Values, factors: Sequence[TirExpr], nest: Nest, frame: Frame
) -> Reduced | None:
    """A product of tensors, none of which has all axes; ``None`` if the term is no such product."""
    every = (*frame.axes, *nest.reduced)
    grouped = _grouped(factors, every)
    if grouped is None:
        return None
    if len(grouped) == 2:
        product = _matmul(values, grouped[0], grouped[1], nest, frame)
        if product is not None:
            return product
    if len(every) > len(ascii_lowercase):
        return None
    letters = dict(zip(every, ascii_lowercase, strict=False))
    terms = [axes_in(f, every) for f in grouped]
    written = ",".join("".join(letters[a] for a in axes) for axes in terms)
    if not {*nest.reduced} <= {a for axes in terms for a in axes}:
        return None
    if not {*frame.axes} <= {a for axes in terms for a in axes}:
        return None
    out = "".join(letters[a] for a in frame.axes)
    whole = frame.among(every)
    operands = [
        values.whole(f, whole.among(axes)) for f, axes in zip(grouped, terms, strict=True)
    ]
    result = values.emit("einsum", Tuple(tuple(operands)), subscripts=f"{written}->{out}")
    return result, frame.axes


def _grouped(factors: Sequence[TirExpr], every: Sequence[TirVar]) -> list[TirExpr] | None:
    """`factors`, with those that have the same axes, or fewer, joined to one another.

    ``None`` if one of them has all axes, or if there is only one.
    """
    groups: list[TirExpr] = []
    for factor in factors:
        axes = {*axes_in(factor, every)}
        for k, group in enumerate(groups):
            own = {*axes_in(group, every)}
            if axes <= own or own <= axes:
                groups[k] = binary("*", group, factor)
                break
        else:
            groups.append(factor)
    if len(groups) < 2 or any(len(axes_in(g, every)) == len(every) for g in groups):
        return None
    return groups


def _matmul(
    values: Values, a: TirExpr, b: TirExpr, nest: Nest, frame: Frame
) -> Reduced | None:
    """``R.matmul`` of `a` and `b`, if one axis is summed that both have."""
    if len(nest.reduced) != 1 or not is_float(a.dtype):
        return None
    (k,) = nest.reduced
    every = (*frame.axes, k)
    left, right = axes_in(a, every), axes_in(b, every)
    if k not in left or k not in right:
        return None
    rows = [x for x in frame.axes if x in left and x not in right]
    columns = [x for x in frame.axes if x in right and x not in left]
    shared = [x for x in frame.axes if x in left and x in right]
    if columns and rows and frame.axes[-1] in rows:
        a, b, rows, columns = b, a, columns, rows
    if len(columns) > 1 or len(rows) + len(columns) + len(shared) < len(frame.axes):
        return None
    if shared and len(rows) > 1:
        return None
    if not rows and columns:  # a row times a matrix
        a, b, rows, columns = a, b, rows, columns
    x_axes = (*shared, *rows, k)
    y_axes = (*shared, k, *columns)
    if shared and not (rows and columns):
        return None
    x = values.whole(a, frame.among(x_axes))
    y = values.whole(b, frame.among(y_axes))
    return values.emit("matmul", x, y), (*shared, *rows, *columns)


def _single(values: Values, kind: str, term: TirExpr, nest: Nest, target: Labels) -> Reduced:
    """A reduction of one tensor, in the order of the dimensions that the term reads."""
    frame = _order(term, nest, target)
    reduced = tuple(k for k, axis in enumerate(frame.axes) if axis in nest.reduced)
    operand = values.whole(term, frame)
    kept = tuple(a for a in frame.axes if a not in nest.reduced)
    over = tuple(None if a in nest.reduced else a for a in frame.axes)
    keepdims = tuple(target) == over and bool(reduced)
    name = _REDUCTIONS[kind]
    if term.dtype == "bool":
        name = {"max": "sum", "min": "prod"}.get(kind, name)
    result = values.emit(name, operand, axis=reduced, keepdims=keepdims)
    if kind == "+":
        count = dims.product(nest.axes[a] for a in nest.reduced)
        values.sums[result] = Sum(operand, reduced, keepdims, count)
    return result, (over if keepdims else kept)


def _order(term: TirExpr, nest: Nest, target: Labels) -> Frame:
    """All axes, in the order in which the load with most of them has them."""
    best: list[TirVar] = []
    for load in loads(term):
        indices = [index_of(i, nest.axes) for i in load.indices]
        order = [i.axis for i in indices if isinstance(i, Along)]
        if len(order) > len(best) and len({*order}) == len(order):
            best = order
    spatial = [a for a in target if a is not None and a not in best]
    rest = [a for a in nest.reduced if a not in best]
    return Frame((*spatial, *best, *rest), nest.axes)

"""Reductions as operators: contractions of two or more factors, and reductions of one tensor."""

from collections.abc import Collection, Sequence
from string import ascii_lowercase

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_stored
from relax_egraph.ir.expr import Expr, Tuple
from relax_egraph.raising.frame import Frame, Labels, placed
from relax_egraph.raising.indices import Along, axes_in, index_of
from relax_egraph.raising.nests import Nest
from relax_egraph.raising.unreadable import Unreadable
from relax_egraph.raising.values import Sum, Values
from relax_egraph.raising.windows import convolved
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
    product = convolved(values, factors, nest) or _contraction(values, factors, nest, frame)
    reduced = product or _single(values, kind, term, nest, target)
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
    """A product of tensors that differ in their axes; ``None`` if the term is no such product."""
    every = (*frame.axes, *nest.reduced)
    groups = _grouped(factors, every)
    terms = [axes_in(g, every) for g in groups]
    if len(groups) < 2 or {*every} != {a for axes in terms for a in axes}:
        return None
    if len(groups) == 2 and len(nest.reduced) == 1:
        product = _matmul(values, groups, nest, frame)
        if product is not None:
            return product
    if len(every) > len(ascii_lowercase) or any(len(t) == len(every) for t in terms):
        return None
    letters = dict(zip(every, ascii_lowercase, strict=False))
    written = ",".join("".join(letters[a] for a in axes) for axes in terms)
    out = "".join(letters[a] for a in frame.axes)
    operands = [values.whole(g, frame.among(t)) for g, t in zip(groups, terms, strict=True)]
    result = values.emit("einsum", Tuple(tuple(operands)), subscripts=f"{written}->{out}")
    return result, frame.axes


def _grouped(factors: Sequence[TirExpr], every: Sequence[TirVar]) -> list[TirExpr]:
    """`factors`, with those joined whose axes are the same, or fewer, unless they are vectors."""
    groups: list[TirExpr] = []
    for factor in factors:
        axes = {*axes_in(factor, every)}
        for k, group in enumerate(groups):
            own = {*axes_in(group, every)}
            if not _is_vector(group, own, factor, axes) and (axes <= own or own <= axes):
                groups[k] = binary("*", group, factor)
                break
        else:
            groups.append(factor)
    return groups


def _is_vector(
    group: TirExpr, own: Collection[TirVar], factor: TirExpr, axes: Collection[TirVar]
) -> bool:
    """Whether two different tensors are multiplied, one of which has a single axis."""
    are_loads = isinstance(group, BufferLoad) and isinstance(factor, BufferLoad)
    return are_loads and group != factor and min(len(own), len(axes)) == 1


def _matmul(values: Values, factors: Sequence[TirExpr], nest: Nest, frame: Frame) -> Reduced | None:
    """``R.matmul`` of two factors that both have the single axis that is summed."""
    (k,) = nest.reduced
    every = (*frame.axes, k)
    if not all(k in axes_in(f, every) for f in factors):
        return None
    rows, columns = (
        [a for a in axes_in(f, frame.axes) if a not in axes_in(other, frame.axes)]
        for f, other in (factors, factors[::-1])
    )
    left, right = factors
    if rows and columns and frame.axes.index(rows[-1]) > frame.axes.index(columns[-1]):
        left, right, rows, columns = right, left, columns, rows
    if not columns and len(axes_in(right, every)) > 1:
        left, right, rows, columns = right, left, columns, rows
    last = (*rows[-1:], *columns[-1:])
    batch = tuple(a for a in frame.axes if a not in last)
    if not columns:
        if len(axes_in(right, every)) > 1:
            return None
        batch, last = (), frame.axes
        x, y = frame.among((*frame.axes, k)), frame.among((k,))
    elif not rows:
        if len(axes_in(left, every)) > 1:
            return None
        x, y = frame.among((k,)), frame.among((*batch, k, *last))
    else:
        x, y = frame.among((*batch, rows[-1], k)), frame.among((*batch, k, columns[-1]))
    product = values.emit("matmul", values.of(left, x), values.of(right, y))
    return product, (*batch, *last)


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

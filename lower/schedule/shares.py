"""Softmax among the stages of rows or columns, in its cheapest operations.

``exp(x - max x)`` is a power of a number that is at most 0.  The sum of these over all ``x`` of the
maximum is at least 1, or NaN: dividing by it is multiplying by its reciprocal, which is computed
once for each sum.  The reciprocals of other sums may overflow.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from relax_egraph.lower.schedule.stages import Axis, Combine, Stage
from relax_egraph.tir.expr import Binary, Buffer, BufferLoad, Imm, Intrinsic, TirExpr, TirVar
from relax_egraph.tir.rewrite import nodes, rewrite, substitute

POWER = "exp_nonpositive"
"""The scalar function for ``exp(x - max x)``."""

UNROUNDED = frozenset({"float32", "float64"})
"""The dtypes of sums whose reciprocal is stored as precisely as it is computed."""

Stages = Mapping[Buffer, Stage]
"""Stages by the buffer they fill."""


def cheapest_softmax(stages: Sequence[Stage]) -> tuple[Stage, ...]:
    """`stages` with powers of nonpositive numbers, and reciprocals of their sums."""
    by_buffer = {s.buffer: s for s in stages}
    divisors = {
        e.b.buffer
        for s in stages
        for e in nodes(s.value)
        if isinstance(e, Binary) and e.kind == "/" and isinstance(e.b, BufferLoad)
    }
    totals = [s for s in stages if s.buffer in divisors and _is_total(s, by_buffer)]
    reciprocals = {s.buffer: _reciprocal(s) for s in totals}

    def changed(stage: Stage) -> Stage:
        def change(e: TirExpr) -> TirExpr:
            match e:
                case Binary(kind="/", a=a, b=BufferLoad(buffer=total, indices=at)):
                    known = reciprocals.get(total)
                    return e if known is None else Binary("*", a, BufferLoad(known.buffer, at))
                case Intrinsic(name="exp") if _over(e, stage.all_axes, by_buffer) is not None:
                    return Intrinsic(POWER, e.args)
                case _:
                    return e

        return replace(stage, value=rewrite(stage.value, change))

    result: list[Stage] = []
    for s in stages:
        result.append(changed(s))
        if (reciprocal := reciprocals.get(s.buffer)) is not None:
            result.append(reciprocal)
    return tuple(result)


def _reciprocal(total: Stage) -> Stage:
    """``1 / total``, for each sum."""
    buffer = Buffer(f"{total.buffer.name}_reciprocal", total.buffer.shape, total.buffer.dtype)
    value = Binary("/", Imm(1.0, buffer.dtype), BufferLoad(total.buffer, total.indices))
    return Stage(buffer.name, buffer, total.axes, total.indices, value)


def _is_total(stage: Stage, stages: Stages) -> bool:
    """Whether `stage` sums ``exp(x - max x)`` over exactly the ``x`` of the maximum."""
    reduction, power = stage.reduction, stage.value
    if stage.buffer.dtype not in UNROUNDED or not _begins_at(stage, "+", 0.0):
        return False
    assert reduction is not None
    of_powers = stages.get(power.buffer) if isinstance(power, BufferLoad) else None
    if of_powers is not None and isinstance(power, BufferLoad):
        axes = zip(of_powers.axes, power.indices, strict=True)
        power = substitute(of_powers.value, {a.var: i for a, i in axes})
    over = _over(power, stage.all_axes, stages)
    return over is not None and over == [a for a in reduction.axes if a.extent != 1]


def _over(power: TirExpr, axes: Sequence[Axis], stages: Stages) -> list[Axis] | None:
    """The axes of the maximum, among `axes`, if `power` is ``exp(x - max x)``."""
    match power:
        case Intrinsic(name="exp", args=(Binary(kind="-", a=x, b=BufferLoad() as top),)):
            highest = stages.get(top.buffer)
        case _:
            return None
    if highest is None or highest.reduction is None or not _begins_at(highest, "max", -inf):
        return None
    free = [a for a in axes if a.var not in top.indices and a.extent != 1]
    over = [a for a in highest.reduction.axes if a.extent != 1]
    if [a.extent for a in free] != [a.extent for a in over]:
        return None
    at: dict[TirVar, TirExpr] = {a.var: i for a, i in zip(highest.axes, top.indices, strict=True)}
    at |= {a.var: b.var for a, b in zip(over, free, strict=True)}
    return free if substitute(highest.value, at) == x else None


def _begins_at(stage: Stage, combine: Combine, start: float) -> bool:
    """Whether `stage` is a reduction by `combine` that begins at `start`."""
    reduction = stage.reduction
    if reduction is None or reduction.combine != combine:
        return False
    return isinstance(reduction.init, Imm) and reduction.init.value == start

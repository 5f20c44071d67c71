"""Index arithmetic: accesses as linear forms in the loop variables."""

from collections.abc import Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.rewrite import loads, operands, variables


def coefficients(expr: TirExpr, variables: Sequence[TirVar]) -> tuple[Dim, ...] | None:
    """The coefficients of `variables` in `expr`; ``None`` if it is not linear in them."""
    match expr:
        case TirVar():
            return tuple(int(v is expr) for v in variables)
        case Binary(kind="+" | "-" as kind, a=left, b=right):
            a, b = coefficients(left, variables), coefficients(right, variables)
            if a is None or b is None:
                return None
            step = dims.add if kind == "+" else dims.sub
            return tuple(map(step, a, b))
        case Binary(kind="*", a=left, b=right):
            for factor, other in ((dim_of(left), right), (dim_of(right), left)):
                if factor is not None:
                    inner = coefficients(other, variables)
                    return inner and tuple(dims.mul(factor, c) for c in inner)
        case _:
            pass
    return None if _depends(expr, variables) else (0,) * len(variables)


def _depends(expr: TirExpr, variables: Sequence[TirVar]) -> bool:
    if isinstance(expr, TirVar):
        return expr in variables
    return any(_depends(child, variables) for child in operands(expr))


def strides(buffer: Buffer) -> tuple[Dim, ...]:
    """The row-major strides of `buffer`, in elements."""
    result: list[Dim] = []
    for k in range(len(buffer.shape)):
        result.append(dims.product(buffer.shape[k + 1 :]))
    return tuple(result)


def steps(
    buffer: Buffer, indices: Sequence[TirExpr], variables: Sequence[TirVar]
) -> tuple[Dim, ...] | None:
    """The strides of ``buffer[indices]`` with respect to the variables, in elements."""
    total: list[Dim] = [0] * len(variables)
    for stride, index in zip(strides(buffer), indices, strict=True):
        own = coefficients(index, variables)
        if own is None:
            return None
        total = [dims.add(t, dims.mul(stride, c)) for t, c in zip(total, own, strict=True)]
    return tuple(total)


def looked_up(indices: Sequence[TirExpr]) -> frozenset[TirVar]:
    """The variables of lookups in `indices`: ``i`` in ``x[table[i], j]``."""
    read = (v for at in indices for load in loads(at) for v in map(variables, load.indices))
    return frozenset[TirVar]().union(*read)


def run_on(load: BufferLoad) -> BufferLoad:
    """The same element without division: ``x[0, q]`` for ``x[q // d, q % d]`` of ``x: (m, d)``.

    After a literal 0, an index may exceed its axis, as if it ran over both axes.
    """
    shape, indices = load.buffer.shape, list(load.indices)
    for last in reversed(range(1, len(indices))):
        match indices[last]:
            case Binary(kind="%", a=whole, b=extent) if dim_of(extent) == shape[last]:
                split = _run(indices[:last], shape, _quotient(whole, shape[last]))
                if split is not None:
                    begin, offset = split
                    size = dims.product(shape[begin + 1 : last + 1])
                    indices[begin:last] = [Imm(0, "int64")] * (last - begin)
                    indices[last] = offset * from_dim(size) + whole
            case _:
                pass
    same = all(a is b for a, b in zip(indices, load.indices, strict=True))
    return load if same else BufferLoad(load.buffer, tuple(indices))


_Quotient = tuple[TirExpr, Dim]
"""``base // divisor``, where ``base`` is not a division itself."""


def _quotient(base: TirExpr, divisor: Dim) -> _Quotient:
    while isinstance(base, Binary) and base.kind == "//":
        by = dim_of(base.b)
        if by is None:
            break
        base, divisor = base.a, dims.mul(divisor, by)
    return base, divisor


def _run(
    before: Sequence[TirExpr], shape: Sequence[Dim], rest: _Quotient
) -> tuple[int, TirExpr] | None:
    """The number of the first index that is part of `rest`, and the term added to it.

    The indices from there to the end of `before` split `rest` into digits.
    """
    for k in reversed(range(len(before))):
        index = before[k]
        if _quotient(index, 1) == rest:
            return k, Imm(0, "int64")
        match index:
            case Binary(kind="+", a=offset, b=part) if _quotient(part, 1) == rest:
                return k, offset
            case Binary(kind="%", a=part, b=extent) if (
                dim_of(extent) == shape[k] and _quotient(part, 1) == rest
            ):
                rest = _quotient(rest[0], dims.mul(rest[1], shape[k]))
            case _:
                return None
    return None

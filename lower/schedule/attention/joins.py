"""Keys and values that are concatenated from several tensors, each read in place."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.index import coefficients, steps, strides
from relax_egraph.lower.schedule.stages import Axis
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Binary, BufferLoad, Imm, Select, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import substitute
from relax_egraph.tir.simplify import Extents, simplify_index


@dataclass(frozen=True, slots=True)
class Piece:
    """A load of `extent` elements from `first` on, in terms of the variable of the whole axis."""

    first: Dim
    extent: Dim
    load: BufferLoad


def is_moved(value: TirExpr) -> bool:
    """Whether `value` is a load, perhaps selected from several tensors."""
    match value:
        case BufferLoad():
            return True
        case Select(a=a, b=b, lazy=True):
            return is_moved(a) and is_moved(b)
        case _:
            return False


def pieces_of(value: TirExpr, axis: Axis) -> tuple[Piece, ...] | None:
    """The pieces of `axis`, each read from one tensor; ``None`` if `value` has another form."""
    pieces: list[Piece] = []
    first: Dim = 0
    while isinstance(value, Select):
        match value:
            case Select(condition=Binary(kind="<", a=a, b=b), a=BufferLoad() as load):
                end = dim_of(b)
                if a is not axis.var or end is None:
                    return None
                pieces.append(Piece(first, dims.sub(end, first), load))
                first, value = end, value.b
            case _:
                return None
    if not isinstance(value, BufferLoad):
        return None
    return (*pieces, Piece(first, dims.sub(axis.extent, first), value))


def together(a: Sequence[Piece], b: Sequence[Piece]) -> list[tuple[Piece, Piece]] | None:
    """The pairs of pieces of both; ``None`` unless they are cut at the same positions."""
    if len(a) == 1 or len(b) == 1:
        cut = a if len(b) == 1 else b
        a, b = ([replace(p, load=x[0].load) if len(x) == 1 else p for p in cut] for x in (a, b))
    pairs = [*zip(a, b, strict=False)]
    same = len(a) == len(b) and all(dims.equal(x.first, y.first) for x, y in pairs)
    return pairs if same else None


def counted_from(load: BufferLoad, var: TirVar, piece: Piece, own: TirVar) -> BufferLoad:
    """`load` along a piece, where `own`, which starts at 0, replaces `var`."""
    return BufferLoad(load.buffer, tuple(_shifted(i, var, piece.first, own) for i in load.indices))


def _shifted(index: TirExpr, var: TirVar, first: Dim, own: TirVar) -> TirExpr:
    step = coefficients(index, (var,))
    if step is None:
        return substitute(index, {var: own + from_dim(first)})
    rest = substitute(index, {var: from_dim(first)})
    dim = dim_of(rest)
    rest = rest if dim is None else from_dim(dim)
    return rest if step[0] == 0 else own * from_dim(step[0]) + rest


def in_line(load: BufferLoad, extents: Extents) -> BufferLoad:
    """`load` by its address, if that is linear in the variables but its indices are not."""
    buffer, axes = load.buffer, [*extents]
    if steps(buffer, load.indices, axes) is not None or not load.indices:
        return load
    address: TirExpr = Imm(0, "int64")
    for index, stride in zip(load.indices, strides(buffer), strict=True):
        address = address + index * from_dim(stride)
    address = simplify_index(address, extents)
    first = (Imm(0, "int64"),) * (len(load.indices) - 1)
    return load if coefficients(address, axes) is None else BufferLoad(buffer, (*first, address))

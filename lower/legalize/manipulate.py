"""Operators that move elements: index arithmetic."""

from collections.abc import Mapping, Sequence

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.ops.manipulate import unit_axes
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.tir import te
from relax_egraph.tir.expr import Imm, TirExpr, TirVar, from_dim
from relax_egraph.tir.simplify import Extents, simplify_index


def permute_dims(x: te.Tensor, *, axes: tuple[int, ...] | None) -> te.Tensor:
    """``out`` has axis ``k`` of extent ``x.shape[axes[k]]``; without `axes`, all reversed."""
    rank = len(x.shape)
    order = tuple(reversed(range(rank))) if axes is None else tuple(a % rank for a in axes)

    def value(*i: TirVar) -> TirExpr:
        return x[tuple(i[order.index(k)] for k in range(rank))]

    return te.compute([x.shape[a] for a in order], value, "permute_dims")


def broadcast_to(x: te.Tensor, shape: Shape) -> te.Tensor:
    """`x` repeated along new leading axes and axes of extent 1."""
    broadcast(x.shape, shape)
    return te.compute(shape, lambda *i: element(x, shape, i), "broadcast_to")


def expand_dims(x: te.Tensor, *, axis: tuple[int, ...]) -> te.Tensor:
    """New axes of extent 1 at the places `axis` of the result."""
    rank = len(x.shape) + len(axis)
    kept = [k for k in range(rank) if k not in {a % rank for a in axis}]
    shape: list[Dim] = [1] * rank
    for place, extent in zip(kept, x.shape, strict=True):
        shape[place] = extent
    return te.compute(shape, lambda *i: x[tuple(i[k] for k in kept)], "expand_dims")


def squeeze(x: te.Tensor, *, axis: tuple[int, ...] | None) -> te.Tensor:
    """`x` without the axes `axis`, each of extent 1; by default without all such."""
    axis = unit_axes(x.shape) if axis is None else axis
    if axis is None:
        raise NotLowerable("which axes have extent 1 is known only at run time")
    places = {a % len(x.shape) for a in axis}
    if not all(dims.equal(x.shape[p], 1) for p in places):
        raise NotLowerable("whether the axes to squeeze have extent 1 is known only at run time")
    shape = [d for k, d in enumerate(x.shape) if k not in places]

    def value(*i: TirVar) -> TirExpr:
        kept = iter(i)
        return x[tuple(0 if k in places else next(kept) for k in range(len(x.shape)))]

    return te.compute(shape, value, "squeeze")


def flatten(x: te.Tensor) -> te.Tensor:
    """The elements of `x` in row-major order, in one axis."""
    return _viewed(x, (dims.product(x.shape),), "flatten")


def batch_flatten(data: te.Tensor) -> te.Tensor:
    """The elements of `data` in row-major order, in two axes: the first, and the rest."""
    return _viewed(data, (data.shape[0], dims.product(data.shape[1:])), "batch_flatten")


def reshape(x: te.Tensor, shape: Shape) -> te.Tensor:
    """The elements of `x` in row-major order, in the given shape."""
    if not dims.equal(dims.product(x.shape), dims.product(shape)):
        raise NotLowerable("whether the elements fill the shape is known only at run time")
    return _viewed(x, shape, "reshape")


def _viewed(x: te.Tensor, shape: Shape, name: str) -> te.Tensor:
    groups = matched(x.shape, shape)

    def value(*i: TirVar) -> TirExpr:
        extents = dict(zip(i, shape, strict=True))
        at: list[TirExpr] = []
        taken = 0
        for inner, outer in groups:
            at.extend(_unflattened(inner, outer, i[taken : taken + len(outer)], extents))
            taken += len(outer)
        return x[tuple(at)]

    return te.compute(shape, value, name)


def matched(source: Shape, target: Shape) -> list[tuple[Shape, Shape]]:
    """`source` and `target` cut into the shortest runs whose products are proven equal.

    The products of the whole shapes are equal.  An extent that is on both sides is a run of
    its own, so that its index needs no division.
    """
    if source and target and source[-1] == target[-1]:
        return [*matched(source[:-1], target[:-1]), (source[-1:], target[-1:])]
    runs: list[tuple[Shape, Shape]] = []
    rest, wanted = list(source), list(target)
    while rest and wanted:
        left, right = [rest.pop(0)], [wanted.pop(0)]
        while not dims.equal(a := dims.product(left), b := dims.product(right)):
            if rest and (not wanted or _lacks(a, b)):
                left.append(rest.pop(0))
            elif wanted and (not rest or _lacks(b, a)):
                right.append(wanted.pop(0))
            else:
                left, right = [*left, *rest], [*right, *wanted]
                rest, wanted = [], []
                break
        runs.append((tuple(left), tuple(right)))
    return [*runs, (tuple(rest), tuple(wanted))]


def _lacks(a: Dim, b: Dim) -> bool:
    """Whether a run of product `a` is to grow to meet one of product `b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return dims.divides(a, b)


def _unflattened(
    inner: Shape, outer: Shape, i: Sequence[TirVar], extents: Extents
) -> list[TirExpr]:
    """The indices into `inner` of the element at `i` of `outer`, in row-major order."""
    flat: TirExpr = Imm(0, "int64")
    for axis, extent in zip(i, outer, strict=True):
        flat = flat * from_dim(extent) + (Imm(0, "int64") if extent == 1 else axis)
    at: list[TirExpr] = []
    for k, extent in enumerate(inner):
        stride = dims.product(inner[k + 1 :])
        index = flat // from_dim(stride)
        if extent == 1:
            at.append(Imm(0, "int64"))
            continue
        is_first = all(d == 1 for d in inner[:k])
        at.append(simplify_index(index if is_first else index % from_dim(extent), extents))
    return at


LEGALIZE: Mapping[str, Legalize] = {
    "permute_dims": permute_dims,
    "broadcast_to": broadcast_to,
    "reshape": reshape,
    "flatten": flatten,
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "nn.batch_flatten": batch_flatten,
}

"""Operators that move elements by index arithmetic."""

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
    """The transpose: axis ``k`` has extent ``x.shape[axes[k]]``; by default axes are reversed."""
    rank = len(x.shape)
    order = tuple(reversed(range(rank))) if axes is None else tuple(a % rank for a in axes)

    def value(*i: TirVar) -> TirExpr:
        return x[tuple(i[order.index(k)] for k in range(rank))]

    return te.compute([x.shape[a] for a in order], value, "permute_dims")


def broadcast_to(x: te.Tensor, shape: Shape) -> te.Tensor:
    """`x` repeated along new leading axes and along axes of extent 1."""
    broadcast(x.shape, shape)
    return te.compute(shape, lambda *i: element(x, shape, i), "broadcast_to")


def expand_dims(x: te.Tensor, *, axis: tuple[int, ...]) -> te.Tensor:
    """`x` with new axes of extent 1 at the positions `axis` of the result."""
    rank = len(x.shape) + len(axis)
    kept = [k for k in range(rank) if k not in {a % rank for a in axis}]
    shape: list[Dim] = [1] * rank
    for place, extent in zip(kept, x.shape, strict=True):
        shape[place] = extent
    return te.compute(shape, lambda *i: x[tuple(i[k] for k in kept)], "expand_dims")


def squeeze(x: te.Tensor, *, axis: tuple[int, ...] | None) -> te.Tensor:
    """`x` without the axes `axis`, by default without all axes of extent 1."""
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
    """The elements of `data` in row-major order, in two axes: the first axis, and the rest."""
    return _viewed(data, (data.shape[0], dims.product(data.shape[1:])), "batch_flatten")


def reshape(x: te.Tensor, shape: Shape) -> te.Tensor:
    """The elements of `x` in row-major order, in `shape`."""
    if not dims.equal(dims.product(x.shape), dims.product(shape)):
        raise NotLowerable("whether the elements fill the shape is known only at run time")
    return _viewed(x, shape, "reshape")


def _viewed(x: te.Tensor, shape: Shape, name: str) -> te.Tensor:
    groups = matched(x.shape, shape)

    def value(*i: TirVar) -> TirExpr:
        extents = dict(zip(i, shape, strict=True))
        at: list[TirExpr] = []
        position = 0
        for inner, outer in groups:
            at.extend(_unflattened(inner, outer, i[position : position + len(outer)], extents))
            position += len(outer)
        return x[tuple(at)]

    return te.compute(shape, value, name)


def matched(source: Shape, target: Shape) -> list[tuple[Shape, Shape]]:
    """`source` and `target`, cut into the shortest runs with proven equal products.

    The products of the whole shapes must be equal.  An extent on both sides becomes a run of its
    own, so that its index needs no division.
    """
    if source and target and source[-1] == target[-1]:
        return [*matched(source[:-1], target[:-1]), (source[-1:], target[-1:])]
    runs: list[tuple[Shape, Shape]] = []
    rest, targets = list(source), list(target)
    while rest and targets:
        left, right = [rest.pop(0)], [targets.pop(0)]
        while not dims.equal(a := dims.product(left), b := dims.product(right)):
            if rest and (not targets or _is_shorter(a, b)):
                left.append(rest.pop(0))
            elif targets and (not rest or _is_shorter(b, a)):
                right.append(targets.pop(0))
            else:
                left, right = [*left, *rest], [*right, *targets]
                rest, targets = [], []
                break
        runs.append((tuple(left), tuple(right)))
    return [*runs, (tuple(rest), tuple(targets))]


def _is_shorter(a: Dim, b: Dim) -> bool:
    """Whether a run of product `a` must grow to match one of product `b`."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return dims.divides(a, b)


def _unflattened(
    inner: Shape, outer: Shape, i: Sequence[TirVar], extents: Extents
) -> list[TirExpr]:
    """The indices into `inner` of the element at index `i` of `outer`, in row-major order."""
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

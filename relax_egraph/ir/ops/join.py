"""Operators that join, cut and repeat tensors."""

from itertools import pairwise

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import Shape, StructInfo, TensorStructInfo, TupleStructInfo, tensor


def tensors_of(name: str, operands: TupleStructInfo) -> tuple[TensorStructInfo, ...]:
    """The tensors that are one operand of R.`name`; raises `IllTyped` if there is none."""
    if not operands.fields:
        raise IllTyped(f"R.{name} of nothing: needs one tensor or more")
    return tuple(f for f in operands.fields if isinstance(f, TensorStructInfo))


def inserted_axis(name: str, x: TensorStructInfo, axis: int) -> int:
    """The place of a new axis in the result, counted from the front."""
    rank = x.ndim + 1
    if not -rank <= axis < rank:
        raise IllTyped(f"R.{name} of {x}: axis {axis} is outside of the result's rank {rank}")
    return axis % rank


@op()
def concat(tensors: TupleStructInfo, *, axis: int | None = 0) -> StructInfo:
    """``out`` is `tensors` one behind the other along `axis`; by default of their elements.

    They agree in all other extents.  With ``axis=None`` each is flattened first.
    """
    parts = tensors_of("concat", tensors)
    dtype = _one_dtype("concat", parts)
    if axis is None:
        counts = [None if p.dims is None else dims.product(p.dims) for p in parts]
        return tensor(_total(counts), dtype, 1)
    ranks = {p.ndim for p in parts if p.ndim >= 0}
    if len(ranks) > 1:
        raise IllTyped(f"R.concat of {_listed(parts)}: needs tensors of one rank")
    if not ranks:
        return tensor(None, dtype)
    first = next(p for p in parts if p.ndim >= 0)
    place = normalize_axis("concat", first, axis)
    rest = _agreed("concat", parts, place)
    joined = _total([None if p.dims is None else p.dims[place] for p in parts])
    if rest is None or joined is None:
        return tensor(None, dtype, first.ndim)
    return tensor((*rest[:place], *joined, *rest[place + 1 :]), dtype)


@op()
def stack(tensors: TupleStructInfo, *, axis: int = 0) -> StructInfo:
    """``out`` is `tensors`, all of one shape, side by side along a new axis `axis`."""
    parts = tensors_of("stack", tensors)
    dtype = _one_dtype("stack", parts)
    if len({p.ndim for p in parts if p.ndim >= 0}) > 1:
        raise IllTyped(f"R.stack of {_listed(parts)}: needs tensors of one shape")
    first = next((p for p in parts if p.ndim >= 0), parts[0])
    if first.ndim < 0:
        return tensor(None, dtype)
    place = inserted_axis("stack", first, axis)
    shape = _agreed("stack", parts, None)
    if shape is None:
        return tensor(None, dtype, first.ndim + 1)
    return tensor((*shape[:place], len(parts), *shape[place:]), dtype)


@op()
def split(
    x: TensorStructInfo, *, indices_or_sections: int | tuple[int, ...], axis: int = 0
) -> StructInfo:
    """``out`` is the parts of `x` along `axis`, as a tuple: so many, or cut before the indices.

    So many parts are of extent ``⌈d / parts⌉``, except that the last ones are smaller, or empty, if
    that does not divide ``d``.  An index beyond the end is the end.
    """
    count = part_count(x, indices_or_sections)
    if x.ndim < 0:
        return TupleStructInfo((tensor(None, x.dtype),) * count)
    place = normalize_axis("split", x, axis)
    if x.dims is None:
        return TupleStructInfo((tensor(None, x.dtype, x.ndim),) * count)
    head, tail = x.dims[:place], x.dims[place + 1 :]
    bounds = split_bounds(x.dims[place], indices_or_sections)
    parts = (tensor((*head, dims.sub(b, a), *tail), x.dtype) for a, b in pairwise(bounds))
    return TupleStructInfo(tuple(parts))


def part_count(x: TensorStructInfo, indices_or_sections: int | tuple[int, ...]) -> int:
    """The number of parts of a split."""
    if isinstance(indices_or_sections, int):
        if indices_or_sections < 1:
            raise IllTyped(f"R.split of {x} into {indices_or_sections} parts: needs 1 or more")
        return indices_or_sections
    if any(a > b for a, b in pairwise((0, *indices_or_sections))):
        raise IllTyped(
            f"R.split of {x} at {list(indices_or_sections)}: needs indices that ascend from 0"
        )
    return len(indices_or_sections) + 1


def split_bounds(extent: Dim, indices_or_sections: int | tuple[int, ...]) -> tuple[Dim, ...]:
    """The bounds of the parts of an axis of `extent`: each start, and the end of the last."""
    if not isinstance(indices_or_sections, int):
        return (0, *(dims.minimum(i, extent) for i in indices_or_sections), extent)
    count = indices_or_sections
    if dims.divides(count, extent):
        each = dims.floordiv(extent, count)
        return tuple(dims.mul(k, each) for k in range(count + 1))
    each = dims.floordiv(dims.add(extent, count - 1), count)
    inner = (dims.minimum(dims.mul(k, each), extent) for k in range(2, count))
    return (0, *((each,) if count > 1 else ()), *inner, extent)


@op()
def meshgrid(tensors: TupleStructInfo, *, indexing: str = "ij") -> StructInfo:
    """``out[k][i₀, i₁, …] = tensors[k][iₖ]``, as a tuple; ``"xy"`` swaps the first two axes."""
    parts = tensors_of("meshgrid", tensors)
    if any(p.ndim not in (-1, 1) for p in parts):
        raise IllTyped(f"R.meshgrid of {_listed(parts)}: needs tensors of rank 1")
    if indexing not in ("ij", "xy"):
        raise IllTyped(f'R.meshgrid: indexing is "{indexing}", needs "ij" or "xy"')
    order = meshgrid_order(len(parts), indexing)
    extents = [d for k in order for d in parts[k].dims or ()]
    known = tuple(extents) if len(extents) == len(parts) else None
    return TupleStructInfo(tuple(tensor(known, p.dtype, len(parts)) for p in parts))


def meshgrid_order(count: int, indexing: str) -> list[int]:
    """For each axis of a grid, which of `count` tensors runs along it."""
    order = list(range(count))
    return [1, 0, *order[2:]] if indexing == "xy" and count > 1 else order


def _listed(parts: tuple[TensorStructInfo, ...]) -> str:
    return ", ".join(map(str, parts))


def _one_dtype(name: str, parts: tuple[TensorStructInfo, ...]) -> str | None:
    dtypes = {p.dtype for p in parts}
    if len(dtypes - {None}) > 1:
        raise IllTyped(f"R.{name} of {_listed(parts)}: needs tensors of one dtype")
    return dtypes.pop() if len(dtypes) == 1 else None


def _total(extents: list[Dim | None]) -> tuple[Dim] | None:
    """The sum of `extents`, as a shape; ``None`` if one is unknown."""
    total: Dim = 0
    for extent in extents:
        if extent is None:
            return None
        total = dims.add(total, extent)
    return (total,)


def _agreed(name: str, parts: tuple[TensorStructInfo, ...], skip: int | None) -> Shape | None:
    """The common shape of `parts`, except at the axis `skip`; a number where a part has one.

    ``None`` if no shape is known.
    """
    shapes = [p.dims for p in parts if p.dims is not None]
    if not shapes:
        return None
    agreed = list(shapes[0])
    for shape in shapes[1:]:
        for k, extent in enumerate(shape):
            if k != skip and differ(agreed[k], extent):
                where = "" if skip is None else f" but for axis {skip}"
                raise IllTyped(f"R.{name} of {_listed(parts)}: needs tensors of one shape{where}")
            if isinstance(extent, int):
                agreed[k] = extent
    return tuple(agreed)

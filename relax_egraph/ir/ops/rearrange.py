"""Operators that repeat and reverse elements."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.manipulate import normalize_axis
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor


@op()
def tile(data: TensorStructInfo, *, repeats: tuple[int, ...]) -> StructInfo:
    """``out`` is `data` so many times along each axis; the shorter of both gets leading ones."""
    if any(r < 0 for r in repeats):
        raise IllTyped(f"R.tile of {data}: repeats {list(repeats)}, needs 0 or more")
    if data.ndim < 0:
        return tensor(None, data.dtype)
    rank = max(data.ndim, len(repeats))
    if data.dims is None:
        return tensor(None, data.dtype, rank)
    times = (1,) * (rank - len(repeats)) + repeats
    shape = (1,) * (rank - data.ndim) + data.dims
    return tensor(tuple(map(dims.mul, shape, times)), data.dtype)


@op()
def repeat(data: TensorStructInfo, *, repeats: int, axis: int | None = None) -> StructInfo:
    """``out`` is each slice of `data` along `axis` so many times; by default each element, flat."""
    if repeats < 0:
        raise IllTyped(f"R.repeat of {data}: repeats {repeats}, needs 0 or more")
    if axis is None:
        count = None if data.dims is None else dims.mul(dims.product(data.dims), repeats)
        return tensor(None if count is None else (count,), data.dtype, 1)
    if data.ndim < 0:
        return tensor(None, data.dtype)
    place = normalize_axis("repeat", data, axis)
    if data.dims is None:
        return tensor(None, data.dtype, data.ndim)
    shape = [dims.mul(d, repeats) if k == place else d for k, d in enumerate(data.dims)]
    return tensor(tuple(shape), data.dtype)


@op()
def flip(data: TensorStructInfo, *, axis: int) -> StructInfo:
    """``out`` is `data` in reverse order along `axis`."""
    if data.ndim >= 0:
        normalize_axis("flip", data, axis)
    return tensor(data.dims, data.dtype, data.ndim)


@op()
def reverse_sequence(
    data: TensorStructInfo,
    seq_lengths: TensorStructInfo,
    *,
    seq_axis: int = 1,
    batch_axis: int = 0,
) -> StructInfo:
    """``out`` is `data` with the first ``seq_lengths[b]`` slices along `seq_axis` in reverse order.

    ``b`` is the index along `batch_axis`; a length is held between 0 and the extent.
    """
    subject = f"R.reverse_sequence of {data} and {seq_lengths}"
    if seq_lengths.ndim not in (-1, 1):
        raise IllTyped(f"{subject}: seq_lengths has rank {seq_lengths.ndim}, needs 1")
    if seq_lengths.dtype is not None and seq_lengths.dtype not in ("int32", "int64"):
        raise IllTyped(f"{subject}: seq_lengths needs int32 or int64")
    if data.ndim < 0:
        return tensor(None, data.dtype)
    places = [normalize_axis("reverse_sequence", data, a) for a in (seq_axis, batch_axis)]
    if places[0] == places[1]:
        raise IllTyped(f"{subject}: seq_axis and batch_axis are both axis {places[0]}")
    if data.dims is not None and seq_lengths.dims is not None:
        batch = data.dims[places[1]]
        if differ(seq_lengths.dims[0], batch):
            raise IllTyped(f"{subject}: needs {dims.text(batch)} lengths")
    return tensor(data.dims, data.dtype, data.ndim)

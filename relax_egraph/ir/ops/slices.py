"""Slices of symbolic extents: the first position and the number of elements.

The positions are those of Python's ``slice(begin, end, stride)``.
"""

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

BEYOND = 1 << 62
"""Above every extent; ends that mean "all" are often this great."""


def slice_of(extent: Dim, begin: Dim, end: Dim, stride: int) -> tuple[Dim, Dim] | None:
    """The first position and the count of ``slice(begin, end, stride)`` over `extent`.

    ``None`` if it is not known whether `begin` and `end` count from the end.  `stride` is not 0.
    """
    least, most = (0, extent) if stride > 0 else (-1, dims.sub(extent, 1))
    first, last = (_position(at, extent, least, most) for at in (begin, end))
    if first is None or last is None:
        return None
    # Only one side is clamped: a slice that begins past its end is empty.
    if stride > 0:
        stop = _lesser(last, most)
        span = _lesser(dims.sub(stop, first), stop)
        return _greater(first, least), _count(span, stride)
    stop = _greater(last, least)
    start = _lesser(first, most)
    return start, _count(dims.sub(start, stop), -stride)


def slice_inbound(extent: Dim, begin: Dim, end: Dim, stride: int) -> tuple[Dim, Dim]:
    """`slice_of` where the caller promises that nothing is clamped.

    A position that is not proven to be negative does not count from the end.
    """
    first, last = (dims.add(at, extent) if dims.prove_ge(-1, at) else at for at in (begin, end))
    span = dims.sub(last, first) if stride > 0 else dims.sub(first, last)
    return first, _rounded(span, abs(stride))


def is_never_inbound(extent: Dim, begin: Dim, end: Dim, stride: int) -> bool:
    """Whether ``slice(begin, end, stride)`` is clamped for all values of symbols."""
    if not (isinstance(begin, int) and isinstance(end, int)):
        return False
    if isinstance(extent, int):
        return not is_inbound(extent, begin, end, stride)
    return max(abs(begin), abs(end)) >= BEYOND


def is_inbound(extent: int, begin: int, end: int, stride: int) -> bool:
    """Whether nothing of ``slice(begin, end, stride)`` is clamped, as `slice_inbound` assumes."""
    first, last = (at + extent if at < 0 else at for at in (begin, end))
    return 0 <= first <= last <= extent if stride > 0 else -1 <= last <= first < extent


def _position(at: Dim, extent: Dim, least: Dim, most: Dim) -> Dim | None:
    """`at`, counted from the front; it may lie outside of the axis."""
    if isinstance(at, int) and abs(at) >= BEYOND:
        return most if at > 0 else least
    if dims.prove_ge(-1, at):
        return dims.add(at, extent)
    # `extent - 1` is negative only where the extent is 0: both ends agree there.
    if dims.prove_ge(at, 0) or dims.equal(at, dims.sub(extent, 1)):
        return at
    return None


def _count(span: Dim, stride: int) -> Dim:
    return _greater(_rounded(span, stride), 0)


def _rounded(span: Dim, stride: int) -> Dim:
    return span if stride == 1 else dims.floordiv(dims.add(span, stride - 1), stride)


def _lesser(a: Dim, b: Dim) -> Dim:
    if dims.prove_ge(b, a):
        return a
    return b if dims.prove_ge(a, b) else dims.minimum(a, b)


def _greater(a: Dim, b: Dim) -> Dim:
    if dims.prove_ge(a, b):
        return a
    return b if dims.prove_ge(b, a) else dims.maximum(a, b)

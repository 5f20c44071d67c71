"""Rotary position embedding, in the namespace ``R.nn``."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.operand_checks import one_float, subject_of
from relax_egraph.ir.requirements import differ, exceeds, misfits
from relax_egraph.ir.struct_info import (
    Shape,
    StructInfo,
    TensorStructInfo,
    shape_text,
    tensor,
)


@op("nn")
def rotary_embedding(
    x: TensorStructInfo,
    cos: TensorStructInfo,
    sin: TensorStructInfo,
    *,
    interleaved: bool = False,
) -> StructInfo:
    """``out = x · cos + turned(x) · sin``, where each pair ``(a, b)`` is turned to ``(-b, a)``.

    Pairs are along the last axis: element ``i`` of the first half and of the second, or
    `interleaved`, elements ``2i`` and ``2i + 1``.  `cos` and `sin` are of one shape, of which all
    but the last axis broadcast to `x`.  They have a value for each element of `x`, or one for each
    pair; of fewer pairs than `x` has, these are in its first elements, and the rest stays.
    """
    subject = subject_of("nn.rotary_embedding", x, cos, sin)
    dtype = one_float(subject, x, cos, sin)
    for what, info in (("x", x), ("cos", cos), ("sin", sin)):
        if info.ndim == 0:
            raise IllTyped(f"{subject}: {what} has rank 0, needs at least 1")
    if cos.dims is not None and sin.dims is not None and _differ(cos.dims, sin.dims):
        raise IllTyped(
            f"{subject}: cos has shape {shape_text(cos.dims)} and sin {shape_text(sin.dims)}, "
            "need one shape"
        )
    for what, info in (("cos", cos), ("sin", sin)):
        if -1 < x.ndim < info.ndim:
            raise IllTyped(f"{subject}: {what} has rank {info.ndim}, needs at most {x.ndim}")
        if x.dims is not None and info.dims is not None:
            _check_fit(subject, what, info.dims, x.dims)
    return tensor(x.dims, dtype, x.ndim)


def _differ(a: Shape, b: Shape) -> bool:
    return len(a) != len(b) or any(map(differ, a, b))


def _check_fit(subject: str, what: str, angle: Shape, x: Shape) -> None:
    *repeated, count = angle
    *leading, size = x
    pairs = zip(repeated, leading[len(leading) - len(repeated) :], strict=True)
    if any(misfits(a, b) for a, b in pairs):
        raise IllTyped(
            f"{subject}: {what} has shape {shape_text(angle)}, whose axes but the last "
            f"do not broadcast to those of {shape_text(x)}"
        )
    if differ(count, size) and exceeds(dims.mul(count, 2), size):
        raise IllTyped(
            f"{subject}: {what} has {dims.text(count)} values for {dims.text(size)} elements, "
            f"needs {dims.text(size)}, or at most half as many"
        )
    if count == size and differ(dims.mod(size, 2), 0):
        raise IllTyped(f"{subject}: {dims.text(size)} elements are no pairs")

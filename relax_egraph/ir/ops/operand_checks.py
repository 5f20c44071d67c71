"""Checks of operands that several families of operators share: dtype, rank and shape."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, shape_text


def subject_of(name: str, *infos: TensorStructInfo) -> str:
    """The subject of a message: ``R.add of R.Tensor((2,), "float32"), R.Tensor(())``."""
    return f"R.{name} of {', '.join(map(str, infos))}"


def one_float(subject: str, *infos: TensorStructInfo) -> str | None:
    """The dtype of the first operand; raises `IllTyped` unless all have one floating dtype."""
    known = {i.dtype for i in infos if i.dtype is not None}
    if any(not is_float(dtype) for dtype in known):
        raise IllTyped(f"{subject}: needs floating-point tensors")
    if len(known) > 1:
        raise IllTyped(f"{subject}: needs operands of one dtype")
    return infos[0].dtype


def has_rank(subject: str, what: str, info: TensorStructInfo, rank: int) -> None:
    """Raise `IllTyped` if the operand `what` is proven not to have `rank`."""
    if info.ndim not in (-1, rank):
        raise IllTyped(f"{subject}: {what} has rank {info.ndim}, needs {rank}")


def has_shape(subject: str, what: str, info: TensorStructInfo, wanted: Shape | None) -> None:
    """Raise `IllTyped` if the operand `what` is proven to differ from the shape `wanted`.

    Both have one rank.  An unknown shape, on either side, is accepted.
    """
    if info.dims is None or wanted is None:
        return
    if any(differ(a, b) for a, b in zip(info.dims, wanted, strict=True)):
        raise IllTyped(
            f"{subject}: {what} has shape {shape_text(info.dims)}, needs {shape_text(wanted)}"
        )


def is_vector(subject: str, what: str, info: TensorStructInfo, extent: Dim | None) -> None:
    """Raise `IllTyped` if the operand `what` is proven to be no vector of `extent` elements."""
    has_rank(subject, what, info, 1)
    has_shape(subject, what, info, None if extent is None else (extent,))

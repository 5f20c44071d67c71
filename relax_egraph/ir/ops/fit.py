"""What the rules of normalisations, attention, losses and quantisation ask of their operands."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.requirements import differ
from relax_egraph.ir.struct_info import Shape, TensorStructInfo, shape_text


def asked(name: str, *infos: TensorStructInfo) -> str:
    """How messages name an application: ``R.add of R.Tensor((2,), "float32"), R.Tensor(())``."""
    return f"R.{name} of {', '.join(map(str, infos))}"


def one_float(said: str, *infos: TensorStructInfo) -> str | None:
    """The dtype of the first of `infos`, all of which are of one floating dtype."""
    known = {i.dtype for i in infos if i.dtype is not None}
    if any(not is_float(dtype) for dtype in known):
        raise IllTyped(f"{said}: needs floating-point tensors")
    if len(known) > 1:
        raise IllTyped(f"{said}: needs operands of one dtype")
    return infos[0].dtype


def has_rank(said: str, what: str, info: TensorStructInfo, rank: int) -> None:
    """Refuse the operand `what` if it is proven not to have `rank`."""
    if info.ndim not in (-1, rank):
        raise IllTyped(f"{said}: {what} has rank {info.ndim}, needs {rank}")


def has_shape(said: str, what: str, info: TensorStructInfo, wanted: Shape | None) -> None:
    """Refuse the operand `what`, of the rank of `wanted`, if it is proven not to have that shape.

    Nothing is refused where ``None`` says that what is wanted is not known.
    """
    if info.dims is None or wanted is None:
        return
    if any(differ(a, b) for a, b in zip(info.dims, wanted, strict=True)):
        raise IllTyped(
            f"{said}: {what} has shape {shape_text(info.dims)}, needs {shape_text(wanted)}"
        )


def is_vector(said: str, what: str, info: TensorStructInfo, extent: Dim | None) -> None:
    """Refuse the operand `what` if it is proven to be no vector of `extent` elements."""
    has_rank(said, what, info, 1)
    has_shape(said, what, info, None if extent is None else (extent,))

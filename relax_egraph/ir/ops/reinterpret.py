"""Elements taken for elements of another dtype, bit by bit."""

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import TABLE
from relax_egraph.ir.op import op
from relax_egraph.ir.ops.create import integer, known_dtype
from relax_egraph.ir.requirements import exceeds
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    shape_text,
    tensor,
)


@op()
def reinterpret(
    data: TensorStructInfo,
    shape: ShapeStructInfo,
    offset: PrimStructInfo | None = None,
    *,
    dtype: str | None = None,
) -> StructInfo:
    """The bytes of `data` from byte `offset` on, by default 0, as the elements of a tensor.

    Its dtype is by default that of `data`, which may have more bytes.  Bytes are in the order of
    the machine; of ``bool`` each byte but 0 is true.
    """
    wanted = data.dtype if dtype is None else known_dtype("reinterpret", dtype)
    start = 0 if offset is None else integer("reinterpret", "the offset", offset).value
    if isinstance(start, int) and start < 0:
        raise IllTyped(f"R.reinterpret: the offset is {start}, needs 0 or more")
    result = tensor(shape.values, wanted, shape.ndim)
    if data.dims is None or shape.values is None or data.dtype is None or wanted is None:
        return result
    have = dims.mul(dims.product(data.dims), _bytes(data.dtype))
    need = dims.mul(dims.product(shape.values), _bytes(wanted))
    if exceeds(need if start is None else dims.add(need, start), have):
        view = f"{shape_text(shape.values)} of {wanted}"
        where = "" if start in (None, 0) else f" from byte {dims.text(start or 0)}"
        raise IllTyped(f"R.reinterpret of {data} as {view}{where}: it has too few bytes")
    return result


def _bytes(dtype: str) -> int:
    return max(TABLE[dtype].bits // 8, 1)

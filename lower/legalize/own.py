"""The loops of operators of users, checked against their struct-info rules."""

from collections.abc import Sequence
from typing import Any

from relax_egraph.errors import OperatorError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.op import Op
from relax_egraph.ir.own import Own
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.lower.legalize.elementwise import Legalize, broadcast, element
from relax_egraph.lower.legalize.stored import widening
from relax_egraph.tir import te


def own_loops(op: Op, own: Own) -> Legalize | None:
    """The loops of `op`; ``None`` if it has none.

    Operands of an elementwise operator are broadcast before.  The loops raise `OperatorError` if
    their results are not of the shapes and dtypes that the struct-info rule says.
    """
    loops = own.loops
    if loops is None:
        return None

    def legalize(*operands: Any, **attrs: Any) -> te.Tensor | Sequence[te.Tensor]:
        passed = _broadcast(op, operands) if op.elementwise else operands
        result = loops(*passed, **attrs)
        several = [result] if isinstance(result, te.Tensor) else list(result)
        made = [tensor(t.shape, t.dtype) for t in several]
        infos = [*map(_info, operands)]
        said = op.rule(*infos, *(None,) * (len(op.operands) - len(infos)), **attrs)
        wanted = list(said.fields) if isinstance(said, TupleStructInfo) else [said]
        if len(made) != len(wanted) or not all(map(_agree, wanted, made)):
            raise OperatorError(
                f"{op} of {', '.join(map(str, infos))}: its te function returns "
                f"{', '.join(map(str, made))}, and its rule says {said}: they must agree"
            )
        return result if isinstance(result, te.Tensor) else several

    return widening(legalize)


def _broadcast(op: Op, operands: Sequence[Any]) -> list[Any]:
    """The tensors among `operands`, broadcast to one shape."""
    shape = broadcast(*(x.shape for x in operands if isinstance(x, te.Tensor)))
    return [_spread(x, shape) if isinstance(x, te.Tensor) else x for x in operands]


def _spread(x: te.Tensor, shape: Sequence[Dim]) -> te.Tensor:
    if x.shape == tuple(shape):
        return x
    return te.compute(tuple(shape), lambda *i: element(x, tuple(shape), i), f"{x.name}_spread")


def _agree(said: StructInfo, made: TensorStructInfo) -> bool:
    """Whether a result has the dtype and the shape that the rule says, as far as it knows."""
    if not isinstance(said, TensorStructInfo) or said.dtype not in (None, made.dtype):
        return False
    if said.dims is None or made.dims is None:
        return said.ndim in (-1, made.ndim)
    return said.ndim == made.ndim and all(map(dims.equal, said.dims, made.dims))


def _info(operand: Any) -> StructInfo:
    match operand:
        case te.Tensor():
            return tensor(operand.shape, operand.dtype)
        case tuple() if operand and all(isinstance(part, te.Tensor) for part in operand):
            return TupleStructInfo(tuple(map(_info, operand)))
        case tuple():
            return ShapeStructInfo(operand, len(operand))
        case float():
            return PrimStructInfo("float64", None, operand)
        case _:
            return PrimStructInfo("int64", operand)

"""Operators whose result has the shape of an operand, or a shape operand as its shape."""

from collections.abc import Iterator
from functools import cache

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import REQUIRED, Op
from relax_egraph.ir.struct_info import TensorStructInfo, tensor

SHAPED = frozenset(("reshape", "broadcast_to", "full", "ones", "zeros", "collapse_sum_to"))
"""Operators whose shape operand is the shape of the result."""

_NAMED = tuple(map(dims.symbol, "abcde"))


@cache
def keeps_shape(op: Op) -> bool:
    """Whether the result of `op` has the shape of the first operand, for all ranks."""
    if not op.operands or op.operands[0].kind != "tensor":
        return False
    attrs = dict(_sampled(op))
    if len(attrs) != len(op.attrs):
        return False
    answers = [_keeps_rank(op, rank, attrs) for rank in (1, 2, 3, 4)]
    return any(answers) and None not in answers[1:] and all(a is not False for a in answers)


def _sampled(op: Op) -> Iterator[tuple[str, object]]:
    for attr in op.attrs:
        if attr.default is not REQUIRED:
            yield attr.name, attr.default
        elif attr.kind == "ints":
            yield attr.name, (-1,)
        elif attr.kind == "str":
            yield attr.name, "float32"


def _keeps_rank(op: Op, rank: int, attrs: dict[str, object]) -> bool | None:
    """Whether `op` keeps a shape of `rank`; ``None`` if it refuses the shape."""
    shape = _NAMED[:rank]
    others = [None if o.optional else TensorStructInfo() for o in op.operands[1:]]
    try:
        result = op.rule(tensor(shape, "float32"), *others, **attrs)
    except (IllTyped, AttributeError, TypeError, ValueError):
        return None
    return isinstance(result, TensorStructInfo) and result.dims == shape

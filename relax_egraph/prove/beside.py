"""Which ranks and dtypes an operand may have beside the operands before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.nodes import (
    Leaf,
    Mapped,
    Part,
    Result,
    Uniform,
    Value,
    dtype_of,
    shape_of,
)
from relax_egraph.prove.typing import plain_attribute


@dataclass(frozen=True)
class Beside:
    """The operands of an operator that are known when one at a `place` is made; others are `UNMADE`.

    They are on the left side if `assumed`.  Without an operator it is an unknown elementwise
    function.
    """

    op: Op | None
    known: Sequence[Any]
    place: int
    assumed: bool
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expected: tuple[dims.Dim, ...] | None = None

    @property
    def shape(self) -> tuple[dims.Dim, ...] | None:
        """The shape that an elementwise operator needs, as broadcasts are written out."""
        tensors = [v for v in self.known if isinstance(v, Value)]
        if not self.assumed or not (self.op is None or self.op.elementwise):
            return None
        return shape_of(tensors[0]) if tensors else self.expected

    @property
    def rank(self) -> int | None:
        """The rank that a join needs."""
        return len(shape_of(self.known[0])) if self.op is not None and self.known else None

    def accepted(self, dtypes: Sequence[str]) -> Sequence[str]:
        """The `dtypes` that the operator accepts; one stands for all beside an unknown function."""
        if self.op is None or self.op.name in ON_IMAGES:
            return dtypes[:1]
        if self.op.name in ("concat", "stack") and self.known:
            return [dtype_of(self.known[0])]
        return [d for d in dtypes if self.accepts(TensorStructInfo(None, d, -1))]

    def of_rank(self, ranks: Sequence[int]) -> Sequence[int]:
        """The `ranks` that the operator accepts."""
        if self.op is None or (self.op.name in ("concat", "stack") and self.known):
            known = self.rank
            return ranks if known is None else [r for r in ranks if r == known]
        return [r for r in ranks if self.accepts(TensorStructInfo(None, None, r))]

    def accepts(self, info: TensorStructInfo) -> bool:
        """Whether the operator does not refuse such an operand, whatever the others are."""
        op = self.op
        if op is not None and op.name in ON_IMAGES:
            return info.ndim in (-1, len(ON_IMAGES[op.name].letters))
        if op is None or not all(o.kind == "tensor" for o in op.operands):
            return True
        return is_accepted(op, (*self.known[: self.place], info, *self.known[self.place + 1 :]), self.attrs)


def is_accepted(op: Op, known: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
    """Whether an operator does not refuse operands of such ranks and dtypes."""
    if set(attrs) != {a.name for a in op.attrs} or op.name in ON_IMAGES:
        return True
    kinds = [o.kind for o in op.operands]
    if any(kind not in _OF_KIND for kind in kinds[: len(known)]):
        return True
    infos = [_info(v, kind) for v, kind in zip(known, kinds, strict=False)]
    infos += [_OF_KIND.get(kind, _ANY) for kind in kinds[len(infos) : op.required]]
    try:
        op.rule(*infos, **{k: plain_attribute(v) for k, v in attrs.items()})
    except IllTyped:
        return False
    except TypeError:  # an attribute is a symbol
        return True
    return True


UNMADE = object()
"""An operand that is not made yet."""

_ANY = TensorStructInfo(None, None, -1)
_OF_KIND: Mapping[str, Any] = {"tensor": _ANY, "shape": ShapeStructInfo(None, -1)}


def _info(value: Any, kind: str) -> Any:
    """The rank and the dtype of a known operand."""
    match value:
        case Leaf() | Uniform() | Result() | Mapped() | Part():
            return TensorStructInfo(None, value.info.dtype, value.info.ndim)
        case TensorStructInfo():
            return value
        case None:
            return None
        case _:
            return _OF_KIND[kind]

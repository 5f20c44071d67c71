"""Which ranks and dtypes an operand may have beside the operands before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.requirements import recording
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.nodes import (
    Value,
    dtype_of,
    shape_of,
)
from relax_egraph.prove.typing import plain_attribute


@dataclass(frozen=True, slots=True)
class Alike:
    """Whether the tensors in a list have one rank, and one dtype."""

    rank: bool
    dtype: bool


@dataclass(frozen=True)
class Beside:
    """The operands that are known when an operator's one at a `place` is made, others `UNMADE`.

    They are on the left side if `assumed`.  Without an operator it is an unknown elementwise
    function.  The result is an operand of what is `around` it.  Tensors in a list are `alike`.
    """

    op: Op | None
    known: Sequence[Any]
    place: int
    assumed: bool
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expected: tuple[dims.Dim, ...] | None = None
    around: "Beside | None" = None
    alike: Alike | None = None

    @property
    def shape(self) -> tuple[dims.Dim, ...] | None:
        """The shape that an elementwise operator needs, as broadcasts are written out."""
        tensors = [v for v in self.known if isinstance(v, Value)]
        if not self.assumed or not (self.op is None or self.op.elementwise):
            return None
        return shape_of(tensors[0]) if tensors else self.expected

    def accepted(self, dtypes: Sequence[str]) -> Sequence[str]:
        """The `dtypes` that the operator accepts; one stands for all beside an unknown function."""
        if self.op is None or self.op.name in ON_IMAGES:
            return dtypes[:1]
        if self.alike is not None:
            return [dtype_of(self.known[0])] if self.alike.dtype and self.known else dtypes
        return [d for d in dtypes if self.accepts(TensorStructInfo(None, d, -1))]

    def of_rank(self, ranks: Sequence[int]) -> Sequence[int]:
        """The `ranks` that the operator accepts."""
        if self.op is None:
            return ranks
        if self.alike is not None:
            like = len(shape_of(self.known[0])) if self.alike.rank and self.known else None
            return [r for r in ranks if like in (None, r)]
        return [r for r in ranks if self.accepts(TensorStructInfo(None, None, r))]

    def accepts(self, info: TensorStructInfo) -> bool:
        """Whether the operator does not refuse such an operand, whatever the others are."""
        op = self.op
        if op is not None and op.name in ON_IMAGES:
            return info.ndim in (-1, len(ON_IMAGES[op.name].letters))
        if op is None or not self.assumed:
            return True
        operands = (*self.known[: self.place], info, *self.known[self.place + 1 :])
        try:
            result = result_of(op, operands, self.attrs)
        except IllTyped:
            return False
        if self.around is None or not isinstance(result, TensorStructInfo):
            return True
        return self.around.accepts(TensorStructInfo(None, result.dtype, result.ndim))


def result_of(op: Op, known: Sequence[Any], attrs: Mapping[str, Any]) -> StructInfo | None:
    """The result for operands of such ranks and dtypes, if that is known; raises `IllTyped`."""
    kinds = [o.kind for o in op.operands]
    if set(attrs) != {a.name for a in op.attrs} or op.name in ON_IMAGES:
        return None
    if any(kind not in _OF_KIND for kind in kinds[: len(known)]):
        return None
    infos = [_info(v, kind) for v, kind in zip(known, kinds, strict=False)]
    infos += [_OF_KIND.get(kind, _ANY) for kind in kinds[len(infos) : op.required]]
    try:
        with recording():
            return op.rule(*infos, **{k: plain_attribute(v) for k, v in attrs.items()})
    except IllTyped:
        raise
    except TypeError:  # an attribute is a symbol
        return None


UNMADE = object()
"""An operand that is not made yet."""

_ANY = TensorStructInfo(None, None, -1)
_OF_KIND: Mapping[str, Any] = {"tensor": _ANY, "shape": ShapeStructInfo(None, -1)}


def _info(value: Any, kind: str) -> Any:
    """The rank and the dtype of a known operand."""
    if isinstance(value, Value):
        return TensorStructInfo(None, dtype_of(value), len(shape_of(value)))
    return value if value is None or isinstance(value, TensorStructInfo) else _OF_KIND[kind]

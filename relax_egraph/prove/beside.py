"""Which ranks and dtypes an operand may have beside the operands before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.prove.layouts import ON_IMAGES
from relax_egraph.prove.nodes import (
    Value,
    dtype_of,
    shape_of,
)
from relax_egraph.prove.typing import plain_attribute


@dataclass(frozen=True)
class Beside:
    """The operands of an operator before the next one, on the left side if `assumed`.

    Without an operator it is an unknown elementwise function.
    """

    op: Op | None
    before: Sequence[Any]
    assumed: bool
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])
    expected: tuple[dims.Dim, ...] | None = None

    @property
    def shape(self) -> tuple[dims.Dim, ...] | None:
        """The shape that an elementwise operator needs, as broadcasts are written out."""
        tensors = [v for v in self.before if isinstance(v, Value)]
        if not self.assumed or not (self.op is None or self.op.elementwise):
            return None
        return shape_of(tensors[0]) if tensors else self.expected

    @property
    def rank(self) -> int | None:
        """The rank that a join needs."""
        return len(shape_of(self.before[0])) if self.op is not None and self.before else None

    def accepted(self, dtypes: Sequence[str]) -> Sequence[str]:
        """The `dtypes` that the operator accepts; one stands for all beside an unknown function."""
        if self.op is None or self.op.name in ON_IMAGES:
            return dtypes[:1]
        if self.op.name in ("concat", "stack") and self.before:
            return [dtype_of(self.before[0])]
        return [d for d in dtypes if self.accepts(TensorStructInfo(None, d, -1))]

    def of_rank(self, ranks: Sequence[int]) -> Sequence[int]:
        """The `ranks` that the operator accepts."""
        if self.op is None or (self.op.name in ("concat", "stack") and self.before):
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
        if set(self.attrs) != {a.name for a in op.attrs}:
            return True
        before = (TensorStructInfo(None, v.info.dtype, v.info.ndim) for v in self.before if v)
        missing = op.required - len(self.before) - 1
        others = (TensorStructInfo(None, None, -1),) * max(missing, 0)
        try:
            op.rule(
                *before, info, *others, **{k: plain_attribute(v) for k, v in self.attrs.items()}
            )
        except IllTyped:
            return False
        except TypeError:  # an attribute is a symbol
            return True
        return True

"""A `BlockBuilder` that also takes tensor expressions.

    A = te_tensor(a)                        # a value of the graph, as a tensor to index
    b = bb.emit(te.compute((n, m), lambda i, j: A[i, j] * 2, name="B"))
    c = bb.emit_te(te_function, a, b)       # a function of tensors, called with values

Each tensor expression becomes a loop function of the module, called by ``R.call_tir``.
"""

from collections.abc import Sequence

from relax_egraph.base.parameters import NAME, Kind, optional, takes
from relax_egraph.errors import IllTyped
from relax_egraph.ir import block_builder
from relax_egraph.ir.expr import Attr, Call, Expr, Var
from relax_egraph.ir.module import MODULE, IRModule
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.tir.call_te import TeFunction, call_te, call_tensors, computed
from relax_egraph.tir.create_prim_func import reads, stages_of
from relax_egraph.tir.tensor import Tensor


class BlockBuilder(block_builder.BlockBuilder):
    """Emits values of the graph and tensor expressions over them."""

    @takes(module=optional(MODULE))
    def __init__(self, module: IRModule | None = None) -> None:
        super().__init__(module)

    def emit(self, value: Expr | Tensor, name: str | None = None) -> Var:
        """Bind `value`, or the call that computes a tensor expression, to a new variable."""
        return super().emit(self._called(value), name)

    def emit_output(self, value: Expr | Tensor, name: str | None = None) -> Var:
        """As `emit`, to a variable that is visible outside of the open dataflow block."""
        return super().emit_output(self._called(value), name)

    def call_te(
        self, function: TeFunction, *args: Expr, name: str | None = None, **attrs: Attr
    ) -> Call:
        """``R.call_tir`` of `function` of the tensors, shapes and host scalars `args`.

        The name of the loop function is `name`, by default that of `function`, which also receives
        `attrs`.  Raises `IllTyped` for a tensor of unknown shape or dtype.
        """
        return call_te(self, function, *args, name=name, operands=None, **attrs)

    def emit_te(
        self, function: TeFunction, *args: Expr, name: str | None = None, **attrs: Attr
    ) -> Var:
        """Bind the result of `call_te` to a new variable of the open block."""
        return self.emit(self.call_te(function, *args, name=name, **attrs))

    def _called(self, value: Expr | Tensor) -> Expr:
        if not isinstance(value, Tensor):
            return value
        outputs = computed(value)
        inputs = _placeholders(outputs)
        operands: list[Expr] = []
        for tensor in inputs:
            if tensor.value is None:
                raise IllTyped(
                    f"emit: {value.name} reads the placeholder {tensor.name}, which stands for no "
                    "value of the graph: make it with te_tensor(value)"
                )
            operands.append(tensor.value)
        return call_tensors(self, outputs, inputs, operands, value.name)


@takes(
    value=Kind("a value of the graph", lambda value: isinstance(value, Expr)), name=optional(NAME)
)
def te_tensor(value: "Expr", name: str | None = None) -> Tensor:
    """`value` as a tensor for expressions to index; `BlockBuilder.emit` passes the value.

    Raises `IllTyped` unless shape and dtype are known: emit a match_cast before.
    """
    info = value.struct_info
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
        raise IllTyped(f"te_tensor of {info}: needs a tensor of known shape and dtype")
    hint = value.name if isinstance(value, Var) else "value"
    return Tensor(name or hint, info.dims, info.dtype, value=value)


def _placeholders(outputs: Sequence[Tensor]) -> list[Tensor]:
    """The placeholders that `outputs` read, in order of appearance."""
    placeholders = (
        read for stage in stages_of(outputs) for read in reads(stage) if read.body is None
    )
    return list(dict.fromkeys(placeholders))

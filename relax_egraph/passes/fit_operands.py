"""Makes the shape conditions of operators explicit, as casts before them."""

from relax_egraph.ir.expr import (
    Call,
    DataflowVar,
    Expr,
    Function,
    MatchCast,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.fitting import fit, with_extents
from relax_egraph.ir.lower_bounds import LowerBounds
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.solving import differences
from relax_egraph.ir.struct_info import Shape, known_extents
from relax_egraph.passes.infra import function_pass


@function_pass(name="fit_operands")
def fit_operands(function: Function, _: IRModule) -> Function:
    """Insert an ``R.match_cast`` before each operator whose operands fit only at some sizes.

    The module still refuses the same inputs, at the same operator and with the same message; later
    bindings have known shapes.  See `ir.fitting`; the ONNX importer inserts these casts itself.
    Functions that become one kernel stay: a kernel has no checks inside.
    """
    if function.attrs.get("primitive"):
        return function
    changed = _Fitter().visit_expr(function)
    assert isinstance(changed, Function)
    return changed


class _Fitter(ExprMutator):
    def __init__(self) -> None:
        super().__init__()
        self._bounds = LowerBounds()

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        around, self._bounds = self._bounds, LowerBounds(self._bounds)
        changed = super().visit_seq_expr(seq)
        self._bounds = around
        return changed

    def visit_match_cast(self, binding: MatchCast) -> None:
        super().visit_match_cast(binding)
        before, after = map(known_extents, (binding.value.struct_info, binding.struct_info))
        for old, new in zip(before, after, strict=False):
            self._bounds.extend(differences(old, new))

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.normalize(self.visit_expr(binding.value))
        if isinstance(value, Call) and isinstance(value.op, Op):
            value = fit(value, self._cast, self._bounds)
        self.rebind(binding, value)

    def _cast(self, value: Expr, shape: Shape, refusal: str) -> Expr:
        name = self._fresh(value.name if isinstance(value, Var) else "shape")
        info = with_extents(value, shape)
        var = (DataflowVar if self._open[-1][1] else Var)(name, info)
        self.emit_binding(MatchCast(var, value, info, refusal=refusal))
        return var

"""`ExprVisitor`: the base class of analyses; a subclass overrides ``visit_<kind>``.

An overriding method calls the inherited one to descend.
"""

from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.functor import ExprFunctor as ExprFunctor
from relax_egraph.ir.method_names import Visiting
from relax_egraph.ir.mutator import ExprMutator as ExprMutator
from relax_egraph.ir.walk import METHODS
from relax_egraph.ir.walk import children as children
from relax_egraph.ir.walk import free_vars as free_vars
from relax_egraph.ir.walk import post_order_visit as post_order_visit


class ExprVisitor(Visiting):
    """Visits every expression, binding and definition, in order of evaluation."""

    def visit_expr(self, expr: Expr) -> None:
        """Dispatch on the kind of `expr`."""
        getattr(self, METHODS[type(expr)])(expr)

    def visit_var(self, var: Var) -> None:
        """A use of `var`."""

    def visit_dataflow_var(self, var: DataflowVar) -> None:
        """A use of `var`; by default what `visit_var` does."""
        self.visit_var(var)

    def visit_var_def(self, var: Var) -> None:
        """The definition of `var`: a parameter, or the left side of a binding."""

    def visit_constant(self, constant: Constant) -> None:
        """A leaf."""

    def visit_shape_expr(self, shape: ShapeExpr) -> None:
        """A leaf."""

    def visit_prim_value(self, value: PrimValue) -> None:
        """A leaf."""

    def visit_string_imm(self, string: StringImm) -> None:
        """A leaf."""

    def visit_global_var(self, function: GlobalVar) -> None:
        """A leaf."""

    def visit_extern_func(self, function: ExternFunc) -> None:
        """A leaf."""

    def visit_tuple(self, value: Tuple) -> None:
        """The fields."""
        self._below(value)

    def visit_tuple_getitem(self, value: TupleGetItem) -> None:
        """The tuple."""
        self._below(value)

    def visit_call(self, call: Call) -> None:
        """The callee, unless it is an `Op`, then the operands."""
        self._below(call)

    def visit_if(self, branch: If) -> None:
        """The condition, then both branches."""
        self._below(branch)

    def visit_function(self, function: Function) -> None:
        """The parameters, then the body."""
        for p in function.params:
            self.visit_var_def(p)
        self.visit_expr(function.body)

    def visit_seq_expr(self, seq: SeqExpr) -> None:
        """The blocks, then the result."""
        for block in seq.blocks:
            if isinstance(block, DataflowBlock):
                self.visit_dataflow_block(block)
            else:
                self.visit_binding_block(block)
        self.visit_expr(seq.body)

    def visit_binding_block(self, block: BindingBlock) -> None:
        """The bindings."""
        for b in block.bindings:
            self.visit_binding(b)

    def visit_dataflow_block(self, block: DataflowBlock) -> None:
        """The bindings."""
        for b in block.bindings:
            self.visit_binding(b)

    def visit_binding(self, binding: Binding) -> None:
        """Dispatch on the kind of `binding`."""
        if isinstance(binding, VarBinding):
            self.visit_var_binding(binding)
        else:
            self.visit_match_cast(binding)

    def visit_var_binding(self, binding: VarBinding) -> None:
        """The value, then the variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def visit_match_cast(self, binding: MatchCast) -> None:
        """The value, then the variable."""
        self.visit_expr(binding.value)
        self.visit_var_def(binding.var)

    def _below(self, expr: Expr) -> None:
        for child in children(expr):
            self.visit_expr(child)

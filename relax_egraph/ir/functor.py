"""`ExprFunctor`: a function of expressions by kind, memoised for each expression."""

from typing import Generic, TypeVar

from relax_egraph.ir.expr import (
    Call,
    Constant,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.method_names import Visiting
from relax_egraph.ir.walk import METHODS

R = TypeVar("R")


class ExprFunctor(Visiting, Generic[R]):
    """A function of expressions by kind: a subclass overrides ``visit_<kind>`` of it.

    Results are memoised: a shared expression is visited once, so a result may depend on the
    expression alone.  `visit_default` is for kinds without an overridden method; that of the base
    class raises ``NotImplementedError``.
    """

    def __init__(self) -> None:
        self._memo: dict[Expr, R] = {}

    def visit_expr(self, expr: Expr) -> R:
        """The memoised result of `expr`, or that of the method for its kind."""
        if expr not in self._memo:
            self._memo[expr] = getattr(self, METHODS[type(expr)])(expr)
        return self._memo[expr]

    def visit_default(self, expr: Expr) -> R:
        """An expression of a kind without an overridden method."""
        raise NotImplementedError(
            f"{type(self).__name__} computes nothing of {type(expr).__name__}"
        )

    def visit_var(self, var: Var) -> R:
        """A use of `var`."""
        return self.visit_default(var)

    def visit_dataflow_var(self, var: DataflowVar) -> R:
        """A use of `var`; by default what `visit_var` computes."""
        return self.visit_var(var)

    def visit_constant(self, constant: Constant) -> R:
        """A leaf."""
        return self.visit_default(constant)

    def visit_shape_expr(self, shape: ShapeExpr) -> R:
        """A leaf."""
        return self.visit_default(shape)

    def visit_prim_value(self, value: PrimValue) -> R:
        """A leaf."""
        return self.visit_default(value)

    def visit_string_imm(self, string: StringImm) -> R:
        """A leaf."""
        return self.visit_default(string)

    def visit_global_var(self, function: GlobalVar) -> R:
        """A leaf."""
        return self.visit_default(function)

    def visit_extern_func(self, function: ExternFunc) -> R:
        """A leaf."""
        return self.visit_default(function)

    def visit_tuple(self, value: Tuple) -> R:
        """Over fields."""
        return self.visit_default(value)

    def visit_tuple_getitem(self, value: TupleGetItem) -> R:
        """Over a tuple."""
        return self.visit_default(value)

    def visit_call(self, call: Call) -> R:
        """Over a callee and operands."""
        return self.visit_default(call)

    def visit_if(self, branch: If) -> R:
        """Over a condition and branches."""
        return self.visit_default(branch)

    def visit_function(self, function: Function) -> R:
        """Over a body."""
        return self.visit_default(function)

    def visit_seq_expr(self, seq: SeqExpr) -> R:
        """Over blocks and a result."""
        return self.visit_default(seq)

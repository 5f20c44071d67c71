"""Constant folding: operator calls on constants are computed at compile time."""

from relax_egraph.errors import RunError
from relax_egraph.ir.apply import apply_to_constants
from relax_egraph.ir.expr import (
    Call,
    Constant,
    Expr,
    Function,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.folding import GROWTH_LIMIT as DEFAULT_LIMIT
from relax_egraph.ir.folding import REPEATS, is_worth_storing, static_nbytes
from relax_egraph.ir.matching import Value
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutation import written_variables
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.reference import reference_of
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.passes.infra import PassContext, function_pass
from relax_egraph.passes.options import declare_option

GROWTH_LIMIT = declare_option(
    "fold_constant.growth_limit",
    int,
    DEFAULT_LIMIT,
    "the bytes up to which a folded constant may be larger than its operands together",
)
"""The bytes up to which a folded constant may be larger than its operands together.

A constant is stored in the executable and loaded at every start: above this size, computing it
from smaller operands is cheaper.
"""


@function_pass(name="fold_constant", opt_level=1)
def fold_constant(function: Function, module: IRModule) -> Function:
    """Replace calls on constants, and on integer shapes, by their values.

    The reference semantics compute the value; a field of a tuple of constants is a constant.  Not
    folded are calls with effects, calls of loop functions and packed functions, calls that fail,
    results of unknown or symbolic shape, constants that `GROWTH_LIMIT` forbids, results of
    operators without tensor operands, tensors that are written later, and broadcasts that repeat
    elements: a kernel repeats elements while it reads, at no cost.  A constant that only reorders
    the elements of another is a view of its memory.
    """
    folded = _Folder(written_variables(function, module)).visit_expr(function)
    return folded if isinstance(folded, Function) else function


@function_pass(name="store_broadcasts", opt_level=1)
def store_broadcasts(function: Function, module: IRModule) -> Function:
    """As `fold_constant`, and broadcasts of constants, too: for functions whose kernels are chosen.

    There a broadcast that is a binding of its own would run at each call; kernels have theirs
    inside, in primitive functions, which stay.
    """
    if function.attrs.get("primitive"):
        return function
    folded = _Folder(written_variables(function, module), broadcasts=True).visit_expr(function)
    return folded if isinstance(folded, Function) else function


class _Folder(ExprMutator):
    def __init__(self, written: frozenset[Var], *, broadcasts: bool = False) -> None:
        super().__init__()
        self._written = written
        self._broadcasts = broadcasts
        self._tuples: dict[Var, Tuple] = {}

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        return self._value(visited) if isinstance(visited, Call) else visited

    def visit_tuple_getitem(self, value: TupleGetItem) -> Expr:
        visited = super().visit_tuple_getitem(value)
        if not isinstance(visited, TupleGetItem):
            return visited
        known = self._known(visited.tuple_value)
        field = known.fields[visited.index] if isinstance(known, Tuple) else None
        return field if field is not None and _is_constant(field) else visited

    def visit_var_binding(self, binding: VarBinding) -> None:
        if binding.var in self._written and isinstance(binding.value, Call):
            self.rebind(binding, super().visit_call(binding.value))
            return
        value = self.visit_expr(binding.value)
        if isinstance(value, Constant):
            self.replace_var(binding.var, value)
            return
        if isinstance(value, ShapeExpr):
            self.replace_var(binding.var, value)
        elif isinstance(value, Tuple):
            self._tuples[binding.var] = value
        self.rebind(binding, value)

    def _known(self, operand: Expr) -> Expr:
        """`operand`, or the tuple that the variable is bound to."""
        return self._tuples.get(operand, operand) if isinstance(operand, Var) else operand

    def _value(self, call: Call) -> Expr:
        if not isinstance(call.op, Op) or reference_of(call.op) is None or not call.op.pure:
            return call
        args = tuple(map(self._known, call.args))
        if not any(_is_constant(a) for a in args) or not all(map(_is_static, args)):
            return call
        is_repeated = call.op.name in REPEATS and not self._broadcasts
        if not _is_worth_storing(args, call.struct_info, is_repeated=is_repeated):
            return call
        try:
            value = apply_to_constants(call.op, list(map(_data, args)), call.attrs)
        except RunError:
            return call
        return _stored(value, call.struct_info)


def _is_constant(expr: Expr) -> bool:
    """Whether `expr` is a constant, or a tuple of constants."""
    if isinstance(expr, Tuple):
        return bool(expr.fields) and all(map(_is_constant, expr.fields))
    return isinstance(expr, Constant)


def _data(expr: Expr) -> Value:
    match expr:
        case Tuple(fields=fields):
            return tuple(map(_data, fields))
        case Constant(data=data):
            return data
        case _:
            assert isinstance(expr, ShapeExpr)
            return expr.values


def _stored(value: Value, info: StructInfo) -> Expr:
    if isinstance(info, ShapeStructInfo):
        return ShapeExpr(value)
    if isinstance(info, TupleStructInfo):
        return Tuple(tuple(map(Constant, value)))
    return Constant(value)


def _is_static(leaf: Expr) -> bool:
    if isinstance(leaf, ShapeExpr):
        return all(isinstance(d, int) for d in leaf.values)
    return _is_constant(leaf)


def _is_worth_storing(args: tuple[Expr, ...], result: StructInfo, *, is_repeated: bool) -> bool:
    if isinstance(result, ShapeStructInfo):
        return True
    size, before = _nbytes(result), sum(map(_stored_nbytes, args))
    limit = PassContext.current().option(GROWTH_LIMIT.key)
    return is_worth_storing(size, before, limit, is_repeated=is_repeated)


def _nbytes(info: StructInfo) -> int | None:
    """The bytes of a tensor or a tuple of tensors; ``None`` if unknown."""
    if isinstance(info, TupleStructInfo):
        sizes = [_nbytes(f) for f in info.fields]
        known = [s for s in sizes if s is not None]
        return sum(known) if len(known) == len(sizes) else None
    return static_nbytes(info) if isinstance(info, TensorStructInfo) else None


def _stored_nbytes(expr: Expr) -> int:
    if isinstance(expr, Tuple):
        return sum(map(_stored_nbytes, expr.fields))
    return expr.data.nbytes if isinstance(expr, Constant) else 0

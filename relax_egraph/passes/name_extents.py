"""Names the extents that only the run knows, so that values after them have known shapes.

    x: R.Tensor(dtype="float32", ndim=2)
    u = R.unique(x)
    y = R.exp(u)

makes `x` a parameter of ``R.Tensor((x_0, x_1), "float32")``, and `y` the exponentials of
``R.match_cast(u, R.Tensor((u_0,), "float32"))``: operators on unknown shapes are calls of numpy,
those on symbolic ones are fused and compiled.
"""

from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.ir.expr import (
    Call,
    Expr,
    Function,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.occurrences import symbols_in
from relax_egraph.ir.op import Op
from relax_egraph.ir.shape_variables import with_shapes
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import post_order_visit, variables_of
from relax_egraph.passes.infra import function_pass


@function_pass(name="name_extents")
def name_extents(function: Function, _: IRModule) -> Function:
    """Give a symbol to each extent of known rank, but unknown value, that an operator reads.

    Parameters get symbols in their declarations; a tensor whose shape is another parameter has the
    extents of that one, which a call is then checked for.  Results of operators, and of functions,
    are followed by an ``R.match_cast``, which cannot fail.
    """
    if function.attrs.get("primitive"):
        return function
    read = _operands(function)
    if not any(_is_open(v.struct_info) for v in read):
        return function
    changed = _Namer(function, read).visit_expr(function)
    assert isinstance(changed, Function)
    return changed


def _operands(function: Function) -> frozenset[Var]:
    """The variables that operators read, and the tuples of which they read a field."""
    found: set[Var] = set()

    def visit(expr: Expr) -> None:
        match expr:
            case Call(op=Op(intrinsic=False), args=args):
                for arg in args:
                    fields = arg.fields if isinstance(arg, Tuple) else (arg,)
                    found.update(f for f in fields if isinstance(f, Var))
            case TupleGetItem(tuple_value=Var() as whole):
                found.add(whole)
            case _:
                pass

    post_order_visit(function, visit)
    return frozenset(found)


def _is_open(info: StructInfo) -> bool:
    match info:
        case TensorStructInfo(shape=shape, ndim=ndim):
            return not isinstance(shape, ShapeExpr) and ndim > 0
        case ShapeStructInfo(values=values, ndim=ndim):
            return values is None and ndim > 0
        case TupleStructInfo(fields=fields):
            return any(map(_is_open, fields))
        case _:
            return False


class _Namer(ExprMutator):
    """Names the extents of variables that are `read`."""

    def __init__(self, function: Function, read: frozenset[Var]) -> None:
        super().__init__()
        self._read = read
        self._params = frozenset(function.params)
        self._taken = {*symbols_in(function), *(v.name for v in variables_of(function))}
        self._shapes: dict[Var, Expr] = {}

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        return super().visit_struct_info(with_shapes(info, self._shapes))

    def visit_var_def(self, var: Var) -> Var:
        if var not in self._params:  # of a local function
            return var
        info = self._named(var.name, self.visit_struct_info(var.struct_info))
        if isinstance(info, ShapeStructInfo) and info.values is not None:
            self._shapes[var] = ShapeExpr(info.values)
        return var if info == var.struct_info else replace(var, struct_info=info)

    def visit_var_binding(self, binding: VarBinding) -> None:
        super().visit_var_binding(binding)
        if binding.var not in self._read:
            return
        have = self.visit_expr(binding.var)
        if not isinstance(have, Var) or isinstance(have.struct_info, TupleStructInfo):
            return
        info = self._named(have.name, have.struct_info)
        if info == have.struct_info:
            return
        cast = type(have)(self._fresh(have.name), info)
        self.emit_binding(MatchCast(cast, have, info))
        self.replace_var(binding.var, cast)

    def _named(self, name: str, info: StructInfo) -> StructInfo:
        """`info` with symbols for the extents of open shapes; for a tuple, of its fields."""
        match info:
            case TensorStructInfo(dtype=dtype, ndim=ndim) if _is_open(info):
                return TensorStructInfo(ShapeExpr(self._symbols(name, ndim)), dtype, ndim)
            case ShapeStructInfo(ndim=ndim) if _is_open(info):
                return ShapeStructInfo(self._symbols(name, ndim), ndim)
            case TupleStructInfo(fields=fields):
                parts = enumerate(fields)
                return TupleStructInfo(tuple(self._named(f"{name}_{k}", f) for k, f in parts))
            case _:
                return info

    def _symbols(self, name: str, count: int) -> Shape:
        return tuple(dims.symbol(unused(f"{name}_{k}", self._taken)) for k in range(count))

"""Folds shape arithmetic: shapes that a program computes from shapes become dimensions."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols, bind, implies, in_scope, stronger
from relax_egraph.ir.block_builder import call as new_call
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Call,
    Constant,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    ShapeExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.shape_variables import outside
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes.analyses.symbolic_elements import Known, apply, elements, fits, is_small
from relax_egraph.passes.infra import function_pass

_TELL = frozenset({"shape_of", "shape_to_tensor", "tensor_to_shape", "size"})
"""The operators that turn shapes into values, and values into shapes."""


@function_pass(name="fold_shapes", opt_level=1)
def fold_shapes(function: Function, _: IRModule) -> Function:
    """Replace shapes computed from shapes by their dimensions, and infer later struct info again.

        s = R.shape_to_tensor(R.shape_of(x))            # x: R.Tensor((n, m, 8))
        n = R.take(s, 0)
        t = R.stack((n, R.multiply(R.take(s, 1), 8)))
        y = R.reshape(x, R.tensor_to_shape(t))          # y: R.Tensor(ndim=2)
        -->
        y = R.reshape(x, R.shape([n, m * 8]))           # y: R.Tensor((n, m * 8))

    A symbol that an outermost ``R.match_cast`` binds to a dimension that becomes known is replaced
    by it.  Shapes that depend on data stay, and so do shapes whose extents are not proven to be
    nonnegative.  Unused arithmetic stays, for dead code elimination.
    """
    if not _makes_shapes(function):
        return function
    changed = _Folder(function).visit_expr(function)
    assert isinstance(changed, Function)
    return changed


def _makes_shapes(function: Function) -> bool:
    operators: list[Expr] = []

    def note(expr: Expr) -> None:
        if isinstance(expr, Call) and isinstance(expr.op, Op) and expr.op.name in _TELL:
            operators.append(expr)

    post_order_visit(function, note)
    return bool(operators)


class _Folder(Substitution):
    """Replaces symbols by dimensions that become known, and variables by shapes."""

    def __init__(self, function: Function) -> None:
        self._dim_of: dict[str, Dim] = {}
        super().__init__(self._dim_of)
        self._symbols = set[str]().union(*(bare_symbols(p.struct_info) for p in function.params))
        self._extents: set[Dim] = set()
        self._known: dict[Expr, Known] = {}
        self._inner = -1

    # --- scopes: dimensions that become known in a branch are forgotten after it ----------

    def visit_function(self, function: Function) -> Expr:
        self._inner += 1
        visited = super().visit_function(function)
        self._inner -= 1
        if self._inner >= 0 or not isinstance(visited, Function):
            return visited
        symbols = set[str]().union(*(bare_symbols(p.struct_info) for p in visited.params))
        known = outside(in_scope(visited.body.struct_info, symbols), visited.params)
        ret = stronger(visited.ret_struct_info, known)
        return visited if ret == visited.ret_struct_info else replace(visited, ret_struct_info=ret)

    def visit_if(self, branch: If) -> Expr:
        self._inner += 1
        visited = super().visit_if(branch)
        self._inner -= 1
        return visited

    # --- bindings -------------------------------------------------------------------------

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        return self._static_slice(visited) if isinstance(visited, Call) else visited

    def visit_var_binding(self, binding: VarBinding) -> None:
        super().visit_var_binding(binding)
        var = self.visit_expr(binding.var)
        value = self.lookup_binding(var)
        known = None if value is None else self._evaluated(value)
        if known is None:
            return
        self._known[var] = known
        if (leaf := _leaf(var, known)) is not None:
            self.replace_var(binding.var, leaf)
            assert isinstance(var, Var)
            self._open[-1][0][-1] = VarBinding(var, leaf)  # all its elements are valid

    def visit_match_cast(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        claim = self.info(binding.struct_info)
        if self._inner == 0:
            for name, dim in bind([claim], [value.struct_info]).items():
                if name not in self._symbols | dims.symbols(dim):
                    self._dim_of[name] = dim
            self._symbols |= bare_symbols(claim)
            claim = self.info(claim)
        local = isinstance(binding.var, DataflowVar) or not isinstance(value, DataflowVar)
        if local and implies(value.struct_info, claim):
            self.replace_var(binding.var, value)
            return
        super().visit_match_cast(binding)
        if (known := self._of(value)) is not None:
            self._known[self.visit_expr(binding.var)] = known

    def _static_slice(self, call: Call) -> Call:
        """`call`; a dynamic slice at known positions becomes a static slice."""
        if not isinstance(call.op, Op) or call.op.name != "dynamic_strided_slice":
            return call
        x, *positions = call.args
        limits = [self._of(p) for p in positions]
        if not isinstance(x.struct_info, TensorStructInfo) or any(p is None for p in limits):
            return call
        begin, end, strides = (tuple(np.asarray(p, object)) for p in limits)
        ndim = x.struct_info.ndim
        if {len(begin), len(end), len(strides)} != {ndim} or not _all_numbers(strides):
            return call
        if 0 in strides:
            return call
        shapes = ShapeExpr(begin), ShapeExpr(end)
        return new_call("strided_slice", x, *shapes, axes=tuple(range(ndim)), strides=strides)

    def _dim(self, dim: Dim) -> Dim:
        return super()._dim(dim) if self._dim_of else dim

    # --- what is known --------------------------------------------------------------------

    def _evaluated(self, value: Expr) -> Known | None:
        if not isinstance(value, Call):
            return self._of(value)
        if not isinstance(value.op, Op):
            return None
        match value.op.name, value.args:
            case "shape_of", (x,):
                info = x.struct_info
                shape = info.dims if isinstance(info, TensorStructInfo) else None
                self._extents.update(shape or ())
                return shape
            case "size", (x,):
                info = x.struct_info
                shape = info.dims if isinstance(info, TensorStructInfo) else None
                return None if shape is None else np.array(dims.product(shape), object)
            case "tensor_to_shape", (x,):
                values = self._of(x)
                extents = None if values is None else tuple(np.asarray(values, object))
                if extents is None or not all(map(self._is_extent, extents)):
                    return None
                return extents
            case _:
                operands = [known for a in value.args if (known := self._of(a)) is not None]
                if len(operands) < len(value.args) or not is_small(value.struct_info):
                    return None
                result = apply(value.op, operands, value.attrs)
                return result if result is not None and fits(result, value.struct_info) else None

    def _of(self, leaf: Expr) -> Known | None:
        match leaf:
            case Var():
                return self._known.get(leaf)
            case Constant(data=data):
                return elements(data)
            case ShapeExpr(values=values):
                return values
            case Tuple(fields=fields):
                values = [known for f in fields if (known := self._of(f)) is not None]
                return tuple(values) if len(values) == len(fields) else None
            case TupleGetItem(tuple_value=inner, index=index):
                whole = self._of(inner)
                return whole[index] if isinstance(whole, tuple) else None
            case _:
                return None

    def _is_extent(self, dim: Dim) -> bool:
        """Whether `dim` is proven to be nonnegative."""
        return dim in self._extents or dims.prove_ge(dim, 0)


def _leaf(var: Expr, known: Known) -> Expr | None:
    """A leaf that can replace `var`, if there is one."""
    match var.struct_info:
        case ShapeStructInfo() if isinstance(known, tuple):
            return ShapeExpr(known)
        case TensorStructInfo(dtype=str(dtype)) if isinstance(known, np.ndarray):
            numbers = known.reshape(-1).tolist()
            return Constant(known.astype(dtype)) if _all_numbers(numbers) else None
        case _:
            return None


def _all_numbers(values: Sequence[Dim] | Shape) -> bool:
    return all(isinstance(v, int) for v in values)

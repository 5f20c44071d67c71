"""Copies of programs with dimensions substituted for symbols and expressions for variables."""

from collections.abc import Mapping
from dataclasses import replace

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols, stronger
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Call,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import infer
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    tensor,
)
from relax_egraph.ir.templates import map_extents
from relax_egraph.ir.walk import variables_of


class Substitution(ExprMutator):
    """Replaces symbols by `values` and free variables by `variables`, in struct info too.

    A definition of a variable in `definitions` becomes one of the variable there.  With `names`,
    the names in use, every definition becomes a new variable with an unused name, which is added to
    `names`; if `local`, a dataflow variable.  Variables get the struct info of their new values.
    """

    def __init__(
        self,
        values: Mapping[str, Dim],
        variables: Mapping[Var, Expr] | None = None,
        definitions: Mapping[Var, Var] | None = None,
        *,
        names: set[str] | None = None,
        local: bool = False,
    ) -> None:
        super().__init__()
        self._values = values
        self._definitions = definitions or {}
        self._local = local
        self._renews = names is not None
        if names is not None:
            self._names = names
        self._replaced.update(variables or {})

    def function(self, function: Function) -> Function:
        """A whole function; itself if nothing in it changes."""
        changed = self.visit_expr(function)
        assert isinstance(changed, Function)
        return changed

    def sequence(self, seq: SeqExpr) -> SeqExpr:
        """A sequence with new definitions."""
        changed = self.visit_expr(seq)
        assert isinstance(changed, SeqExpr)
        return changed

    def info(self, info: StructInfo) -> StructInfo:
        """`info` after the substitution; itself if nothing in it changes."""
        match info:
            case TensorStructInfo(shape=Var() as shape, dtype=dtype, ndim=ndim):
                match self._replaced.get(shape, shape):
                    case ShapeExpr(values=known):
                        return tensor(known, dtype)
                    case Var() as other:
                        return info if other is shape else TensorStructInfo(other, dtype, ndim)
                    case _:
                        return TensorStructInfo(None, dtype, ndim)
            case TensorStructInfo():
                known = info.dims
                if known is None:
                    return info
                new = self._dims(known)
                return info if new == known else tensor(new, info.dtype)
            case ShapeStructInfo(values=values, ndim=ndim):
                return info if values is None else ShapeStructInfo(self._dims(values), ndim)
            case PrimStructInfo(dtype=dtype, value=value):
                return info if value is None else PrimStructInfo(dtype, self._dim(value))
            case TupleStructInfo(fields=fields):
                return TupleStructInfo(tuple(map(self.info, fields)))
            case FuncStructInfo(params=params):
                own = set[str]().union(*map(bare_symbols, params or ()))
                if own.isdisjoint(self._values):
                    return self._signature(info)
                free = {name: v for name, v in self._values.items() if name not in own}
                return Substitution(free, self._replaced).info(info)
            case ObjectStructInfo():
                return info

    def _signature(self, info: FuncStructInfo) -> FuncStructInfo:
        """The signature of a local function, which shares the symbols of the function around it."""
        params = None if info.params is None else tuple(map(self.info, info.params))
        return FuncStructInfo(params, self.info(info.ret), info.purity)

    # --- expressions ------------------------------------------------------------------

    def visit_shape_expr(self, shape: ShapeExpr) -> Expr:
        """The dimensions."""
        new = self._dims(shape.values)
        return shape if new == shape.values else ShapeExpr(new)

    def visit_prim_value(self, value: PrimValue) -> Expr:
        """The dimension, if it is one."""
        if not isinstance(value.value, sympy.Expr):
            return value
        new = self._dim(value.value)
        return value if new == value.value else PrimValue(new, value.dtype)

    def visit_call(self, call: Call) -> Expr:
        """The operands and ``sinfo_args``; the result's struct info is substituted."""
        claims = tuple(map(self.info, call.sinfo_args))
        claimed = call if claims == call.sinfo_args else replace(call, sinfo_args=claims)
        declared = self.info(call.struct_info)
        visited = super().visit_call(claimed)
        if not isinstance(visited, Call) or (visited is call and declared == call.struct_info):
            return visited
        return replace(visited, struct_info=stronger(declared, infer(visited)))

    def visit_if(self, branch: If) -> Expr:
        """The condition, both branches, and their common struct info."""
        visited = super().visit_if(branch)
        assert isinstance(visited, If)
        info = self.info(branch.struct_info)
        return visited if info == visited.struct_info else replace(visited, struct_info=info)

    def visit_function(self, function: Function) -> Expr:
        """The signature, then the body."""
        if not self._renews:
            self._names |= {v.name for v in variables_of(function)}
        params = tuple(self._defined(p, self.info(p.struct_info)) for p in function.params)
        body = self._seq(function.body)
        ret = self.info(function.ret_struct_info)
        same = body is function.body and ret == function.ret_struct_info
        if same and all(a is b for a, b in zip(params, function.params, strict=True)):
            return function
        return replace(function, params=params, body=body, ret_struct_info=ret)

    # --- bindings ---------------------------------------------------------------------

    def visit_var_binding(self, binding: VarBinding) -> None:
        """The value, then the variable; a local function may use its own variable, to recurse."""
        if isinstance(binding.value, Function):
            info = binding.value.struct_info
            assert isinstance(info, FuncStructInfo)
            var = self._defined(binding.var, self._signature(info))
            value = self.visit_expr(binding.value)
        else:
            value = self.normalize(self.visit_expr(binding.value))
            info = self.info(binding.var.struct_info)
            if value is not binding.value:
                info = stronger(info, value.struct_info)
            var = self._defined(binding.var, info)
        same = var is binding.var and value is binding.value
        self.emit_binding(binding if same else VarBinding(var, value))

    def visit_match_cast(self, binding: MatchCast) -> None:
        """The value, the claim, then the variable."""
        value = self.visit_expr(binding.value)
        info = self.info(binding.struct_info)
        var = self._defined(binding.var, self.info(binding.var.struct_info))
        refusal = map_extents(binding.refusal, self._dim)
        same = value is binding.value and var is binding.var and info == binding.struct_info
        if same and refusal == binding.refusal:
            self.emit_binding(binding)
            return
        self.emit_binding(replace(binding, var=var, value=value, struct_info=info, refusal=refusal))

    def _defined(self, var: Var, info: StructInfo) -> Var:
        """The variable whose definition replaces that of `var`."""
        new = self._definitions.get(var, var)
        if self._renews:
            kind = DataflowVar if self._local else type(new)
            new = kind(self._fresh(new.name), info)
        elif new.struct_info != info:
            new = replace(new, struct_info=info)
        if new is not var:
            self.replace_var(var, new)
        return new

    def _dim(self, dim: Dim) -> Dim:
        return dims.substitute(dim, self._values)

    def _dims(self, shape: Shape) -> Shape:
        return tuple(map(self._dim, shape))

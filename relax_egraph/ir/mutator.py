"""`ExprMutator`: the base class of rewrites; a pass overrides ``visit_<kind>``.

An overriding method calls the inherited one to descend.  Unchanged parts are returned as the same
objects.
"""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.ir.conditional import result_info
from relax_egraph.ir.expr import (
    Binding,
    BindingBlock,
    Block,
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
from relax_egraph.ir.method_names import Visiting
from relax_egraph.ir.names import unused
from relax_egraph.ir.occurrences import shape_variables_of
from relax_egraph.ir.op import Op, infer
from relax_egraph.ir.shape_variables import outside, with_shapes
from relax_egraph.ir.struct_info import ObjectStructInfo, StructInfo
from relax_egraph.ir.walk import METHODS, is_leaf, variables_of


class ExprMutator(Visiting):
    """Rebuilds expressions; the bindings that a method emits come before the visited one.

    A variable whose value's struct info changed is replaced, in every later use, by a new
    variable of the same name.  Nested computations in a returned value are bound to new
    variables, so that the result is in normal form again.
    """

    def __init__(self) -> None:
        self._replaced: dict[Var, Expr] = {}
        self._names: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._open: list[tuple[list[Binding], bool]] = []
        self._bound_to: dict[Var, Expr] = {}

    # --- what a subclass uses ---------------------------------------------------------

    def emit(self, value: Expr, name: str | None = None) -> Var:
        """Bind `value` to a new variable of the open block."""
        dataflow = self._open[-1][1]
        normal = self.normalize(value)
        kind = DataflowVar if dataflow else Var
        unique = self._fresh(name or ("lv" if dataflow else "gv"))
        var = kind(unique, normal.struct_info)
        self.emit_binding(VarBinding(var, normal))
        return var

    def emit_binding(self, binding: Binding) -> None:
        """Add `binding`, unchanged, to the open block."""
        self._open[-1][0].append(binding)
        if isinstance(binding, VarBinding):
            self._bound_to[binding.var] = binding.value

    def lookup_binding(self, var: Expr) -> Expr | None:
        """The new value of `var`; ``None`` if no binding so far computes it."""
        return self._bound_to.get(var) if isinstance(var, Var) else None

    def replace_var(self, old: Var, new: Expr) -> None:
        """Let later uses of `old` read `new`, a leaf."""
        self._replaced[old] = new

    def normalize(self, value: Expr) -> Expr:
        """`value` with leaves for operands; nested computations are emitted."""
        match value:
            case Call():
                args = self._leaves(value.args)
                return value if args is value.args else replace(value, args=args)
            case Tuple():
                fields = self._leaves(value.fields)
                return value if fields is value.fields else Tuple(fields)
            case TupleGetItem(tuple_value=inner, index=index):
                return value if is_leaf(inner) else TupleGetItem(self.emit(inner), index)
            case _:
                return value

    def visit_struct_info(self, info: StructInfo) -> StructInfo:
        """`info`, in which variables of shapes are replaced as their uses are."""
        return with_shapes(info, self._replaced)

    # --- expressions ------------------------------------------------------------------

    def visit_expr(self, expr: Expr) -> Expr:
        """Dispatch on the kind of `expr`."""
        return getattr(self, METHODS[type(expr)])(expr)

    def visit_var(self, var: Var) -> Expr:
        """A use of `var`: itself, or its replacement."""
        return self._replaced.get(var, var)

    def visit_dataflow_var(self, var: DataflowVar) -> Expr:
        """A use of `var`; by default what `visit_var` does."""
        return self.visit_var(var)

    def visit_var_def(self, var: Var) -> Var:
        """The definition of a parameter; a new variable replaces the old one."""
        return var

    def visit_constant(self, constant: Constant) -> Expr:
        """A leaf."""
        return constant

    def visit_shape_expr(self, shape: ShapeExpr) -> Expr:
        """A leaf."""
        return shape

    def visit_prim_value(self, value: PrimValue) -> Expr:
        """A leaf."""
        return value

    def visit_string_imm(self, string: StringImm) -> Expr:
        """A leaf."""
        return string

    def visit_global_var(self, function: GlobalVar) -> Expr:
        """A leaf."""
        return function

    def visit_extern_func(self, function: ExternFunc) -> Expr:
        """A leaf."""
        return function

    def visit_tuple(self, value: Tuple) -> Expr:
        """The fields."""
        fields = self._each(value.fields)
        return value if fields is value.fields else Tuple(fields)

    def visit_tuple_getitem(self, value: TupleGetItem) -> Expr:
        """The tuple."""
        inner = self.visit_expr(value.tuple_value)
        return value if inner is value.tuple_value else TupleGetItem(inner, value.index)

    def visit_call(self, call: Call) -> Expr:
        """The callee, unless it is an `Op`, the operands, the claimed result.

        The struct info of a changed call is inferred again.
        """
        callee = call.op if isinstance(call.op, Op) else self.visit_expr(call.op)
        args = self._each(call.args)
        claims = tuple(map(self.visit_struct_info, call.sinfo_args))
        if callee is call.op and args is call.args and _all_same(claims, call.sinfo_args):
            return call
        known = self.visit_struct_info(call.struct_info)
        changed = replace(call, op=callee, args=args, sinfo_args=claims, struct_info=known)
        info = infer(changed)
        return changed if isinstance(info, ObjectStructInfo) else replace(changed, struct_info=info)

    def visit_if(self, branch: If) -> Expr:
        """The condition, then both branches."""
        cond = self.visit_expr(branch.cond)
        true, false = self._seq(branch.true_branch), self._seq(branch.false_branch)
        if cond is branch.cond and true is branch.true_branch and false is branch.false_branch:
            return branch
        changed = replace(branch, cond=cond, true_branch=true, false_branch=false)
        if (true.struct_info, false.struct_info) == _known(branch):
            return changed
        return replace(changed, struct_info=result_info(true, false, branch.struct_info))

    def visit_function(self, function: Function) -> Expr:
        """The parameters, then the body."""
        self._names |= {v.name for v in variables_of(function)}
        params = tuple(self._param(p) for p in function.params)
        body = self._seq(function.body)
        if body is function.body and _all_same(params, function.params):
            return function
        if body.struct_info == function.body.struct_info:
            return replace(function, params=params, body=body)
        visible = {*params, *shape_variables_of(function.ret_struct_info)}
        returned = outside(body.struct_info, visible)
        return replace(function, params=params, body=body, ret_struct_info=returned)

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        """The blocks, then the result; an empty block is dropped."""
        visited = [self._block(b) for b in seq.blocks]
        blocks = tuple(b for b in visited if b.bindings)
        self._open.append(([], False))
        body = self.visit_expr(seq.body)
        body = body if is_leaf(body) else self.emit(body)
        if added := self._open.pop()[0]:
            blocks = (*blocks, BindingBlock(tuple(added)))
        if body is seq.body and _all_same(blocks, seq.blocks):
            return seq
        return SeqExpr(blocks, body)

    # --- blocks and bindings ----------------------------------------------------------

    def visit_binding_block(self, block: BindingBlock) -> Block:
        """The bindings."""
        return self._rebuilt(block)

    def visit_dataflow_block(self, block: DataflowBlock) -> Block:
        """The bindings."""
        return self._rebuilt(block)

    def visit_binding(self, binding: Binding) -> None:
        """Dispatch on the kind of `binding`."""
        if isinstance(binding, VarBinding):
            self.visit_var_binding(binding)
        else:
            self.visit_match_cast(binding)

    def visit_var_binding(self, binding: VarBinding) -> None:
        """Visit the value and emit a binding of the result."""
        self.rebind(binding, self.visit_expr(binding.value))

    def rebind(self, binding: VarBinding, visited: Expr) -> None:
        """Emit `binding` with the value `visited`; the variable gets its struct info."""
        value = self.normalize(visited)
        var = self._declared(binding.var)
        if value.struct_info not in (binding.value.struct_info, var.struct_info):
            var = replace(var, struct_info=value.struct_info)
            self.replace_var(binding.var, var)
        same = value is binding.value and var is binding.var
        self.emit_binding(binding if same else VarBinding(var, value))

    def visit_match_cast(self, binding: MatchCast) -> None:
        """Visit the value and emit a check of the result."""
        value = self.visit_expr(binding.value)
        leaf = value if is_leaf(value) else self.emit(value)
        var = self._declared(binding.var)
        info = self.visit_struct_info(binding.struct_info)
        same = leaf is binding.value and var is binding.var and info is binding.struct_info
        new = binding if same else replace(binding, var=var, value=leaf, struct_info=info)
        self.emit_binding(new)

    # --- the rest ---------------------------------------------------------------------

    def _each(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        new = tuple(map(self.visit_expr, exprs))
        return exprs if _all_same(new, exprs) else new

    def _leaves(self, exprs: tuple[Expr, ...]) -> tuple[Expr, ...]:
        new = tuple(self._leaf(e) for e in exprs)
        return exprs if _all_same(new, exprs) else new

    def _leaf(self, expr: Expr) -> Expr:
        if is_leaf(expr):
            return expr
        return Tuple(self._leaves(expr.fields)) if isinstance(expr, Tuple) else self.emit(expr)

    def _seq(self, seq: SeqExpr) -> SeqExpr:
        visited = self.visit_expr(seq)
        return visited if isinstance(visited, SeqExpr) else SeqExpr((), visited)

    def _declared(self, var: Var) -> Var:
        """The definition of `var`, its struct info over replaced variables."""
        info = self.visit_struct_info(var.struct_info)
        if info is var.struct_info:
            return var
        new = replace(var, struct_info=info)
        self.replace_var(var, new)
        return new

    def _param(self, param: Var) -> Var:
        new = self._declared(self.visit_var_def(param))
        if new is not param:
            self.replace_var(param, new)
        return new

    def _block(self, block: Block) -> Block:
        if isinstance(block, DataflowBlock):
            return self.visit_dataflow_block(block)
        return self.visit_binding_block(block)

    def _rebuilt(self, block: Block) -> Block:
        self._open.append(([], isinstance(block, DataflowBlock)))
        for b in block.bindings:
            self.visit_binding(b)
        bindings = tuple(self._open.pop()[0])
        return block if _all_same(bindings, block.bindings) else replace(block, bindings=bindings)

    def _fresh(self, name: str) -> str:
        return unused(name, self._names, self._numbers)


def _known(branch: If) -> tuple[StructInfo, StructInfo]:
    return branch.true_branch.struct_info, branch.false_branch.struct_info


def _all_same(new: Sequence[object], old: Sequence[object]) -> bool:
    return len(new) == len(old) and all(a is b for a, b in zip(new, old, strict=True))

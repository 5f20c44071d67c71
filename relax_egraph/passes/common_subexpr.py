"""Common subexpression elimination."""

from collections.abc import Generator, Hashable
from contextlib import contextmanager

from relax_egraph.ir.call_rules import is_pure_in
from relax_egraph.ir.expr import (
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    PrimValue,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutation import writes_operands, written_variables
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.occurrences import shape_variables_in
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.walk import children
from relax_egraph.passes.analyses.visibility import with_outputs
from relax_egraph.passes.infra import function_pass

LARGE_CONSTANT = 4096
"""Constants of this many bytes or more are equal only if they share one array."""


@function_pass(name="eliminate_common_subexpr", opt_level=1)
def eliminate_common_subexpr(function: Function, module: IRModule) -> Function:
    """Use the variable of the first of equal computations for all that it dominates.

    Calls without effects, tuples and projections are equal if they have the same operands,
    attributes and struct info.  A value that a branch computes is not available after it, nor in
    the other branch.  A dataflow variable that is then read outside of its block becomes an output
    of it.  Calls with effects stay.  After a call that may write into its operands
    (``R.call_tir_inplace``, a function of the module or a closure with effects; a packed function
    does not) no earlier value is reused, and a tensor that is written anywhere is never merged.
    """
    written = written_variables(function, module)
    merger = _Merger(module, shape_variables_in(function), written)
    changed = merger.visit_expr(function)
    assert isinstance(changed, Function)
    return with_outputs(changed, merger.outputs)


class _Merger(ExprMutator):
    """Rewrites one function; `outputs` are dataflow variables now read outside of their block."""

    def __init__(self, module: IRModule, kept: frozenset[Var], written: frozenset[Var]) -> None:
        super().__init__()
        self.outputs: dict[Var, None] = {}
        self._module = module
        self._kept = kept
        self._written = written
        self._known: dict[Hashable, Var] = {}
        self._block_of: dict[Var, DataflowBlock] = {}
        self._home: DataflowBlock | None = None

    @contextmanager
    def _scope(self, known: dict[Hashable, Var]) -> Generator[None]:
        """A scope that starts with the values `known` and forgets its own at the end."""
        before, self._known = self._known, known
        yield
        self._known = before

    def visit_function(self, function: Function) -> Expr:
        """A local function captures nothing new: no outer value is available in it."""
        with self._scope({}):
            return super().visit_function(function)

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        """Values that a branch computes are available in it only."""
        with self._scope(dict(self._known)):
            return super().visit_seq_expr(seq)

    def visit_dataflow_block(self, block: DataflowBlock) -> DataflowBlock:
        around, self._home = self._home, block
        visited = super().visit_dataflow_block(block)
        self._home = around
        assert isinstance(visited, DataflowBlock)
        return visited

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.visit_expr(binding.value)
        if _writes(value, self._module):
            self._known.clear()
        key = None if binding.var in self._written else self._key(value)
        if key is None:
            self.rebind(binding, value)
            return
        key = (key, binding.var.struct_info)
        first = self._known.get(key)
        if first is None or binding.var in self._kept:
            self.rebind(binding, value)
            self._note(key, binding.var)
            return
        home = self._block_of.get(first)
        leaves = home is not self._home or not isinstance(binding.var, DataflowVar)
        if isinstance(first, DataflowVar) and leaves:
            self.outputs[first] = None
        self.replace_var(binding.var, first)

    def _note(self, key: Hashable, var: Var) -> None:
        defined = self.visit_expr(var)
        assert isinstance(defined, Var)
        self._known.setdefault(key, defined)
        if self._home is not None:
            self._block_of[defined] = self._home

    def _key(self, value: Expr) -> Hashable | None:
        """A key that equal computations share; ``None`` for a computation that is never merged."""
        match value:
            case Call() if is_pure_in(self._module, value):
                attrs = value.attrs
                callee: Hashable = value.op
                if isinstance(value.op, Op):
                    callee = value.op.name
                    attrs = attrs if value.op.intrinsic else complete_attrs(value.op, attrs)
                operands = tuple(map(_leaf_key, value.args))
                infos = (value.sinfo_args, value.struct_info)
                return ("call", callee, operands, repr(sorted(attrs.items())), infos)
            case Tuple() if value.fields:
                return _leaf_key(value)
            case TupleGetItem(tuple_value=inner, index=index):
                return ("field", _leaf_key(inner), index)
            case _:
                return None


def _leaf_key(leaf: Expr) -> Hashable:
    match leaf:
        case Tuple(fields=fields):
            return ("tuple", *map(_leaf_key, fields))
        case Constant(data=data) if data.nbytes < LARGE_CONSTANT:
            return ("constant", data.dtype.name, data.shape, data.tobytes())
        case Constant(data=data):
            return ("constant", id(data))
        case PrimValue(value=float(value), dtype=dtype):
            return ("number", repr(value), dtype)
        case _:
            return leaf


def _writes(value: Expr, module: IRModule) -> bool:
    """Whether computing `value` may write into tensors that exist before it."""
    if isinstance(value, Function):
        return False
    if isinstance(value, Call) and writes_operands(module, value):
        return True
    return any(_writes(child, module) for child in children(value))

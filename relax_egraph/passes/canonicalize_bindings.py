"""Drops redundant bindings: aliases, projections of known tuples, casts to known struct info."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols, bind, implies
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Block,
    Call,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    If,
    MatchCast,
    SeqExpr,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.occurrences import shape_variables_in
from relax_egraph.ir.struct_info import StructInfo, TupleStructInfo
from relax_egraph.ir.substitution import Substitution
from relax_egraph.ir.walk import bindings_of, is_leaf
from relax_egraph.passes.analyses.visibility import without_unread_outputs
from relax_egraph.passes.infra import function_pass


@function_pass(name="canonicalize_bindings", opt_level=1)
def canonicalize_bindings(function: Function, _: IRModule) -> Function:
    """Give each value, and each dimension, one name.

    * A variable bound to a leaf is replaced by it, unless its declaration claims more.
    * Field ``k`` of a tuple expression is that field; the tuple of all fields of a tuple, in
      order, is that tuple.
    * ``R.match_cast`` to known struct info is its value; a symbol that it binds to a known
      dimension is that dimension.
    * An output of a dataflow block that aliases a local variable replaces it; an output that
      only its block reads becomes local.

    Unused tuples stay: `dead_code_elimination` drops them.
    """
    known = _with_one_name_for_each_dim(function)
    canonicalizer = _Canonicalizer(shape_variables_in(known))
    changed = canonicalizer.visit_expr(known)
    assert isinstance(changed, Function)
    renamed = canonicalizer.definitions
    if renamed:
        changed = Substitution({}, definitions=renamed).function(changed)
    return without_unread_outputs(changed)


class _Canonicalizer(ExprMutator):
    """Rewrites one function; `definitions` maps dataflow variables to outputs that alias them."""

    def __init__(self, kept: frozenset[Var]) -> None:
        super().__init__()
        self.definitions: dict[Var, Var] = {}
        self._kept = kept
        self._tuples: dict[Var, Tuple] = {}
        self._field_of: dict[Var, tuple[Var, int]] = {}
        self._local: set[Var] | None = None

    def visit_function(self, function: Function) -> Expr:
        visited = super().visit_function(function)
        assert isinstance(visited, Function)
        declared, known = function.ret_struct_info, function.body.struct_info
        if declared in (known, visited.ret_struct_info):
            return visited
        return replace(visited, ret_struct_info=declared)

    def visit_dataflow_block(self, block: DataflowBlock) -> Block:
        around, self._local = self._local, set()
        visited = super().visit_dataflow_block(block)
        self._local = around
        return visited

    def visit_tuple(self, value: Tuple) -> Expr:
        visited = super().visit_tuple(value)
        assert isinstance(visited, Tuple)
        origins = [self._field_of.get(f) for f in visited.fields if isinstance(f, Var)]
        first = origins[0] if origins else None
        if first is None or len(origins) < len(visited.fields):
            return visited
        whole = first[0]
        all_in_order = origins == [(whole, k) for k in range(len(origins))]
        info = whole.struct_info
        complete = isinstance(info, TupleStructInfo) and len(info.fields) == len(origins)
        return whole if all_in_order and complete and self._is_visible(whole) else visited

    def visit_tuple_getitem(self, value: TupleGetItem) -> Expr:
        visited = super().visit_tuple_getitem(value)
        assert isinstance(visited, TupleGetItem)
        inner = visited.tuple_value
        known = self._tuples.get(inner) if isinstance(inner, Var) else inner
        if isinstance(known, Tuple) and self._is_visible(known.fields[visited.index]):
            return known.fields[visited.index]
        return visited

    def visit_var_binding(self, binding: VarBinding) -> None:
        if isinstance(binding.value, Call | If | Function):
            super().visit_var_binding(binding)
            self._defines(binding.var)
            return
        value = self.visit_expr(binding.value)
        if self._is_name_of(binding.var, value):
            return
        self.emit_binding(binding if value is binding.value else VarBinding(binding.var, value))
        self._defines(binding.var)
        match value:
            case Tuple():
                self._tuples[binding.var] = value
            case TupleGetItem(tuple_value=Var() as whole, index=index):
                self._field_of[binding.var] = whole, index
            case _:
                pass

    def visit_match_cast(self, binding: MatchCast) -> None:
        value = self.visit_expr(binding.value)
        if implies(value.struct_info, binding.struct_info) and self._is_name_of(binding.var, value):
            return
        super().visit_match_cast(binding)
        self._defines(binding.var)

    def _is_name_of(self, var: Var, value: Expr) -> bool:
        """Whether `var` is an alias of `value`; if so, uses of `var` read `value` from now on."""
        if not is_leaf(value) or isinstance(value, Tuple) or var in self._kept:
            return False
        if not implies(value.struct_info, var.struct_info):
            return False
        if self._local is not None and value in self._local and not isinstance(var, DataflowVar):
            assert isinstance(value, Var)
            value = self.definitions.setdefault(value, Var(var.name, value.struct_info))
        self.replace_var(var, value)
        return True

    def _is_visible(self, leaf: Expr) -> bool:
        if isinstance(leaf, Tuple):
            return all(map(self._is_visible, leaf.fields))
        return not isinstance(leaf, DataflowVar) or (
            self._local is not None and leaf in self._local
        )

    def _defines(self, var: Var) -> None:
        if self._local is not None:
            new = self.visit_var(var)
            assert isinstance(new, Var)
            if isinstance(new, DataflowVar):
                self._local.add(new)


# --- dimensions -----------------------------------------------------------------------


def _with_one_name_for_each_dim(function: Function) -> Function:
    """`function` without the symbols that a cast binds to a known dimension."""
    while known := _known_dim(function):
        function = Substitution(dict([known])).function(function)
    return function


def _known_dim(function: Function) -> tuple[str, Dim] | None:
    """A symbol that a cast binds, and the known dimension that it equals."""
    own = set[str]().union(*(bare_symbols(p.struct_info) for p in function.params))
    first: dict[str, tuple[MatchCast | None, bool]] = {}
    sites = Counter[str]()
    for cast, info, is_outermost in _binders(function):
        for name in bare_symbols(info) - own:
            first.setdefault(name, (cast, is_outermost))
            sites[name] += 1
    for name, (cast, is_outermost) in first.items():
        if cast is None or not (is_outermost or sites[name] == 1):
            continue
        value = bind([cast.struct_info], [cast.value.struct_info]).get(name)
        if value is not None and name not in dims.symbols(value):
            return name, value
    return None


def _binders(function: Function) -> Iterator[tuple[MatchCast | None, StructInfo, bool]]:
    """The binders of symbols inside of `function`, in order: casts, and parameters of functions.

    The flag states that the binder is in no branch and no local function.
    """
    outermost = {b for b in bindings_of(function.body) if isinstance(b, MatchCast)}
    binders: list[tuple[MatchCast | None, StructInfo, bool]] = []

    def visit(seq: SeqExpr) -> None:
        for binding in bindings_of(seq):
            if isinstance(binding, MatchCast):
                binders.append((binding, binding.struct_info, binding in outermost))
            elif isinstance(binding.value, Function):
                binders.extend((None, p.struct_info, False) for p in binding.value.params)
                visit(binding.value.body)
            elif isinstance(binding.value, If):
                visit(binding.value.true_branch)
                visit(binding.value.false_branch)

    visit(function.body)
    yield from binders

"""Lowers symbolic dimensions to slots of a shape heap."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import block_builder
from relax_egraph.ir.agreement import implies
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Expr,
    ExternFunc,
    Function,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    symbols_of,
    tensor,
)
from relax_egraph.ir.walk import is_leaf, variables_of
from relax_egraph.passes.analyses.needed_dims import needed_dims
from relax_egraph.passes.infra import module_pass
from relax_egraph.passes.shape_heap import ShapeHeap
from relax_egraph.passes.to_non_dataflow import merged_blocks

_OPERATORS = "relax.run."
"""The name prefixes of functions that compute operators: their results need no check."""

_NOTHING = TupleStructInfo(())
"""The result of functions that write into their operands, such as loop functions."""


@module_pass(name="vm_shape_lower")
def vm_shape_lower(module: IRModule) -> IRModule:
    """Compute shapes at run time, on a heap of dimensions that each function allocates.

    * Parameters are checked at entry, ``R.match_cast`` at its position: kind, rank, dtype,
      extents.  The first occurrence of a symbol stores it, later ones compare it.  For all
      parameters (all fields of one cast), symbols come first, then extents computed from them.
    * Results of packed functions and closures are checked against their ``sinfo_args``.
    * One ``R.vm.compute_shapes`` computes all dimensions such as ``n * 4`` at the point where
      their symbols become known: entry, a cast, the beginning of a branch.  Dimensions that may
      divide by zero are computed at their use.
    * A shape with symbols becomes ``R.vm.make_shape``, a scalar ``R.vm.load_prim``.

    Only signatures keep symbols, those of parameters.  Checks and the heap are effects: no
    function is pure afterwards.  Raises `IllFormed` if a dimension is used before a parameter or
    a cast binds its symbols.
    """
    functions: dict[str, BaseFunc] = dict(module.functions)
    for name, function in module.relax_functions():
        functions[name] = _ShapeLower(name).lower(function)
    return replace(module, functions=functions)


class _ShapeLower(ExprMutator):
    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def lower(self, function: Function) -> Function:
        """The lowered function: checks at entry, then the body."""
        self._names |= {v.name for v in variables_of(function)}
        self._heap = heap = ShapeHeap(self._name, Var(self._fresh("shape_heap")), self.emit)
        with self._collected() as entry:
            pending = [
                site
                for p in function.params
                for site in heap.match(f"{self._name}: parameter {p.name}", p, p.struct_info)
            ]
            heap.begin(needed_dims(function.body), pending)
        body = self._seq(function.body)
        if heap.is_used:
            size = block_builder.call("vm.alloc_shape_heap", PrimValue(heap.size))
            entry.insert(0, VarBinding(heap.var, size))
        body = _preceded(entry, body)
        kept = frozenset[str]().union(*(symbols_of(p.struct_info) for p in function.params))
        ret = without_symbols(function.ret_struct_info, kept)
        return replace(function, body=body, ret_struct_info=ret, is_pure=False)

    @contextmanager
    def _collected(self) -> Generator[list[VarBinding]]:
        """Collect emitted bindings, outside of any block."""
        bindings: list[VarBinding] = []
        self._open.append(([], False))
        yield bindings
        bindings += [b for b in self._open.pop()[0] if isinstance(b, VarBinding)]

    # --- lowering of expressions ------------------------------------------------------

    def visit_function(self, function: Function) -> Expr:
        raise NotLowerable(
            f"function {self._name!r} has a local function inside: run lambda_lift first"
        )

    def visit_seq_expr(self, seq: SeqExpr) -> Expr:
        visited = super().visit_seq_expr(seq)
        assert isinstance(visited, SeqExpr)
        return merged_blocks(visited)

    def visit_shape_expr(self, shape: ShapeExpr) -> Expr:
        return self._heap.shape(shape)

    def visit_prim_value(self, value: PrimValue) -> Expr:
        return self._heap.prim(value)

    def visit_if(self, branch: If) -> Expr:
        cond = self.visit_expr(branch.cond)
        true, false = map(self._branch, (branch.true_branch, branch.false_branch))
        return If(cond, true, false, without_symbols(branch.struct_info))

    def _branch(self, seq: SeqExpr) -> SeqExpr:
        with self._heap.scope():
            with self._collected() as first:
                self._heap.begin(needed_dims(seq))
            visited = self._seq(seq)
        return _preceded(first, visited)

    def visit_call(self, call: Call) -> Expr:
        visited = super().visit_call(call)
        assert isinstance(visited, Call)
        sinfo_args = tuple(map(without_symbols, visited.sinfo_args))
        info = without_symbols(visited.struct_info)
        if sinfo_args == visited.sinfo_args and info == visited.struct_info:
            return visited
        return replace(visited, sinfo_args=sinfo_args, struct_info=info)

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self.normalize(self.visit_expr(binding.value))
        var = self._erased(binding.var)
        self.emit_binding(VarBinding(var, value))
        match binding.value:
            case Call(op=Op(), args=(ExternFunc(name=name), *args), sinfo_args=(info, *_)) if not (
                info == _NOTHING or name.startswith(_OPERATORS) or _is_known(name, args, info)
            ):
                where = f"{self._name}: the result of {name!r}"
                self._heap.compare(self._heap.match(where, var, info))
            case Call(op=Op(name="invoke_closure" | "invoke_pure_closure"), sinfo_args=(info, *_)):
                where = f"{self._name}: the result of a closure"
                self._heap.compare(self._heap.match(where, var, info))
            case _:
                pass

    def visit_match_cast(self, binding: MatchCast) -> None:
        visited = self.visit_expr(binding.value)
        value = visited if is_leaf(visited) else self.emit(visited)
        known, wanted = _extents(binding.value.struct_info), _extents(binding.struct_info)
        if binding.refusal and known is not None and wanted is not None:
            self._heap.refuse(value, known, wanted, binding.refusal)
        else:
            where = f"{self._name}: match_cast {binding.var.name}"
            self._heap.compare(self._heap.match(where, value, binding.struct_info))
        self.emit_binding(VarBinding(self._erased(binding.var), value))

    def _erased(self, var: Var) -> Var:
        info = without_symbols(var.struct_info)
        if info == var.struct_info:
            return var
        new = replace(var, struct_info=info)
        self.replace_var(var, new)
        return new


def _extents(info: StructInfo) -> Shape | None:
    match info:
        case TensorStructInfo():
            return info.dims
        case ShapeStructInfo(values=values):
            return values
        case _:
            return None


def _is_known(name: str, args: Sequence[Expr], info: StructInfo) -> bool:
    """Whether the result of a builtin that lowering calls is known to match `info`."""
    operand = args[0].struct_info if args else ObjectStructInfo()
    match name.removeprefix("vm.builtin."), operand:
        case "reshape", TensorStructInfo(dtype=dtype) if len(args) == 2:
            values = getattr(args[1].struct_info, "values", None)
            return implies(tensor(values, dtype), info)
        case "shape_of", TensorStructInfo():
            return implies(ShapeStructInfo(operand.dims, operand.ndim), info)
        case "tensor_to_shape", TensorStructInfo(dims=(int() as ndim,)):
            return implies(ShapeStructInfo(None, ndim), info)
        case "writable" | "check_indices" | "check_elements", _:
            return implies(operand, info)
        case "prim_less_equal", _:
            return implies(tensor((), "bool"), info)
        case _:
            return False


def _preceded(first: Sequence[VarBinding], seq: SeqExpr) -> SeqExpr:
    """`seq`, with the bindings `first` prepended."""
    if not first:
        return seq
    return merged_blocks(SeqExpr((BindingBlock(tuple(first)), *seq.blocks), seq.body))


def without_symbols(info: StructInfo, kept: frozenset[str] = frozenset()) -> StructInfo:
    """`info`, with only the rank of shapes that have symbols other than `kept`."""
    match info:
        case TensorStructInfo(shape=shape, dtype=dtype, ndim=ndim):
            known = info.dims is not None and symbols_of(info) <= kept
            return info if shape is None or known else tensor(None, dtype, ndim)
        case ShapeStructInfo(ndim=ndim):
            return info if symbols_of(info) <= kept else ShapeStructInfo(None, ndim)
        case PrimStructInfo(dtype=dtype):
            return info if symbols_of(info) <= kept else PrimStructInfo(dtype)
        case TupleStructInfo(fields=fields):
            return TupleStructInfo(tuple(without_symbols(f, kept) for f in fields))
        case FuncStructInfo(params=params, ret=ret, purity=purity):
            erased = None if params is None else tuple(without_symbols(p, kept) for p in params)
            return FuncStructInfo(erased, without_symbols(ret, kept), purity)
        case _:
            return info

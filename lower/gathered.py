"""Products with matrices selected by indices, which read the matrices in place."""

from collections import Counter
from collections.abc import Mapping

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Call, Expr, Function, SeqExpr, Var, VarBinding
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutation import writes_in_place
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.struct_info import Shape, TensorStructInfo
from relax_egraph.ir.walk import bindings_of, post_order_visit
from relax_egraph.lower.legalize import LEGALIZE
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir import te
from relax_egraph.tir.call_te import call_te


@module_pass(name="read_gathered")
def read_gathered(module: IRModule) -> IRModule:
    """Fuse the selection of matrices into a product with one row or column that alone reads it.

        w = R.take(experts, ids, axis=0)                # experts: (8, 64, 128), ids: (n,)
        y = R.matmul(x, w)                              # x: (n, 1, 64)
        -->
        y = R.call_tir(cls.take_matmul, (experts, ids, x), …)

    Such a product costs no more than copying its operand.  Modules that write tensors in place are
    unchanged, since there the selection is a copy at its time.
    """
    if any(writes_in_place(f) for _, f in module.relax_functions()):
        return module
    bb, changed = BlockBuilder(module), dict[str, BaseFunc]()
    for name, function in module.relax_functions():
        if not function.attrs.get("primitive") and (calls := _calls(function, bb)):
            new = _Reader(calls).visit_expr(function)
            assert isinstance(new, Function)
            changed[name] = new
    if not changed:
        return module
    return IRModule({name: changed.get(name, f) for name, f in bb.get().functions.items()})


class _Reader(ExprMutator):
    """Replaces the values of variables by `calls`; a variable with ``None`` is dropped."""

    def __init__(self, calls: Mapping[Var, Call | None]) -> None:
        super().__init__()
        self._calls = calls

    def visit_var_binding(self, binding: VarBinding) -> None:
        value = self._calls.get(binding.var, binding.value)
        if value is not None:
            super().visit_var_binding(VarBinding(binding.var, value))


def _calls(function: Function, bb: BlockBuilder) -> dict[Var, Call | None]:
    """The new values of variables of `function`; loop functions are added to the module of `bb`."""
    uses, bound = Counter[Expr](), dict[Var, Call]()

    def visit(expr: Expr) -> None:
        if isinstance(expr, Var):
            uses[expr] += 1
        for binding in bindings_of(expr) if isinstance(expr, SeqExpr) else ():
            if isinstance(binding, VarBinding) and isinstance(binding.value, Call):
                bound[binding.var] = binding.value

    post_order_visit(function, visit)
    calls: dict[Var, Call | None] = {}
    for var, product in bound.items():
        if not isinstance(product.op, Op) or product.op.name != "matmul":
            continue
        for place, operand in enumerate(product.args):
            if not isinstance(operand, Var) or operand not in bound or uses[operand] > 1:
                continue
            if call := _call(bb, bound[operand], product, place):
                calls |= {operand: None, var: call}
                break
    return calls


def _call(bb: BlockBuilder, gather: Call, product: Call, place: int) -> Call | None:
    """The call for `product` with the operand `gather` at `place`; ``None`` if it is not fused."""
    if not isinstance(gather.op, Op) or not _selects_matrices(gather, gather.op):
        return None
    selected, other, result = map(_shape, (gather, product.args[1 - place], product))
    if not selected or not other or not result:
        return None
    rows, length = (other[-1:], selected[-2]) if place == 0 else (other[-2:-1], selected[-1])
    size = dims.mul(dims.product(selected[:-2]), length)
    if (len(other) > 1 and rows != (1,)) or not dims.equal(dims.product(result), size):
        return None
    op, attrs = gather.op, complete_attrs(gather.op, gather.attrs)

    def composed(matrices: te.Tensor, indices: te.Tensor, beside: te.Tensor) -> te.Tensor:
        selected_matrices = LEGALIZE[op.name](matrices, indices, **attrs)
        result = LEGALIZE["matmul"](
            *((beside, selected_matrices) if place else (selected_matrices, beside))
        )
        assert isinstance(result, te.Tensor)
        return result

    args = (*gather.args, product.args[1 - place])
    try:
        return call_te(bb, composed, *args, name=f"{op.name}_matmul")
    except NotLowerable:
        return None  # its conditions are known only at run time


def _selects_matrices(call: Call, op: Op) -> bool:
    """Whether `call` selects whole matrices, the last two axes of a tensor."""
    if op.name not in ("take", "gather_nd"):
        return False
    data, indices = map(_shape, call.args)
    if data is None or indices is None:
        return False
    match op.name, complete_attrs(op, call.attrs):
        case "take", {"axis": int(axis), "mode": str(mode)}:
            return axis % len(data) < len(data) - 2 and mode != "nan"
        case "gather_nd", {"batch_dims": int(batch_dims)}:
            depth = indices[-1]
            return isinstance(depth, int) and batch_dims + depth <= len(data) - 2
        case _:
            return False


def _shape(value: Expr) -> Shape | None:
    """The extents of a tensor of known shape and dtype."""
    info = value.struct_info
    return info.dims if isinstance(info, TensorStructInfo) and info.dtype else None

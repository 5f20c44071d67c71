"""Loops over time become one loop function: states stay in its buffers from turn to turn.

A loop that is a recursion of two functions, with a number of turns that is known before, is a
single kernel if a turn is one: operators and fused functions on tensors of known shape.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    BindingBlock,
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.mutator import ExprMutator
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor
from relax_egraph.ir.walk import free_vars, post_order_visit
from relax_egraph.lower.fuse_calls import merged_prim_func
from relax_egraph.lower.fuse_tir import fuse_tir, fused_prim_func
from relax_egraph.lower.loop_call import LoopCall, loop_call, stacked
from relax_egraph.lower.tail_recursion import TailLoop, tail_loop
from relax_egraph.lower.turn_kernel import Turn, repeated
from relax_egraph.passes.dead_code import callees, reachable
from relax_egraph.passes.infra import module_pass
from relax_egraph.tir.call_te import call_prim_func
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc

LARGEST = 1 << 22
"""The maximal elements that a turn may read beside states and slices.

With more, memory is the limit, and the kernels of a turn may run on several threads.
"""


@module_pass(name="time_loops")
def time_loops(module: IRModule) -> IRModule:
    """`module` with a loop function for each loop over time that can be one; others stay."""
    functions: dict[str, BaseFunc] = dict(module.functions)
    mentions = {name: _mentioned(f) for name, f in module.relax_functions()}
    counts = Counter(name for names in mentions.values() for name in names)
    unused_now = set[str]()
    for name, function in module.relax_functions():
        if not function.attrs.get("private") or counts[name] != 2:
            continue
        loop = tail_loop(module, name)
        if loop is None or counts[loop.names[1]] != 1:
            continue
        callers = [n for n, names in mentions.items() if name in names and n not in loop.names]
        if len(callers) == 1 and _replaced(module, functions, callers[0], loop):
            unused_now |= reachable(module.functions, loop.names)
    roots = [n for n, f in functions.items() if n not in unused_now or not f.attrs.get("private")]
    needed = reachable(functions, roots)
    if not unused_now:
        return module
    return replace(module, functions={n: f for n, f in functions.items() if n in needed})


def _replaced(
    module: IRModule, functions: dict[str, BaseFunc], caller: str, loop: TailLoop
) -> bool:
    """Whether the function `caller` of `functions` now calls a loop function instead of `loop`."""
    function = functions[caller]
    assert isinstance(function, Function)
    call = loop_call(function, loop)
    kernel = call and _kernel(module, loop, call)
    if call is None or kernel is None:
        return False
    name = unused(f"{loop.names[0]}_turns", set(functions))
    functions[name] = kernel.function
    new = _Caller(call, kernel, name).visit_expr(function)
    assert isinstance(new, Function)
    functions[caller] = new
    return True


def _mentioned(function: BaseFunc) -> list[str]:
    names: list[str] = []
    if isinstance(function, Function):
        post_order_visit(
            function, lambda e: names.append(e.name) if isinstance(e, GlobalVar) else None
        )
    return names


@dataclass(frozen=True, slots=True)
class _Kernel:
    """The loop function, and its operands at the site."""

    function: PrimFunc
    operands: tuple[Expr, ...]


def _kernel(module: IRModule, loop: TailLoop, call: LoopCall) -> _Kernel | None:
    """The loop function of all turns; ``None`` if a turn is none."""
    outer = dict(zip(loop.around, call.around, strict=True))
    sources = {b.var: _slice(b.value, loop, call.times) for b in loop.bindings}
    slices = {var: source for var, source in sources.items() if source is not None}
    results = Tuple((*loop.state, *loop.items))
    bindings = _needed([b for b in loop.bindings if b.var not in slices], results)
    body = SeqExpr((BindingBlock(tuple(bindings)),), results)
    lifted = _Lifted()
    seq = lifted.visit_expr(body)
    assert isinstance(seq, SeqExpr)
    free = [v for v in free_vars(seq) if v not in loop.before]
    sliced = [v for v in free if v in slices]
    rest = [v for v in free if v not in slices]
    unread = [b for b in loop.bindings if b not in bindings and b.var not in slices]
    if any(v not in outer and v not in lifted.constants for v in rest):
        return None
    if not all(_steers(b.value, loop) for b in unread):
        return None
    params = (*loop.before, *sliced, *rest)
    function = Function(params, seq, results.struct_info)
    try:
        prim_func = _prim_func(module, loop.names[1], function)
        kernel = repeated(Turn(prim_func, len(loop.before), len(sliced)), call.times)
    except NotLowerable:
        return None
    operands = [
        *call.states,
        *(outer[slices[v]] for v in sliced),
        *(outer[v] if v in outer else lifted.constants[v] for v in rest),
    ]
    states = zip(kernel.inputs, kernel.outputs[: len(loop.before)], strict=False)
    pairs = [*zip(kernel.inputs, (e.struct_info for e in operands), strict=True)]
    pairs += [(first, tensor(last.shape, last.dtype)) for first, last in states]
    constant = sum(_elements(v.struct_info) for v in rest)
    if constant > LARGEST or kernel.scalars or not all(_fits(b, info) for b, info in pairs):
        return None
    return _Kernel(kernel, tuple(operands))


def _fits(buffer: Buffer, info: StructInfo) -> bool:
    """Whether a tensor of `info` is proven to have the dtype and the extents of `buffer`."""
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype != buffer.dtype:
        return False
    extents = info.dims
    return len(extents) == len(buffer.shape) and all(map(dims.equal, buffer.shape, extents))


def _elements(info: StructInfo) -> int:
    """The number of elements of a tensor, 0 if it is unknown."""
    if not isinstance(info, TensorStructInfo) or info.dims is None:
        return 0
    size = dims.product(info.dims)
    return size if isinstance(size, int) else 0


def _steers(value: Expr, loop: TailLoop) -> bool:
    """Whether `value`, which the results do not need, only leads to the next turn."""
    match value:
        case Call(op=GlobalVar(name=name)) if name == loop.names[0]:
            return True
        case Call(args=(ExternFunc(name="vm.builtin.sequence_append"), *_)):
            return True
        case Call(op=Op(name="add" | "check_indices"), args=(turn, *_)):
            return turn is loop.turn
        case _:
            return False


def _slice(value: Expr, loop: TailLoop, times: Dim) -> Var | None:
    """The tensor from around of which `value` takes the part at the turn, along its first axis.

    It has as many parts as there are turns.
    """
    match value:
        case Call(op=Op(name="take"), args=(Var() as source, index), attrs={"axis": 0}):
            info = source.struct_info
            if source not in loop.around or not isinstance(info, TensorStructInfo):
                return None
            known = info.dims is not None and dims.equal(info.dims[0], times)
            return source if known and _is_turn(index, loop, times) else None
        case _:
            return None


def _is_turn(index: Expr, loop: TailLoop, times: Dim) -> bool:
    """Whether `index` is the number of the turn, perhaps checked to be below that of turns."""
    if index is loop.turn:
        return True
    value = next((b.value for b in loop.bindings if b.var is index), None)
    match value:
        case Call(
            op=Op(name="check_indices"), args=(turn, ShapeExpr(values=(extent, *_))), attrs=a
        ):
            return turn is loop.turn and a.get("axes") == (0,) and dims.equal(extent, times)
        case _:
            return False


def _needed(bindings: Sequence[VarBinding], results: Expr) -> list[VarBinding]:
    """The bindings that `results` depend on, in order."""
    wanted, kept = set(free_vars(results)), list[VarBinding]()
    for binding in reversed(bindings):
        if binding.var in wanted:
            wanted.update(free_vars(binding.value))
            kept.append(binding)
    return kept[::-1]


class _Lifted(ExprMutator):
    """Replaces constants of several elements by variables."""

    def __init__(self) -> None:
        super().__init__()
        self.constants: dict[Var, Constant] = {}

    def visit_constant(self, constant: Constant) -> Expr:
        if constant.data.size <= 1:
            return constant
        var = next((v for v, c in self.constants.items() if c is constant), None)
        if var is None:
            var = Var(f"constant{len(self.constants)}", constant.struct_info)
            self.constants[var] = constant
        return var


def _prim_func(module: IRModule, name: str, function: Function) -> PrimFunc:
    """The loop function of `function`; raises `NotLowerable` if it has none."""
    needed = reachable(module.functions, callees(function))
    fused = {n: f for n, f in module.functions.items() if n in needed}
    lowered = fuse_tir(IRModule({**fused, name: function}))
    turn = lowered[name]
    assert isinstance(turn, Function)
    return merged_prim_func(lowered, name, turn, fused_prim_func)


class _Caller(ExprMutator):
    """Calls the kernel instead of the loop; what a list was stacked to is a result of it."""

    def __init__(self, call: LoopCall, kernel: _Kernel, name: str) -> None:
        super().__init__()
        self._call, self._kernel = call, kernel
        self._callee = GlobalVar(name, kernel.function.struct_info)

    def visit_call(self, call: Call) -> Expr:
        if call is self._call.call:
            operands = [self.visit_expr(e) for e in self._kernel.operands]
            return call_prim_func(self._callee, self._kernel.function, operands)
        sequence = stacked(call)
        if sequence is not None:
            new = self.visit_expr(sequence)
            if isinstance(new.struct_info, TensorStructInfo):
                return new
        return super().visit_call(call)

"""Estimates the memory of a function's tensors, before memory is planned."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call, ExternFunc, Function, GlobalVar, If, SeqExpr, Var, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo
from relax_egraph.ir.walk import bindings_of, free_vars

VIEWS = frozenset({"reshape", "flatten", "expand_dims", "squeeze", "vm.builtin.reshape"})
"""Operators and packed functions that return a view of the operand's memory."""


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The tensors that one call of a function allocates, without arguments and constants.

    `total` is the sum of their bytes, without reuse; `live` are the bytes that exist at each step,
    a tensor from the call that computes it to its last use.  `unknown` counts the tensors whose
    size is decided at run time: neither includes them.
    """

    tensors: int
    total: Dim
    live: tuple[Dim, ...]
    unknown: int

    def peak(self, sizes: Mapping[str, int]) -> int:
        """The most bytes that exist at once; raises ``KeyError`` for a symbol without a size."""
        return max((dims.evaluate(step, sizes) for step in self.live), default=0)

    def __add__(self, other: "MemoryUse") -> "MemoryUse":
        return MemoryUse(
            self.tensors + other.tensors,
            dims.add(self.total, other.total),
            (*self.live, *other.live),
            self.unknown + other.unknown,
        )


_NOTHING = MemoryUse(0, 0, (), 0)


def estimate_memory(module: IRModule) -> dict[str, MemoryUse]:
    """The memory of each relax function of `module`, functions that it calls included.

    Both branches of a conditional count towards the total.  A recursive call counts nothing.
    """
    return {name: _function(module, f, (name,)) for name, f in module.relax_functions()}


def _function(module: IRModule, function: Function, calls: tuple[str, ...]) -> MemoryUse:
    if function.attrs.get("primitive"):
        return _NOTHING
    return _sequence(module, function.body, calls)


def _sequence(module: IRModule, seq: SeqExpr, calls: tuple[str, ...]) -> MemoryUse:
    bindings = list(bindings_of(seq))
    owner: dict[Var, Var] = {}
    last: dict[Var, int] = {}
    for step, binding in enumerate(bindings):
        read = [owner[v] for v in free_vars(binding.value) if v in owner]
        last |= dict.fromkeys(read, step)
        is_made = isinstance(binding, VarBinding) and _makes(binding.value)
        owner[binding.var] = binding.var if is_made or not read else read[0]
    last |= {owner[v]: len(bindings) for v in free_vars(seq.body) if v in owner}
    use = _NOTHING
    sizes: dict[Var, Dim] = {}
    for step, binding in enumerate(bindings):
        earlier = _sum(size for var, size in sizes.items() if last.get(var, -1) >= step)
        inner = _inside(module, binding.value, calls)
        allocated: Dim = 0
        if owner[binding.var] is binding.var and _makes(binding.value):
            nbytes = list(_nbytes(binding.var.struct_info))
            allocated = sizes[binding.var] = _sum(d for d in nbytes if d is not None)
            if not inner.tensors:  # else it is one of those
                use += MemoryUse(len(nbytes), allocated, (), nbytes.count(None))
        steps = (
            *(dims.add(earlier, inside) for inside in inner.live),
            dims.add(earlier, allocated),
        )
        use += MemoryUse(inner.tensors, inner.total, steps, inner.unknown)
    return use


def _inside(module: IRModule, value: object, calls: tuple[str, ...]) -> MemoryUse:
    """The tensors that are allocated while a bound value is computed, besides its result."""
    match value:
        case If():
            branches = (value.true_branch, value.false_branch)
            return _sequence(module, branches[0], calls) + _sequence(module, branches[1], calls)
        case Call(op=GlobalVar(name=name)) if name in module and name not in calls:
            callee = module[name]
            if isinstance(callee, Function):
                return _function(module, callee, (*calls, name))
        case _:
            pass
    return _NOTHING


def _makes(value: object) -> bool:
    """Whether a bound value has new memory: it is a call that does not return a view."""
    if not isinstance(value, Call):
        return False
    if isinstance(value.op, Op) and value.args and isinstance(value.args[0], ExternFunc):
        return value.args[0].name not in VIEWS
    return not (isinstance(value.op, Op) and value.op.name in VIEWS)


def _nbytes(info: StructInfo) -> Iterator[Dim | None]:
    """The bytes of each tensor of a value; ``None`` where the size is unknown."""
    match info:
        case TupleStructInfo(fields=fields):
            for field in fields:
                yield from _nbytes(field)
        case TensorStructInfo(dtype=dtype):
            if info.dims is None or dtype is None:
                yield None
            else:
                yield dims.mul(dims.product(info.dims), np.dtype(dtype).itemsize)
        case _:
            pass


def _sum(sizes: Iterator[Dim]) -> Dim:
    total: Dim = 0
    for size in sizes:
        total = dims.add(total, size)
    return total

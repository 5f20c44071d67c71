"""Fused functions: kernels as functions of graph operators, without redundant broadcasts."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.assumptions import Assumptions, active, conditions
from relax_egraph.ir.expr import (
    Attr,
    Binding,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    Function,
    GlobalVar,
    SeqExpr,
    ShapeExpr,
    Tuple,
    Var,
    VarBinding,
)
from relax_egraph.ir.kernel import ANCHOR, SECONDS, Kernel
from relax_egraph.ir.names import unused
from relax_egraph.ir.op import Op, infer
from relax_egraph.ir.struct_info import ShapeStructInfo, StructInfo, TensorStructInfo, symbols_of
from relax_egraph.ir.well_formed import bare_symbols

AddFunction = Callable[[Function, str], GlobalVar]
"""A callback that adds a function to the module under a unique name, and returns that name."""


_Known = tuple[Kernel, Assumptions | None]


class FusedFunctions:
    """The fused functions of a module, one for each distinct kernel and what it assumes."""

    def __init__(self, add: AddFunction) -> None:
        self._add = add
        self._function: dict[_Known, Function] = {}
        self._name: dict[_Known, GlobalVar] = {}

    def function(self, kernel: Kernel, names: Sequence[str]) -> Function:
        """The function that computes `kernel`; `names` are for its parameters if it is new."""
        key = kernel, active()
        if key not in self._function:
            self._function[key] = kernel_function(kernel, names)
        return self._function[key]

    def name(self, kernel: Kernel) -> GlobalVar:
        """The name of the kernel's function in the module, to which it is added at first use."""
        key = kernel, active()
        if key not in self._name:
            function = self._function[key]
            self._name[key] = self._add(function, _name_of(function))
        return self._name[key]


_MOST_PARTS = 6
"""The most operators in a function's name, before the number of all others."""


def _name_of(function: Function) -> str:
    """``fused_`` and the operators in order: ``fused_matmul_add_relu``."""
    values = [b.value for block in function.body.blocks for b in block.bindings]
    parts = [str(v.op).rsplit(".", 1)[-1] for v in values if isinstance(v, Call)]
    more = len(parts) - _MOST_PARTS
    rest = [f"and_{more}_more"] if more > 0 else []
    return "_".join(["fused", *parts[:_MOST_PARTS], *rest])


def kernel_function(kernel: Kernel, names: Sequence[str]) -> Function:
    """A private primitive function of `kernel`; its parameters are the inputs but known scalars.

    Symbols that are not the whole extent of any parameter are in a last parameter, a shape.
    """
    params: list[Var] = []
    values: list[Expr] = []
    used: set[str] = set()
    unassigned = iter(names)
    for source in kernel.inputs:
        if source.scalar is not None:
            values.append(Constant(np.asarray(source.scalar, source.struct_info.dtype)))
        else:
            params.append(Var(unused(next(unassigned), used), source.struct_info))
            values.append(params[-1])
    if unbound := _unbound_symbols(kernel, params):
        symbols = ShapeStructInfo(tuple(map(dims.symbol, unbound)), len(unbound))
        params.append(Var(unused("s", used), symbols))
    bare = list(values)
    bindings: list[Binding] = []

    def bind(call: Call, number: int | None) -> Var:
        kind, name = (Var, "gv") if number in kernel.outputs else (DataflowVar, "lv")
        var = kind(unused(name, used), call.struct_info)
        bindings.append(VarBinding(var, call))
        return var

    for number, step in enumerate(kernel.steps, len(kernel.inputs)):
        operands = [_operand(o, values) for o in step.operands]
        if step.op.name == "broadcast_to" and number not in kernel.outputs:
            values.append(Call(step.op, tuple(operands), struct_info=step.struct_info))
            bare.append(bare[step.values[0]])
            continue
        attrs = dict(step.attrs)
        stripped = [_operand(o, bare) for o in step.operands]
        if step.op.elementwise and broadcasts_to(step.op, stripped, attrs, step.struct_info):
            operands = stripped
        args = tuple(bind(a, None) if isinstance(a, Call) else a for a in operands)
        var = bind(Call(step.op, args, attrs, struct_info=step.struct_info), number)
        values.append(var)
        bare.append(var)

    results = [values[o] for o in kernel.outputs]
    body = results[0] if len(results) == 1 else Tuple(tuple(results))
    seq = SeqExpr((DataflowBlock(tuple(bindings)),), body)
    attributes: dict[str, Attr] = {"primitive": True, "private": True}
    if kernel.promise:
        seconds = float(f"{kernel.promise.seconds:.3g}")
        attributes |= {ANCHOR: kernel.promise.anchor, SECONDS: seconds}
    if known := active():
        bound = set[str]().union(*(symbols_of(source.struct_info) for source in kernel.inputs))
        if texts := conditions(known.about(bound)):
            attributes["assume"] = ", ".join(texts)
    return Function(tuple(params), seq, body.struct_info, True, attributes)


def broadcasts_to(
    op: Op, operands: Sequence[Expr], attrs: Mapping[str, Attr], result: TensorStructInfo
) -> bool:
    """Whether `op` broadcasts `operands` to the shape of `result` by itself."""
    try:
        inferred = infer(Call(op, tuple(operands), attrs))
    except IllTyped:  # R.ewise_add broadcasts nothing
        return False
    return isinstance(inferred, TensorStructInfo) and inferred.dims == result.dims


def _unbound_symbols(kernel: Kernel, params: Sequence[Var]) -> list[str]:
    """The symbols of `kernel` that are not bound by a parameter, sorted."""
    infos: list[StructInfo] = [part.struct_info for part in (*kernel.inputs, *kernel.steps)]
    used = frozenset[str]().union(*map(symbols_of, infos))
    return sorted(used.difference(*(bare_symbols(p.struct_info) for p in params)))


def _operand(operand: int | tuple[int, ...] | ShapeStructInfo, values: Sequence[Expr]) -> Expr:
    match operand:
        case ShapeStructInfo(values=extents):
            return ShapeExpr(extents or ())
        case tuple():
            return Tuple(tuple(values[o] for o in operand))
        case _:
            return values[operand]

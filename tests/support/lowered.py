"""Hand-written modules for the tests of lowering, and their results as text."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call_tir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Binding,
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
)
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo, shape_text, tensor
from relax_egraph.lower.vm_codegen import codegen
from relax_egraph.passes.call_tir_rewrite import call_tir_rewrite
from relax_egraph.passes.to_non_dataflow import to_non_dataflow
from relax_egraph.passes.vm_memory_lower import vm_memory_lower
from relax_egraph.passes.vm_shape_lower import vm_shape_lower
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.stmt import PrimFunc, Seq
from relax_egraph.vm import VirtualMachine

n, m, k = map(dims.symbol, "nmk")


def f32(*shape: Dim) -> TensorStructInfo:
    """``R.Tensor(shape, "float32")``."""
    return tensor(shape, "float32")


def loops(*shapes: tuple[Dim, ...], num_outputs: int = 1, scalars: Sequence[str] = ()) -> PrimFunc:
    """A loop function of float32 buffers; a Python callable replaces its body."""
    buffers = tuple(Buffer(f"b{i}", shape, "float32") for i, shape in enumerate(shapes))
    return PrimFunc(buffers, Seq(()), num_outputs, tuple(scalars))


def lower(module: IRModule) -> IRModule:
    """Apply all four passes."""
    return vm_shape_lower(vm_memory_lower(call_tir_rewrite(to_non_dataflow(module))))


def machine(module: IRModule, **packed: Callable[..., Any]) -> VirtualMachine:
    """A machine that runs `module`; `packed` implements the loop functions."""
    return VirtualMachine(codegen(lower(module)), packed)


def add(x: Any, y: Any, out: Any, *_: int) -> None:
    """The loop function ``out = x + y``."""
    np.add(x, y, out=out)


def copy(x: Any, out: Any, *_: int) -> None:
    """The loop function ``out = x``."""
    np.copyto(out, x)


SIZES = [0, 1, 7]
"""The value of a symbol in tests."""


def numbers(*shape: int) -> Any:
    """Random float32."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def add_twice() -> IRModule:
    """``main(x, y)`` is ``(x + y) + y``, in a dataflow block."""
    bb = BlockBuilder()
    f = bb.add_func(loops((n, 4), (n, 4), (n, 4)), "add")
    x, y = Var("x", f32(m, 4)), Var("y", f32(m, 4))
    with bb.function("main", [x, y]):
        with bb.dataflow():
            lv = bb.emit(call_tir(f, [x, y], f32(m, 4)))
            gv = bb.emit_output(call_tir(f, [lv, y], f32(m, 4)))
        bb.emit_func_output(gv)
    return bb.get()


# --- as text --------------------------------------------------------------------------


def text(module: IRModule, name: str = "main") -> str:
    """The function `name`: a line for each binding, with the variable's struct info."""
    function = module[name]
    assert isinstance(function, Function)
    params = ", ".join(f"{p}: {p.struct_info}" for p in function.params)
    head = f"{'' if function.is_pure else 'impure '}({params}) -> {function.ret_struct_info}"
    return "\n".join([head, *_lines(function.body, "  ")])


def _lines(seq: SeqExpr, indent: str) -> Iterator[str]:
    for block in seq.blocks:
        yield indent + ("dataflow" if isinstance(block, DataflowBlock) else "block")
        for binding in block.bindings:
            yield from _binding(binding, indent + "  ")
    yield f"{indent}return {_value(seq.body)}"


def _binding(binding: Binding, indent: str) -> Iterator[str]:
    local = "local " if isinstance(binding.var, DataflowVar) else ""
    head = f"{indent}{local}{binding.var}: {binding.var.struct_info}"
    value = binding.value
    match binding:
        case MatchCast(struct_info=info):
            yield f"{head} = match_cast({_value(value)}, {info})"
        case _ if isinstance(value, If):
            yield f"{head} = if {_value(value.cond)}"
            yield from _lines(value.true_branch, indent + "  ")
            yield f"{indent}else"
            yield from _lines(value.false_branch, indent + "  ")
        case _:
            yield f"{head} = {_value(value)}"


def _value(expr: Expr) -> str:
    match expr:
        case Call(op=op, args=args, sinfo_args=sinfo_args):
            callee = str(op) if isinstance(op, Op) else _value(op)
            shown = [*map(_value, args), *map(str, sinfo_args)]
            return f"{callee}({', '.join(shown)})"
        case Tuple(fields=fields):
            return f"({', '.join(map(_value, fields))})"
        case TupleGetItem(tuple_value=value, index=index):
            return f"{_value(value)}[{index}]"
        case Constant(data=data):
            return f"const({data.tolist()})"
        case ShapeExpr(values=values):
            return f"shape{shape_text(values)}"
        case PrimValue(value=value):
            return str(value) if isinstance(value, float) else dims.text(value)
        case StringImm(value=value):
            return f"'{value}'"
        case GlobalVar(name=name):
            return f"@{name}"
        case ExternFunc(name=name):
            return f'"{name}"'
        case Var(name=name):
            return name
        case other:
            return type(other).__name__

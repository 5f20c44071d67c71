"""Calls of Python functions over tensors: the function becomes a loop function of the module."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder, call_tir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Call, Expr, GlobalVar, PrimValue, ShapeExpr, Tuple
from relax_egraph.ir.expr import shape as shape_expr
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, tensor
from relax_egraph.tir.analysis import structural_key
from relax_egraph.tir.create_prim_func import create_prim_func
from relax_egraph.tir.expr import Buffer
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.tir.tensor import Tensor, compute, placeholder

_SAME: Mapping[str, Dim] = {}

TeFunction: TypeAlias = Callable[..., Tensor | Sequence[Tensor] | PrimFunc]
"""A function of tensors, shapes and attributes that computes one tensor or several.

It may also build the loop function itself, over its placeholders.
"""


class TypedFloat(float):
    """A float of the host with a dtype other than that of Python's floats."""

    dtype: str


class TypedInt(int):
    """An int or bool of the host with a dtype other than that of Python's numbers."""

    dtype: str


def call_te(
    bb: BlockBuilder,
    function: TeFunction,
    *args: Expr,
    name: str | None = None,
    operands: Sequence[str] | None = None,
    **attrs: Attr,
) -> Call:
    """``R.call_tir`` of the loop function of `function`, which is added to the module of `bb`.

    `function` receives a placeholder for each tensor, a tuple of placeholders for each tuple, a
    tuple of dimensions for each shape, a dimension or number for each host scalar, and `attrs`.  An
    equal loop function of the module, up to names, is shared.  A new one is called `name`, by
    default as `function`.
    Raises `IllTyped` for an operand of unknown shape or dtype.
    """
    names = operands or operand_names(function, len(args))
    values = [_operand(n, a) for n, a in zip(names, args, strict=True)]
    pairs = [pair for a, v in zip(args, values, strict=True) for pair in _tensors(a, v)]
    inputs = [placeholder for _, placeholder in pairs]
    result, passed = function(*values, **attrs), [arg for arg, _ in pairs]
    hint = name or function.__name__.strip("_<>")
    if isinstance(result, PrimFunc):
        return call_prim_func(share_prim_func(bb, result, hint), result, passed)
    return call_tensors(bb, computed(result), inputs, passed, hint)


def call_tensors(
    bb: BlockBuilder,
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    args: Sequence[Expr],
    name: str,
) -> Call:
    """``R.call_tir`` that computes `outputs`; `inputs` are the placeholders of `args`."""
    prim_func = create_prim_func(*inputs, *inline_injective(outputs))
    return call_prim_func(share_prim_func(bb, prim_func, name), prim_func, args)


def call_prim_func(
    callee: GlobalVar,
    prim_func: PrimFunc,
    args: Sequence[Expr],
    symbols: Mapping[str, Dim] = _SAME,
) -> Call:
    """``R.call_tir(callee, args)`` with the results and ``tir_vars`` that `prim_func` declares.

    `symbols` are the caller's dimensions for the symbols of `prim_func`; others keep their name.
    """

    def here(b: Buffer) -> StructInfo:
        return tensor(tuple(dims.substitute(d, symbols) for d in b.shape), b.dtype)

    infos = [here(b) for b in prim_func.outputs]
    passed = [symbols.get(s, dims.symbol(s)) for s in prim_func.scalars]
    scalars = shape_expr(passed) if passed else None
    return call_tir(callee, args, infos[0] if len(infos) == 1 else infos, scalars)


def share_prim_func(bb: BlockBuilder, prim_func: PrimFunc, name: str) -> GlobalVar:
    """The function of the module that equals `prim_func` up to names, which is added if needed.

    An added function is called `name`, with a number if that is in use.
    """
    key = structural_key(prim_func)
    for known, function in bb.get().functions.items():
        if isinstance(function, PrimFunc) and structural_key(function) == key:
            return GlobalVar(known, function.struct_info)
    return bb.add_func(prim_func, name)


def operand_names(function: Callable[..., Any], count: int) -> list[str]:
    """Names for operands: of the function's positional parameters, then ``arg2``, and so on."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    declared = [p.name for p in inspect.signature(function).parameters.values() if p.kind in kinds]
    return [*declared, *(f"arg{k}" for k in range(len(declared), count))][:count]


def computed(outputs: Tensor | Sequence[Tensor]) -> tuple[Tensor, ...]:
    """`outputs`, each of them computed and distinct; placeholders and repeated ones are copied."""
    tensors = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
    done: list[Tensor] = []
    for t in tensors:
        is_new = t.body is not None and t not in done
        done.append(t if is_new else compute(t.shape, t.at, "copy"))
    return tuple(done)


Value: TypeAlias = Tensor | tuple["Value", ...] | Dim | float
"""An argument of a function of tensors."""


def _operand(name: str, value: Expr) -> Value:
    if isinstance(value, ShapeExpr):
        return value.values
    if isinstance(value, PrimValue):
        return _number(value)
    if isinstance(value, Tuple):
        return tuple(_operand(f"{name}{k}", f) for k, f in enumerate(value.fields))
    info = value.struct_info
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
        raise IllTyped(
            f"call_te: operand {name} is {info}, needs a tensor of known shape and dtype"
        )
    return placeholder(info.dims, info.dtype, name)


def _number(value: PrimValue) -> Dim | float:
    if value.constant is None:
        return value.value
    exact = value.constant.data.item()
    number = TypedFloat(exact) if isinstance(exact, float) else TypedInt(exact)
    number.dtype = value.dtype
    return number


def _tensors(arg: Expr, value: Value) -> list[tuple[Expr, Tensor]]:
    """The tensors of `arg`, each with its placeholder."""
    if isinstance(value, Tensor):
        return [(arg, value)]
    if isinstance(arg, Tuple) and isinstance(value, tuple):
        pairs = zip(arg.fields, value, strict=True)
        return [tensor for field, part in pairs for tensor in _tensors(field, part)]
    return []

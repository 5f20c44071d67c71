"""A loop function as a function of operators."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from relax_egraph.errors import IllFormed
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bare_symbols
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.depth import deep
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr, Function, Tuple, Var
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor
from relax_egraph.passes.canonicalize_bindings import canonicalize_bindings
from relax_egraph.passes.dead_code import remove_all_unused
from relax_egraph.raising.elements import Splits
from relax_egraph.raising.emitter import Emitter, same_shape
from relax_egraph.raising.frame import Frame, Labels, placed
from relax_egraph.raising.indices import digits
from relax_egraph.raising.nests import ZERO, Nest, nests_of
from relax_egraph.raising.reductions import reduction
from relax_egraph.raising.slices import parts_of
from relax_egraph.raising.unreadable import Unreadable
from relax_egraph.raising.values import Values
from relax_egraph.tir.expr import Binary, Buffer, Imm, TirExpr, TirVar, from_dim
from relax_egraph.tir.rewrite import loads, nodes
from relax_egraph.tir.stmt import PrimFunc

KEPT = ("opaque", "tir.is_scheduled", "schedule")
"""The attributes that keep a loop function as it is."""

MOST_SPLITS = 4
"""The most axes of a nest that are split into digits."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a loop function is no composition of operators."""

    text: str


@lru_cache(1 << 10)
def read(function: PrimFunc) -> Function | Reason:
    """The function of operators that computes what `function` does, or why there is none.

    Its parameters are the buffers that are read and, if there are scalars, a shape of them.
    """
    try:
        with deep(IllFormed, "it is nested too deeply"):
            return _read(function)
    except (Unreadable, IllFormed) as problem:
        return Reason(str(problem))


def _read(function: PrimFunc) -> Function:
    for name in KEPT:
        if function.attrs.get(name):
            raise Unreadable(f'its attribute "{name}" says that it stays as it is')
    nests = nests_of(function.body)
    params = [Var(b.name, tensor(b.shape, b.dtype)) for b in function.inputs]
    builder = BlockBuilder()
    bound = set[str]().union(*(bare_symbols(p.struct_info) for p in params))
    free = (*function.scalars, *(s for s in function.symbols if s not in bound))
    sizes = tuple(dims.symbol(s) for s in dict.fromkeys(free))
    shapes = [Var("sizes", ShapeStructInfo(sizes))] if sizes else []
    with builder.function("f", [*params, *shapes]):
        with builder.dataflow():
            values = Values(Emitter(builder))
            values.tensors.update(zip(function.inputs, params, strict=True))
            _run(values, nests, frozenset(function.inputs))
            results = [_result(values, b) for b in function.outputs]
            result = results[0] if len(results) == 1 else Tuple(tuple(results))
            out = builder.emit_output(result)
        builder.emit_func_output(out)
    whole = remove_all_unused(canonicalize_bindings(builder.get()))["f"]
    assert isinstance(whole, Function)
    return replace(whole, attrs={"private": True})


def _result(values: Values, buffer: Buffer) -> Expr:
    if buffer not in values.tensors:
        raise Unreadable(f"{buffer.name} is not stored")
    return values.tensors[buffer]


def _run(values: Values, nests: Sequence[Nest], inputs: frozenset[Buffer]) -> None:
    """Compute the buffers of `nests`, in order."""
    rest = list(nests)
    while rest:
        nest = rest[0]
        buffer = nest.buffer
        if buffer in inputs:
            raise Unreadable(f"{buffer.name} is stored where it was read")
        parts = parts_of(rest)
        if parts is not None:
            pieces = [_result_of(values, p.nest) for p in parts]
            value = values.emit("concat", Tuple(tuple(pieces)), axis=parts[0].axis)
            del rest[: len(parts)]
        else:
            value = _result_of(values, nest)
            del rest[0]
        info = value.struct_info
        assert isinstance(info, TensorStructInfo)
        if info.dtype != buffer.dtype or not same_shape(value, buffer.shape):
            raise Unreadable(f"{buffer.name} is {tensor(buffer.shape, buffer.dtype)}, not {info}")
        values.tensors[buffer] = value
        filled = nest.value if parts is None and not nest.reduced else None
        values.filled.pop(buffer, None)
        if isinstance(filled, Imm):
            values.filled[buffer] = filled.value


def _result_of(values: Values, nest: Nest) -> Expr:
    """The tensor that `nest` stores, whose axes with digits are split until it reads."""
    for _ in range(MOST_SPLITS):
        try:
            return _value(values, nest)
        except Splits as problem:
            nest = _split(nest, problem.axis, _largest(nest, problem))
    raise Unreadable(f"the indices of {nest.buffer.name} have too many digits")


def _largest(nest: Nest, problem: Splits) -> Dim:
    """The largest divisor of the axis in `nest`: the digits by it have those by smaller ones."""
    sizes = [problem.size]
    for node in nodes(nest.value):
        match node:
            case Binary(kind="//" | "%", a=a, b=Imm(value=int(size))) if a is problem.axis:
                if size > 1 and dims.divides(size, nest.axes[problem.axis]):
                    sizes.append(size)
            case _:
                pass
    numbers = [size for size in sizes if isinstance(size, int)]
    return max(numbers) if len(numbers) == len(sizes) else problem.size


def _split(nest: Nest, axis: TirVar, size: Dim) -> Nest:
    """`nest` with two axes, the quotient and the rest by `size`, in place of `axis`."""
    high, low = TirVar(f"{axis.name}_high"), TirVar(f"{axis.name}_low")
    axes: dict[TirVar, Dim] = {}
    for var, extent in nest.axes.items():
        if var is axis:
            axes[high], axes[low] = dims.floordiv(extent, size), size
        else:
            axes[var] = extent
    return nest.replaced({axis: high * from_dim(size) + low}, axes)


def _value(values: Values, nest: Nest) -> Expr:
    target = _target(nest)
    frame = Frame(tuple(a for a in target if a is not None), nest.axes)
    if nest.reduced:
        value = reduction(values, nest, target)
    elif any(load.buffer is nest.buffer for load in loads(nest.value)):
        raise Unreadable(f"{nest.buffer.name} is stored where it was read")
    else:
        value = placed(values.emit, values.whole(nest.value, frame), frame.axes, target)
    return values.emit.reshape(value, nest.buffer.shape)


def _target(nest: Nest) -> Labels:
    """The axes of the buffer, each dimension of which the nest must fill once."""
    labels: list[TirVar | None] = []
    for index, extent in zip(nest.at, nest.buffer.shape, strict=True):
        axes = (None,) if index == ZERO and extent == 1 else _filling(index, extent, nest)
        if axes is None or any(a is not None and a in labels for a in axes):
            raise Unreadable(f"{nest.buffer.name} is stored at other places than its axes")
        labels += axes
    return labels


def _filling(index: TirExpr, extent: Dim, nest: Nest) -> tuple[TirVar, ...] | None:
    """The axes that together run over a whole dimension of `extent`."""
    if isinstance(index, TirVar) and index in nest.axes:
        return (index,) if dims.equal(nest.axes[index], extent) else None
    place = digits([index], [extent], nest.axes)
    fills = place is not None and place.offset == 0 and dims.equal(place.count, extent)
    return place.axes if place is not None and fills else None

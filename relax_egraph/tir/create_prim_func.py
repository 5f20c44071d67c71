"""Lowers tensors to an unscheduled loop function: a nest of serial loops for each tensor."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.errors import IllFormed
from relax_egraph.ir.expr import FunctionAttrs
from relax_egraph.tir.analysis import symbols_of_buffers, symbols_of_stmt, unbound_symbols
from relax_egraph.tir.expr import Buffer, BufferLoad, TirExpr, TirVar, binary, from_dim
from relax_egraph.tir.rewrite import loads, substitute
from relax_egraph.tir.stmt import BlockAxis, For, PrimFunc, Stmt, Store, TirBlock, seq
from relax_egraph.tir.tensor import Reduction, Tensor


def create_prim_func(
    *parameters: Tensor | Sequence[Tensor], attrs: FunctionAttrs | None = None
) -> PrimFunc:
    """The loop function of `parameters`, also in a list: placeholders, then computed tensors.

    Intermediate tensors that are no parameters become `allocs`.  Raises `IllFormed` if a
    placeholder comes after a computed tensor, is missing, or a tensor is repeated.
    """
    tensors = [t for p in parameters for t in ([p] if isinstance(p, Tensor) else p)]
    outputs = [t for t in tensors if t.body is not None]
    _check(tensors, outputs)
    stages = stages_of(outputs)
    names = _Names(symbols_of_buffers((*tensors, *stages)))
    placeholders = [t for t in tensors if t.body is None]
    buffers: dict[Buffer, Buffer] = {
        t: Buffer(names.take(t.name), t.shape, t.dtype) for t in (*placeholders, *stages)
    }
    params = tuple(buffers[t] for t in tensors)
    body = seq(*(_nest(stage, buffers, names) for stage in stages))
    allocs = tuple(buffers[t] for t in stages if t not in outputs)
    used = symbols_of_stmt(body) | symbols_of_buffers(allocs)
    scalars = unbound_symbols(params, used)
    return PrimFunc(params, body, len(outputs), scalars, allocs, dict(attrs or {}))


def stages_of(outputs: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """The computed tensors that `outputs` need, with the outputs, in topological order."""
    order: dict[Tensor, None] = {}
    begun: set[Tensor] = set()
    todo = [(output, False) for output in reversed([*outputs])]
    while todo:
        tensor, ready = todo.pop()
        if ready:
            order[tensor] = None
        elif tensor.body is not None and tensor not in begun:
            begun.add(tensor)
            todo.append((tensor, True))
            todo.extend((read, False) for read in reversed(reads(tensor)))
    return tuple(order)


def reads(tensor: Tensor) -> tuple[Tensor, ...]:
    """The tensors that the elements of `tensor` are computed from, in order of appearance."""
    buffers = (load.buffer for load in _loads_of(tensor))
    return tuple(dict.fromkeys(b for b in buffers if isinstance(b, Tensor)))


def _loads_of(tensor: Tensor) -> tuple[BufferLoad, ...]:
    return loads(tensor.source) if tensor.source is not None else ()


def _check(tensors: Sequence[Tensor], outputs: Sequence[Tensor]) -> None:
    if len(set(tensors)) != len(tensors):
        repeated = next(t for k, t in enumerate(tensors) if t in tensors[:k])
        raise IllFormed(f"create_prim_func: {repeated.name} is repeated")
    if not outputs:
        raise IllFormed("create_prim_func: needs a computed tensor, got only placeholders")
    for tensor in tensors[len(tensors) - len(outputs) :]:
        if tensor.body is None:
            raise IllFormed(f"create_prim_func: placeholder {tensor.name} is after an output")
    for stage in stages_of(outputs):
        for read in reads(stage):
            if read.body is None and read not in tensors:
                raise IllFormed(
                    f"create_prim_func: {stage.name} reads {read.name}, which is no parameter"
                )


@dataclass(slots=True)
class _Names:
    """The names of a function: a second `x` becomes ``x_1``."""

    used: set[str]

    def __init__(self, used: Iterable[str]) -> None:
        self.used = set(used)

    def free(self, name: str) -> str:
        if name not in self.used:
            return name
        return next(n for n in self._numbered(name) if n not in self.used)

    def take(self, name: str) -> str:
        unique = self.free(name)
        self.used.add(unique)
        return unique

    @staticmethod
    def _numbered(name: str) -> Iterator[str]:
        number = 0
        while True:
            number += 1
            yield f"{name}_{number}"


def _nest(stage: Tensor, buffers: Mapping[Buffer, Buffer], names: _Names) -> Stmt:
    """Loops, named as the axes, around one block, whose axes have the prefix ``v_``."""
    local = _Names(names.used)
    extents = (*stage.shape, *(a.extent for a in stage.reduce_axes))
    old = (*stage.axes, *stage.reduce_axes)
    loops = [TirVar(local.take(a.name)) for a in old]
    axes = tuple(
        BlockAxis(
            TirVar(local.take(f"v_{loop.name}")),
            from_dim(extent),
            "spatial" if k < len(stage.axes) else "reduce",
            loop,
        )
        for k, (loop, extent) in enumerate(zip(loops, extents, strict=True))
    )
    bound: dict[TirVar, TirExpr] = {o: a.var for o, a in zip(old, axes, strict=True)}
    assert stage.source is not None
    value = substitute(stage.source, bound, buffers)
    out, point = buffers[stage], tuple(a.var for a in axes[: len(stage.axes)])
    init: Stmt | None = None
    if isinstance(stage.body, Reduction):
        init = Store(out, point, stage.body.identity)
        value = binary(stage.body.combine, BufferLoad(out, point), value)
    nest: Stmt = TirBlock(out.name, axes, Store(out, point, value), init)
    for loop, extent in reversed([*zip(loops, extents, strict=True)]):
        nest = For(loop, from_dim(extent), "serial", nest)
    return nest

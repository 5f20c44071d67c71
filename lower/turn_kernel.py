"""A loop over time as one loop function: a turn between copies of its slices and states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.legalize.loops import around, free, loop_function, names_of
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar, from_dim
from relax_egraph.tir.stmt import For, PrimFunc, Stmt, Store, TirBlock, seq


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a loop: `function` maps states, slices and further inputs to states and items.

    A slice is the part of a tensor at the number of the turn, along its first axis; so are the
    `items` of the results.
    """

    function: PrimFunc
    states: int
    slices: int

    @property
    def items(self) -> int:
        """The number of results that are not states."""
        return self.function.num_outputs - self.states


def repeated(turn: Turn, times: Dim) -> PrimFunc:
    """The function of first states, whole tensors and further inputs, for all turns in order.

    Its results are the last states, and the items of all turns.
    """
    f = turn.function
    before, slices = f.inputs[: turn.states], f.inputs[turn.states :][: turn.slices]
    after, items = f.outputs[: turn.states], f.outputs[turn.states :]
    used = names_of(*f.params)
    t = TirVar(free("t", used))

    def parameter(b: Buffer, name: str, shape: tuple[Dim, ...]) -> Buffer:
        return Buffer(free(f"{b.name}_{name}", used), shape, b.dtype)

    first = [parameter(b, "first", b.shape) for b in before]
    whole = [parameter(b, "all", (times, *b.shape)) for b in slices]
    last = [parameter(b, "last", b.shape) for b in after]
    every = [parameter(b, "all", (times, *b.shape)) for b in items]
    body = seq(
        *(_copy(b, (), w, (t,)) for b, w in zip(slices, whole, strict=True)),
        f.body,
        *(_copy(e, (t,), b, ()) for e, b in zip(every, items, strict=True)),
        *(_copy(b, (), a, ()) for b, a in zip(before, after, strict=True)),
    )
    loop = seq(
        *(_copy(b, (), x, ()) for b, x in zip(before, first, strict=True)),
        For(t, from_dim(times), "serial", body),
        *(_copy(x, (), b, ()) for x, b in zip(last, before, strict=True)),
    )
    own = (*before, *slices, *after, *items, *f.allocs)
    block = TirBlock("turns", (), loop, allocs=own)
    others = f.inputs[turn.states + turn.slices :]
    params = (*first, *whole, *others, *last, *every)
    return replace(loop_function(params, block, f.num_outputs), attrs=f.attrs)


def _copy(to: Buffer, at: tuple[TirExpr, ...], source: Buffer, start: tuple[TirExpr, ...]) -> Stmt:
    """``to[at, …] = source[start, …]``, the last axis vectorized."""
    shape = to.shape[len(at) :]
    loops = [TirVar(name) for name in _letters(shape)]
    store = Store(to, (*at, *loops), source[*start, *loops])
    if not loops:
        return store
    line = For(loops[-1], from_dim(shape[-1]), "vectorized", store)
    return around([*zip(loops[:-1], shape[:-1], strict=True)], line)


def _letters(shape: Sequence[Dim]) -> Iterator[str]:
    return (f"i{k}" for k in range(len(shape)))

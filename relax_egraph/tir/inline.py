"""Inlines elementwise tensors into the tensors that read them.

Of the tensors that are neither reductions nor results, these are inlined:

* data movement, everywhere, except that a contraction (a reduction that reads one element for
  several results, such as a product of matrices) keeps plain indices;
* cheap arithmetic, everywhere except into a contraction;
* other tensors, if a single tensor reads them, and reads each element at one of its points only.

So nothing expensive is computed twice: ``exp(x - max)`` of ``softmax`` stays, as the sum and the
quotient both read it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from relax_egraph.tir.analysis import EXPENSIVE, tree_size, work
from relax_egraph.tir.create_prim_func import stages_of
from relax_egraph.tir.expr import Buffer, BufferLoad, DimSymbol, Imm, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute, variables
from relax_egraph.tir.simplify import Extents, simplify
from relax_egraph.tir.tensor import Body, Reduction, Tensor

CHEAP = EXPENSIVE // 2
"""The most work that is repeated rather than written to memory and read back."""

MAX_NODES = 512
"""The most nodes of an element's expression, as a tree, after inlining."""


def inline_injective(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Tensors equal to `outputs`, with fewer intermediate tensors."""
    stages = stages_of(outputs)
    bodies: dict[Tensor, Body] = {s: s.body for s in stages if s.body is not None}
    for stage in reversed(stages):
        # The readers of `stage` are final here, except for later stages.
        readers = [s for s in bodies if s is not stage and _loads(bodies[s], stage)]
        merged = {s: _inlined(s, bodies[s], stage, bodies[stage]) for s in readers}
        if stage not in outputs and _is_inlined(stage, bodies, readers, merged):
            bodies.update(merged)
            del bodies[stage]
    return _rebuilt(outputs, bodies)


def _is_inlined(
    stage: Tensor,
    bodies: Mapping[Tensor, Body],
    readers: Sequence[Tensor],
    merged: Mapping[Tensor, Body],
) -> bool:
    body = bodies[stage]
    if isinstance(body, Reduction):
        return False
    if any(tree_size(_source(b)) > MAX_NODES for b in merged.values()):
        return False
    cost = work(body)
    repeated = [r for r in readers if _repeats(r, bodies[r], stage)]
    contractions = [r for r in repeated if _contracts(r, bodies[r], stage)]
    if cost == 0:
        return all(_plain(body) for _ in contractions)
    if cost <= CHEAP:
        return not contractions
    return len(readers) == 1 and not repeated


def _repeats(reader: Tensor, body: Body, stage: Tensor) -> bool:
    """Whether `reader` reads an element of `stage` at more than one of its points."""
    return any(_missing(reader, body, load) for load in _loads(body, stage))


def _contracts(reader: Tensor, body: Body, stage: Tensor) -> bool:
    """Whether `reader` is a reduction that reads an element of `stage` for several results."""
    spatial = set(reader.axes)
    return isinstance(body, Reduction) and any(
        spatial & _missing(reader, body, load) and any(a in variables_of(load) for a in body.axes)
        for load in _loads(body, stage)
    )


def _missing(reader: Tensor, body: Body, load: BufferLoad) -> set[TirVar]:
    """The axes of `reader` that the indices of `load` do not depend on."""
    axes = {a for a, d in zip(reader.axes, reader.shape, strict=True) if d != 1}
    if isinstance(body, Reduction):
        axes |= {a for a in body.axes if a.extent != 1}
    return axes - variables_of(load)


def variables_of(load: BufferLoad) -> frozenset[TirVar]:
    """The variables in the indices of `load`."""
    return frozenset[TirVar]().union(*map(variables, load.indices))


def _plain(body: TirExpr) -> bool:
    """Whether every index in `body` is one variable or constant: a permutation or a broadcast."""
    return all(
        isinstance(index, TirVar | Imm | DimSymbol)
        for load in loads(body)
        for index in load.indices
    )


def _loads(body: Body, stage: Tensor) -> list[BufferLoad]:
    return [load for load in loads(_source(body)) if load.buffer is stage]


def _source(body: Body) -> TirExpr:
    return body.source if isinstance(body, Reduction) else body


def _inlined(reader: Tensor, body: Body, stage: Tensor, definition: Body) -> Body:
    """`body` with the elements of `stage` replaced by their definitions."""
    element = _source(definition)
    elements: dict[tuple[TirExpr, ...], TirExpr] = {}

    def change(e: TirExpr) -> TirExpr:
        if not isinstance(e, BufferLoad) or e.buffer is not stage:
            return e
        # Elements read twice at one point become one shared node.
        if e.indices not in elements:
            elements[e.indices] = substitute(element, dict(zip(stage.axes, e.indices, strict=True)))
        return elements[e.indices]

    source = simplify(rewrite(_source(body), change), _extents(reader, body))
    return replace(body, source=source) if isinstance(body, Reduction) else source


def _extents(tensor: Tensor, body: Body) -> Extents:
    spatial = dict(zip(tensor.axes, tensor.shape, strict=True))
    reduced = {a: a.extent for a in body.axes} if isinstance(body, Reduction) else {}
    return {**spatial, **reduced}


def _rebuilt(outputs: Sequence[Tensor], bodies: Mapping[Tensor, Body]) -> tuple[Tensor, ...]:
    """`outputs` over new tensors with these bodies, each of which reads only earlier ones.

    Unchanged tensors stay the same objects.
    """
    new: dict[Buffer, Buffer] = {}
    rebuilt: dict[Tensor, Tensor] = {}
    for old, body in bodies.items():
        is_same = body is old.body and not any(load.buffer in new for load in loads(_source(body)))
        if is_same:
            rebuilt[old] = old
            continue
        source = substitute(_source(body), buffers=new)
        changed = replace(body, source=source) if isinstance(body, Reduction) else source
        rebuilt[old] = new[old] = replace(old, body=changed)
    return tuple(rebuilt[o] for o in outputs)

"""Operators of storage types: what takes more than one step is done in float32.

An element that is computed of the operands' elements alone stays of the storage type: in a
chain that is fused nothing is rounded in between.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from relax_egraph.ir.dtypes import computed, is_stored
from relax_egraph.lower.legalize.elementwise import Legalize
from relax_egraph.tir import te
from relax_egraph.tir.create_prim_func import reads
from relax_egraph.tir.expr import Cast
from relax_egraph.tir.rewrite import nodes
from relax_egraph.tir.stmt import PrimFunc
from relax_egraph.tir.tensor import Reduction


def widening(function: Legalize) -> Legalize:
    """`function`, with operands as float32 and results rounded where it would round before."""

    def legalize(*operands: Any, **attrs: Any) -> te.Tensor | Sequence[te.Tensor] | PrimFunc:
        made = function(*operands, **attrs)
        if isinstance(made, PrimFunc):
            return made
        outputs = (made,) if isinstance(made, te.Tensor) else tuple(made)
        given = set(_tensors(operands))
        if not any(_rounds(stage) for stage in _stages(outputs, given)):
            return made
        wide = {k: computed(a) if is_stored(a) else a for k, a in attrs.items()}
        again = function(*map(_widened, operands), **wide)
        assert not isinstance(again, PrimFunc)
        exact = (again,) if isinstance(again, te.Tensor) else tuple(again)
        results = [
            o if o in given else _cast(e, o.dtype) for o, e in zip(outputs, exact, strict=True)
        ]
        return results[0] if isinstance(made, te.Tensor) else results

    return legalize


def _tensors(operands: Sequence[Any]) -> Iterator[te.Tensor]:
    for operand in operands:
        if isinstance(operand, te.Tensor):
            yield operand
        elif isinstance(operand, tuple):
            yield from _tensors(operand)


def _stages(
    outputs: Sequence[te.Tensor], given: set[te.Tensor]
) -> Iterator[tuple[te.Tensor, bool]]:
    """What is computed of the `given` tensors, and whether another stage reads it."""
    todo, seen = [(o, False) for o in outputs], set(given)
    while todo:
        stage, is_read = todo.pop()
        if stage not in seen:
            seen.add(stage)
            yield stage, is_read
            todo += [(read, True) for read in reads(stage)]


def _rounds(found: tuple[te.Tensor, bool]) -> bool:
    """Whether a stage keeps, or casts to, numbers of a storage type that others are made of."""
    stage, is_read = found
    if is_stored(stage.dtype) and (is_read or isinstance(stage.body, Reduction)):
        return True
    return stage.source is not None and any(
        isinstance(n, Cast) and is_stored(n.dtype) for n in nodes(stage.source)
    )


def _widened(operand: Any) -> Any:
    if isinstance(operand, tuple):
        return tuple(map(_widened, operand))
    if isinstance(operand, te.Tensor) and is_stored(operand.dtype):
        return _cast(operand, computed(operand.dtype))
    return operand


def _cast(x: te.Tensor, dtype: str) -> te.Tensor:
    if x.dtype == dtype:
        return x
    return te.compute(x.shape, lambda *i: te.cast(x[i], dtype), f"{x.name}_{dtype}")

"""Operators on storage types: operators of several steps are computed in float32.

Elementwise operators stay in the storage type: a fused chain of them rounds nothing in between.
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
    """`function`, computed in float32, with results rounded to the storage types."""

    def legalize(*operands: Any, **attrs: Any) -> te.Tensor | Sequence[te.Tensor] | PrimFunc:
        result = function(*operands, **attrs)
        if isinstance(result, PrimFunc):
            return result
        outputs = (result,) if isinstance(result, te.Tensor) else tuple(result)
        inputs = set(_tensors(operands))
        if not any(_rounds(stage) for stage in _stages(outputs, inputs)):
            return result
        wide = {k: computed(a) if is_stored(a) else a for k, a in attrs.items()}
        again = function(*map(_widened, operands), **wide)
        assert not isinstance(again, PrimFunc)
        wide_outputs = (again,) if isinstance(again, te.Tensor) else tuple(again)
        results = [
            o if o in inputs else _cast(e, o.dtype)
            for o, e in zip(outputs, wide_outputs, strict=True)
        ]
        return results[0] if isinstance(result, te.Tensor) else results

    return legalize


def _tensors(operands: Sequence[Any]) -> Iterator[te.Tensor]:
    for operand in operands:
        if isinstance(operand, te.Tensor):
            yield operand
        elif isinstance(operand, tuple):
            yield from _tensors(operand)


def _stages(
    outputs: Sequence[te.Tensor], inputs: set[te.Tensor]
) -> Iterator[tuple[te.Tensor, bool]]:
    """The stages computed from `inputs`, and whether another stage reads each."""
    todo, seen = [(o, False) for o in outputs], set(inputs)
    while todo:
        stage, is_read = todo.pop()
        if stage not in seen:
            seen.add(stage)
            yield stage, is_read
            todo += [(read, True) for read in reads(stage)]


def _rounds(stage_use: tuple[te.Tensor, bool]) -> bool:
    """Whether a stage, or a cast in it, rounds to a storage type before further computation."""
    stage, is_read = stage_use
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

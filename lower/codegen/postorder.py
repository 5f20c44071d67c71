"""Expressions in evaluation order, without recursion: they may nest deeply."""

from collections.abc import Callable, Container, Iterator

from relax_egraph.tir.expr import TirExpr
from relax_egraph.tir.rewrite import operands


def postorder(
    expr: TirExpr,
    done: Container[int],
    below: Callable[[TirExpr], tuple[TirExpr, ...]] = operands,
) -> Iterator[TirExpr]:
    """The nodes of `expr` in post-order, each once, except those whose ``id`` is in `done`.

    The caller adds each node to `done` when it receives it.  `below` selects the operands to visit.
    """
    todo = [expr]
    while todo:
        e = todo[-1]
        waiting = [] if id(e) in done else [o for o in below(e) if id(o) not in done]
        if waiting:
            todo.extend(reversed(waiting))
        elif id(todo.pop()) not in done:
            yield e

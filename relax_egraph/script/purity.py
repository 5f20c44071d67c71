"""Inference of side effects for functions of a script whose decorators do not declare them."""

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from relax_egraph.ir.operators import find
from relax_egraph.script.source import dotted

_IN_PLACE = frozenset({"R.call_tir_inplace", "R.call_inplace_packed", "R.builtin.alloc_tensor"})
"""Calls with side effects here that TVM has in dataflow blocks."""


@dataclass(frozen=True, slots=True)
class _Effects:
    """The effects of a body: `direct` ones, and those of the functions that it `calls`."""

    direct: bool
    calls: frozenset[str]


def impure_functions(
    functions: Mapping[str, ast.FunctionDef],
    marked: Mapping[str, bool],
    writes: Iterable[str] = (),
    in_place: Collection[str] = (),
) -> frozenset[str]:
    """The names of `functions` that have side effects.

    `marked` are the declarations of decorators.  Another function has effects if its body, outside
    of dataflow blocks, applies an impure operator or calls a function with effects: one of these,
    or one of `writes`; `in_place` are those of `functions` that write in place.  A local function
    has effects where it is called, not where it is defined.
    """
    others = frozenset(writes)
    effects = {
        name: _Effects(not marked[name], frozenset())
        if name in marked
        else _effects(node, in_place)
        for name, node in functions.items()
    }
    impure = {name for name, own in effects.items() if own.direct or own.calls & others}
    while more := {n for n, own in effects.items() if own.calls & impure} - impure:
        impure |= more
    return frozenset(impure)


def has_effects(function: ast.FunctionDef, impure: Iterable[str]) -> bool:
    """Whether a local function has effects; `impure` are the functions of the module that have."""
    own = _effects(function)
    return own.direct or not own.calls.isdisjoint(impure)


def needs_order(statements: Iterable[ast.stmt], in_place: Collection[str] = ()) -> bool:
    """Whether a dataflow block of TVM is plain here: it writes in place, or defines functions.

    `in_place` are functions of the module that write in place.
    """
    return any(
        isinstance(node, ast.FunctionDef)
        or (
            isinstance(node, ast.Call)
            and ((name := dotted(node.func)) in _IN_PLACE or name.rpartition(".")[2] in in_place)
        )
        for statement in statements
        for node in ast.walk(statement)
    )


def writes_in_place(function: ast.FunctionDef) -> bool:
    """Whether the body has a call that writes in place."""
    calls = (n for n in ast.walk(function) if isinstance(n, ast.Call))
    return any(dotted(call.func) in _IN_PLACE for call in calls)


def _effects(function: ast.FunctionDef, in_place: Collection[str] = ()) -> _Effects:
    """The effects of the body, with those of the local functions that it calls."""
    nodes = [*_own_nodes(function, in_place)]
    local = {n.name: n for n in nodes if isinstance(n, ast.FunctionDef)}
    direct = False
    calls: set[str] = set()
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        name = dotted(node.func)
        op = find(name.removeprefix("R."))
        if op is not None and name.startswith("R."):
            direct = direct or not op.pure
        else:
            calls.add(name.rpartition(".")[2])
    for name in calls & local.keys():
        inner = _effects(local[name])
        direct, calls = direct or inner.direct, calls | (inner.calls - {name})
    return _Effects(direct, frozenset(calls - local.keys()))


def _own_nodes(function: ast.FunctionDef, in_place: Collection[str]) -> Iterator[ast.AST]:
    """The syntax of the body, without that of local functions and dataflow blocks."""
    todo: list[ast.AST] = list(reversed(function.body))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, ast.FunctionDef):
            continue
        if not isinstance(node, ast.With) or needs_order(node.body, in_place):
            todo.extend(reversed(list(ast.iter_child_nodes(node))))

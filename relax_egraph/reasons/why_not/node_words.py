"""Messages for a pattern's node that does not match: the nodes that its class has instead."""

from dataclasses import replace
from typing import Any

from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.rulebook.scope import vocabulary
from relax_egraph.ir.operators import by_operators
from relax_egraph.reasons.why_not.naming import Names
from relax_egraph.reasons.why_not.partial import Failure


def node_message(names: Names, failure: Failure) -> str:
    """The message for a node of a pattern that does not match."""
    match failure.how:
        case "lacking":
            return _lacking(names, failure)
        case "unused":
            return _unused(names, failure)
        case _:
            return _nearly(names, failure)


def _lacking(names: Names, failure: Failure) -> str:
    c, key = failure.conjunct, _result(failure)
    op = _short(c.head)
    if not isinstance(key, Key):
        return f"no {op} is there"
    for row in names.database.where(c.head, {len(c.places) - 1: key}):
        if any(row[k] != value for k, value in failure.known.items()):
            return _nearly(names, replace(failure, how="attribute", row=row))
    name = names.of(key)
    nowhere = "" if names.database.table(c.head) else f"; the program has no {op} at all"
    what = names.holds(key)
    if key.value in names.database.scalars:
        return f"{name} is a constant, no {op}{nowhere}"
    if names.is_leaf(key):
        return f"{name} is {what}, no {op}{nowhere}"
    if name.startswith(what):
        return f"this is {what}, no {op}{nowhere}"
    return f"{name} has no {op}; it holds {what}{nowhere}"


def _unused(names: Names, failure: Failure) -> str:
    c = failure.conjunct
    op = _short(c.head)
    if not names.database.table(c.head):
        return f"the program has no {op} at all"
    known = [names.of(v) for v in failure.known.values() if isinstance(v, Key)]
    return f"no {op} takes {' and '.join(known)}" if known else f"no {op} is like this"


def _nearly(names: Names, failure: Failure) -> str:
    c, row = failure.conjunct, failure.row
    assert row is not None
    key, op = _result(failure), _short(c.head)
    name = names.of(key)
    match failure.how:
        case "swapped":
            a, b = (names.of(v) for v in row[:2])
            return f"the operands are in the other order: {name} is {op}({a}, {b})"
        case "behind":
            through = _short(failure.through)
            what = "a cast" if through == "astype" else "a broadcast"
            inner = "" if name.startswith(through) else f" is {through} of {names.of(row[-1])}"
            return f"{what} stands between: {name}{inner}"
        case "bare" if c.head == "R.astype":
            return f"there is no cast: {name} is {names.info(key)} as it is"
        case "bare":
            return f"there is no broadcast: {name} is {names.info(key)} as it is"
        case _:
            k = next(k for k, value in failure.known.items() if row[k] != value)
            param = "operand " * isinstance(row[k], Key) + _params(c.head)[k]
            there, needed = names.of(row[k]), names.of(failure.known[k])
            return f"{param} of {name} is {there}; needed is {needed}"


def _result(failure: Failure) -> Any:
    """The class of the conjunct's node, if it is known."""
    return failure.known.get(len(failure.conjunct.places) - 1)


def _short(head: str) -> str:
    return head.removeprefix("R.").removeprefix("K.")


@by_operators(1 << 10)
def _params(head: str) -> tuple[str, ...]:
    declared = {d.name: d for d in vocabulary()}
    if head not in declared:
        return ("argument",) * 20
    return (*(p.name for p in declared[head].params), "result")

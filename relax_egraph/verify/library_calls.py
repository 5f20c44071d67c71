"""Rules with calls of functions below the graph, as they are checked.

The meaning of a call is the function that is registered for the machine.  No instance of a call is
drawn, so a rule with a call as its left side is tried from right to left:

    (rewrite (R.call_tir "twice" (vec-of x)) (R.add x x))
    -->
    (rewrite (R.add x x) (R.call_tir "twice" (vec-of x)))
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from relax_egraph.base import by_value
from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Source,
    Tree,
    applied,
    premises_of,
    sort_of_literal,
    variables,
)
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.shorthand import CALL_HEADS
from relax_egraph.vm.registry import register_func, registered


def turned(book: RuleBook) -> RuleBook:
    """`book`, with each rule of a user from right to left whose left side is a call."""
    return replace(book, user=tuple(map(_turned, book.user)))


def unchecked(rule: Rule) -> str:
    """The reason for which `rule` cannot be checked; empty if it can be.

    A `rule` of a `turned` book has no call on its left side, unless it cannot be turned.
    """
    for name in _callees(rule):
        if not name:
            return "the name of the function is a variable"
        if registered(name) is None:
            return f"no meaning is registered for {name}"
    if any(_calls(tree) for d in rule.directions for tree in d.matched):
        return "no instances are drawn of the call on its left side; test the rule by cases"
    return ""


def functions_of(rules: Iterable[Rule]) -> Mapping[str, bytes] | None:
    """The functions that `rules` call, for another process; ``None`` if one cannot be sent."""
    functions = {name: registered(name) for rule in rules for name in _callees(rule)}
    try:
        return {name: by_value.dumped(f) for name, f in functions.items() if f is not None}
    except Exception:  # what cannot be pickled raises anything
        return None


def receive(functions: Mapping[str, bytes]) -> None:
    """Register functions that another process has sent."""
    for name, code in functions.items():
        register_func(name, override=True)(by_value.loaded(code))


def _turned(source: Source) -> Source:
    text = source.text
    for form in reversed(list(read(source))):
        if form.head == "rewrite" and len(form.items) > 2 and _is_turned(form):
            left, right = (text[side.start : side.end] for side in form.items[1:3])
            first, second = form.items[1:3]
            between = text[first.end : second.start]
            text = text[: first.start] + right + between + left + text[second.end :]
    return replace(source, text=text)


def _is_turned(form: Form) -> bool:
    left, right = form.items[1:3]
    if not isinstance(left, Form) or not isinstance(right, Form) or _calls(right):
        return False
    known = variables((right, *premises_of(form)))
    return left.head in CALL_HEADS and variables([left]) <= known


def _calls(tree: Tree) -> bool:
    return any(applied(tree, CALL_HEADS))


def _callees(rule: Rule) -> Iterator[str]:
    """The names of the functions that a rule calls; empty for a variable."""
    for call in applied(rule.form, CALL_HEADS):
        name = call.items[1] if len(call.items) > 1 else None
        is_text = isinstance(name, Atom) and sort_of_literal(name.text) == "String"
        yield name.text.strip('"') if isinstance(name, Atom) and is_text else ""

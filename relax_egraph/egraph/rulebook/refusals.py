"""Diagnostics for egglog's errors in rule files: reworded, and placed in the text."""

import re
from collections.abc import Iterable, Iterator, Sequence

from relax_egraph.egraph.rulebook.forms import (
    RULES,
    Atom,
    Form,
    Source,
    Tree,
    applied,
    matched_in,
    original,
    symbols,
    written,
)
from relax_egraph.egraph.rulebook.scope import PRIMITIVES, Scope, near
from relax_egraph.errors import RuleError

_PLACE = re.compile(
    r"(?:In|At) (?P<line>\d+):(?P<column>\d+)-(?:(?P<last>\d+):)?\d+(?: of [^:\n]*)?: ?"
)


def explained(context: str, expanded: Form, form: Form, source: Source, scope: Scope) -> RuleError:
    """The diagnostic for the error that egglog reports as `context`, reworded if it is common.

    Egglog reads `expanded`, which is `form` with its guards expanded.
    """
    message, places = _without_places(context)
    span, quoted = source.span(form.start), "a fact"
    if places:
        line, column, quoted = places[0]
        before = written(expanded).split("\n")[: line - 1]
        offset = sum(len(text) + 1 for text in before) + column - 1
        span = source.span(original(expanded, offset))
    if name := re.match(r"Unbound (?:function|symbol) (\S+)", message):
        note = near(name[1], (*scope.declarations, *PRIMITIVES))
        return source.error(span, f"unknown operator {name[1]}", note)
    if sorts := re.match(r"Expect expression \S+ to have type (\S+), but get type (\S+)", message):
        return source.error(span, f"this is of sort {sorts[2]}, where {sorts[1]} is needed")
    if name := re.match(r"Shadowing is not allowed, but found (\S+)", message):
        return _shadowing(name[1], form, source, scope)
    if message.startswith("Value lookup of non-constructor"):
        note = f"bind it where the rule matches: (= v {quoted})"
        return source.error(span, f"{quoted} cannot be looked up in what a rule makes", note)
    if message.endswith("is ungrounded"):
        atom, note = _never_matched(form, scope) or (form, "")
        shown = atom.text if isinstance(atom, Atom) else "a variable"
        place = atom if isinstance(atom, Atom) else span
        return source.error(place, f"nothing that can be matched gives {shown} a value", note)
    if message.startswith("All alternative definitions"):
        return source.error(span, "no form of this primitive takes arguments of these sorts")
    return source.error(span, message[0].lower() + message[1:])


def _without_places(context: str) -> tuple[str, list[tuple[int, int, str]]]:
    """The message in `context`, and its places, each as line, column and text."""
    places: list[tuple[int, int, str]] = []
    while place := _PLACE.search(context):
        line = int(place["line"])
        count = 1 + int(place["last"] or line) - line
        behind = context[place.end() :].split("\n")
        places.append((line, int(place["column"]), "\n".join(behind[:count])))
        context = context[: place.start()] + "\n".join(behind[count:])
    texts = (text.strip().rstrip(".") for text in context.split("\n"))
    return next(filter(None, texts), "egglog refuses this form"), places


def _never_matched(form: Form, scope: Scope) -> tuple[Atom, str] | None:
    """The first variable of `form` that occurs under primitives only, and a hint.

    egglog may name another variable.
    """
    for where in matched_in(form):
        binding = [f for tree in where for f in applied(tree, {"=", *scope.declarations})]
        matched = {item.text for f in binding for item in f.items[1:] if isinstance(item, Atom)}
        rest = (a for tree in where for a in symbols(tree) if a.text not in matched)
        if atom := next(rest, None):
            vectors = [v.items[1:] for tree in where for v in applied(tree, {"vec-of"})]
            return atom, _what_helps(atom, vectors)
    return None


def _what_helps(atom: Atom, vectors: Iterable[Sequence[Tree]]) -> str:
    """A hint on how to match the variable `atom`, which may be an element of one of `vectors`."""
    for items in vectors:
        if atom in items:
            element = f"(= {atom.text} (vec-get ts {items.index(atom)}))"
            ask = f"write ts for it, and (= {len(items)} (vec-length ts)) {element}"
            return f"vec-of makes a vector, and matches none: {ask}"
    return "a variable must occur under an operator or a fact"


def _shadowing(name: str, form: Form, source: Source, scope: Scope) -> RuleError:
    """The error for a variable or a declaration whose `name` has another meaning already."""
    place = next((atom for atom in _arguments(form) if atom.text == name), form)
    declared = scope.declarations.get(name)
    if form.head not in RULES:
        what = "ruleset" if name in scope.rulesets else "primitive"
        return source.error(place, f"{name} is the name of a {what}", "choose another name")
    what, note = ("sort", "") if declared is None else (declared.kind, declared.usage)
    note = " ".join(filter(None, (f"{note} is declared;" if note else "", "rename the variable")))
    return source.error(place, f"{name} is the name of a {what}, and of no variable", note)


def _arguments(form: Form) -> Iterator[Atom]:
    """The atoms in `form` that are not heads, in order."""
    for item in form.items[1:] if form.head else form.items:
        if isinstance(item, Form):
            yield from _arguments(item)
        else:
            yield item

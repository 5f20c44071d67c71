"""Before and after: two terms that a file test checks to be equal, as instances of a rule."""

from collections.abc import Iterator

from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Source,
    Tree,
    is_literal,
    is_primitive,
    substituted,
    written,
)
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.verify.file_tests.cases import FileTest

_LONGEST = 300
"""The most characters of a term that is shown."""

_BARE = ("Leaf", "vec-of", "DimSym")
"""The heads of terms that are shown by the names that the case gives them."""


def before_and_after(rule: Rule, test: FileTest) -> tuple[str, str] | None:
    """The first two terms that `test` checks to be equal and that the sides of `rule` match.

    Premises are not looked at: that the rule fires is what the test asserts.
    """
    for first, second in _equal_terms(test):
        for left, right in _sides(rule):
            bound: dict[str, str] = {}
            if _matches(left, first, bound) and _matches(right, second, bound):
                shown = written(first), written(second)
                if max(map(len, shown)) <= _LONGEST:
                    return shown
    return None


def _sides(rule: Rule) -> Iterator[tuple[Tree, Tree]]:
    """What a rule matches of a value, and what it unites with the value."""
    for direction in rule.directions:
        for value, right in direction.unions:
            for premise in direction.body:
                match premise:
                    case Form(items=(Atom(text="="), name, Form() as left)) if written(
                        name
                    ) == written(value):
                        yield left, substituted(right, direction.lets)
                    case _:
                        pass


def _equal_terms(test: FileTest) -> Iterator[tuple[Tree, Tree]]:
    names: dict[str, Tree] = {}
    for form in read(Source(test.file, test.text)):
        match form.head, form.items[1:]:
            case "let", [Atom(text=name), value]:
                bare = isinstance(value, Form) and value.head in _BARE
                names[name] = Atom(name.removeprefix("$"), 0) if bare else substituted(value, names)
            case "check", [Form(items=(Atom(text="="), first, second))]:
                pair = substituted(first, names), substituted(second, names)
                yield from (pair, pair[::-1])
            case _:
                pass


def _matches(pattern: Tree, term: Tree, bound: dict[str, str]) -> bool:
    """Whether `term` is an instance of `pattern`; what its variables stand for is added."""
    if isinstance(pattern, Atom):
        if pattern.text == "_":
            return True
        if is_literal(pattern.text):
            return written(term) == pattern.text
        return bound.setdefault(pattern.text, written(term)) == written(term)
    if is_primitive(pattern.head) and pattern.head != "vec-of":
        return True  # computed: what it gives is no part of the pattern
    return (
        isinstance(term, Form)
        and len(term.items) == len(pattern.items)
        and term.head == pattern.head
        and all(map(lambda p, t: _matches(p, t, bound), pattern.items[1:], term.items[1:]))
    )

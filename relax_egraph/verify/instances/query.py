"""What a rule matches, as a conjunctive query: applications of names to variables and literals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.check import options_of
from relax_egraph.egraph.rulebook.forms import Atom, Form, Source, Tree, heads, written
from relax_egraph.egraph.rulebook.loader import RuleInfo
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.errors import Span


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, text or truth value that a rule writes."""

    value: int | float | str | bool


Arg: TypeAlias = str | Literal
"""A variable by name, or a literal."""


@dataclass(frozen=True, slots=True)
class Apply:
    """``result = (head args..)``; a relation or comparison has no result.

    `text` is what the rule writes; a `made` one is in what a rule makes, and matches nothing.
    """

    head: str
    args: tuple[Arg, ...]
    result: Arg | None
    text: str
    made: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The sorts of what a name is applied to and gives; a relation gives ``Unit``."""

    params: tuple[str, ...]
    result: str


@dataclass(slots=True)
class Query:
    """A conjunction; `same` are arguments that are equal."""

    applies: list[Apply] = field(default_factory=list[Apply])
    same: list[tuple[Arg, Arg]] = field(default_factory=list[tuple[Arg, Arg]])
    fresh: int = 0

    def term(self, tree: Tree, prefix: str, result: Arg | None = None, made: bool = False) -> Arg:
        """The argument that stands for `tree`, whose variables get `prefix`."""
        if isinstance(tree, Atom):
            literal = literal_of(tree.text)
            if literal is not None:
                return literal
            return self.variable() if tree.text == "_" else prefix + tree.text
        whole = result or self.variable()
        args = tuple(self.term(item, prefix, None, made) for item in tree.items[1:])
        self.applies.append(Apply(tree.head, args, whole, written(tree), made))
        return whole

    def fact(self, tree: Tree, prefix: str) -> None:
        """Add a premise."""
        if not isinstance(tree, Form):
            return
        if tree.head == "=":
            first, *others = (self.term(item, prefix) for item in tree.items[1:])
            self.same += [(first, other) for other in others]
            return
        if tree.head.startswith(("R.", "K.")):
            self.term(tree, prefix)
            return
        args = tuple(self.term(item, prefix) for item in tree.items[1:])
        self.applies.append(Apply(tree.head, args, None, written(tree)))

    def variable(self) -> str:
        """A variable that no rule names."""
        self.fresh += 1
        return f"_{self.fresh}"


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """One direction of a rule: what it matches and what it does.

    `left` and `right` are the sides of a rewrite; of a rule, `actions` are its head.  `float_class`
    and the rest are in `rule`.
    """

    rule: RuleInfo
    name: str
    facts: tuple[Tree, ...]
    left: Tree | None = None
    right: Tree | None = None
    actions: tuple[Form, ...] = ()

    @property
    def unites(self) -> bool:
        """Whether it equates values, rather than deducing facts from which others do."""
        return self.left is not None or any(map(_equates, self.actions))

    @property
    def reads(self) -> Iterator[str]:
        """What its premises and its left side apply, in order."""
        trees = (*self.facts, *([self.left] if self.left else []))
        return (head for tree in trees for head in heads(tree))

    def add_to(self, query: Query, prefix: str = "") -> None:
        """Add what it matches to `query`."""
        if self.left is not None:
            query.term(self.left, prefix, prefix + ROOT)
        for fact in self.facts:
            query.fact(fact, prefix)


def _equates(action: Form) -> bool:
    """Whether `action` says what a value is: that of another term, or a number."""
    inside = action.items[1] if action.head == "set" else action
    return isinstance(inside, Form) and inside.head in ("union", "const-scalar")


ROOT = "left-side"
"""The variable that stands for the left side of a rewrite."""


@cache
def patterns_of(rule: RuleInfo) -> tuple[Pattern, ...]:
    """The directions of `rule`: two of a birewrite."""
    source = Source(rule.span.file, rule.form)
    (form,) = read(source)
    if rule.kind == "rule":
        body, head = (item.items if isinstance(item, Form) else () for item in form.items[1:3])
        actions = tuple(a for a in head if isinstance(a, Form))
        return (Pattern(rule, rule.name, tuple(body), actions=actions),)
    when, (left, right) = options_of(form, source).when, form.items[1:3]
    forward = Pattern(rule, rule.reported[0], when, left, right)
    if rule.kind == "rewrite":
        return (forward,)
    return forward, Pattern(rule, rule.reported[1], when, right, left)


@cache
def signatures_of(book: RuleBook) -> Mapping[str, Signature]:
    """The signature of every name that the rules of `book` may use."""
    found: dict[str, Signature] = {}
    for entry in book.entries:
        if isinstance(entry, str) and entry.startswith(_DECLARES):
            for form in read(Source("declarations", entry)):
                found.update(_declared(form))
    return found


_DECLARES = ("(constructor", "(function", "(relation", "(datatype")


@cache
def generated_rules(book: RuleBook) -> tuple[RuleInfo, ...]:
    """The rules that are generated from the operators, as far as they deduce relations of use."""
    found: list[RuleInfo] = []
    for entry in book.entries:
        if isinstance(entry, str) and entry.startswith("(rule "):
            name = entry.rpartition(':name "')[2].partition('"')[0]
            span = Span("generated", 1, 1)
            found.append(RuleInfo(name, "facts", "rule", span, "", "exact", entry))
    return tuple(found)


def _declared(form: Form) -> Iterable[tuple[str, Signature]]:
    match form.head, form.items[1:]:
        case "constructor" | "function", [Atom(text=name), Form(items=params), Atom(text=out), *_]:
            yield name, Signature(_names(params), out)
        case "relation", [Atom(text=name), Form(items=params)]:
            yield name, Signature(_names(params), "Unit")
        case "datatype", [Atom(text=out), *variants]:
            for variant in variants:
                if isinstance(variant, Form):
                    yield variant.head, Signature(_names(variant.items[1:]), out)
        case _:
            pass


def _names(items: Sequence[Tree]) -> tuple[str, ...]:
    return tuple(i.text for i in items if isinstance(i, Atom) and not i.text.startswith(":"))


def literal_of(text: str) -> Literal | None:
    """The literal that `text` writes; ``None`` of a variable."""
    if text.startswith('"'):
        return Literal(text[1:-1])
    if text in ("true", "false"):
        return Literal(text == "true")
    if text in ("NaN", "inf", "-inf"):
        return Literal(float(text))
    if not (text[0].isdigit() or (text[:1] == "-" and text[1:2].isdigit())):
        return None
    numbers: tuple[type[Any], ...] = (int, float)
    for number in numbers:
        try:
            return Literal(number(text))
        except ValueError:
            continue
    return None

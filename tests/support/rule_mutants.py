"""Mutants of rules: each states a little less than a true rule, or something else."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from random import Random
from typing import Literal, TypeAlias

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import (
    Atom,
    Form,
    Tree,
    is_literal,
    premises_in,
    premises_of,
    written,
)
from relax_egraph.egraph.rulebook.rule import Rule
from relax_egraph.egraph.rulebook.weaker import everywhere, looser, replaced, with_item, without
from relax_egraph.errors import RuleError
from relax_egraph.verify.cases import Case
from relax_egraph.verify.check import check_rules
from relax_egraph.verify.instances.query import Literal as Written
from relax_egraph.verify.instances.query import literal_of
from relax_egraph.verify.verdict import Verdict

Kind: TypeAlias = Literal["premise dropped", "premise loosened", "result changed", "parted"]

_SIBLINGS = (
    *(("R.add", "R.subtract"), ("R.multiply", "R.divide"), ("R.maximum", "R.minimum")),
    *(("R.sum", "R.mean"), ("R.max", "R.min"), ("R.exp", "R.log"), ("R.sqrt", "R.rsqrt")),
    *(("R.tril", "R.triu"), ("R.floor", "R.ceil"), ("R.sin", "R.cos"), ("R.all", "R.any")),
    *(("R.less", "R.less_equal"), ("R.greater", "R.greater_equal"), ("R.equal", "R.not_equal")),
    *(("R.logical_and", "R.logical_or"), ("R.argmax", "R.argmin"), ("R.negative", "R.abs")),
    *(("R.square", "R.negative"), ("R.erf", "R.tanh"), ("R.sigmoid", "R.tanh")),
    *(("R.nn.gelu", "R.nn.gelu_tanh"), ("R.nn.softmax", "R.nn.log_softmax")),
    *(("R.nn.max_pool2d", "R.nn.avg_pool2d"), ("R.cumsum", "R.cumprod")),
    *(("+", "-"), ("*", "/"), ("min", "max"), ("DimAdd", "DimMul")),
)
"""Operators of one signature, which may replace each other."""

_COMMUTES = (
    *("R.add", "R.multiply", "R.maximum", "R.minimum", "R.equal", "R.not_equal"),
    *("R.logical_and", "R.logical_or", "R.logical_xor", "R.ewise_add", "R.log_add_exp"),
    *("+", "*", "min", "max", "DimAdd", "DimMul", "union", "set", "let"),
)

_BOOK = RuleBook.default(fast_math=True, bounded=True)

_PATTERN = 1
"""The part of each kind of rule that it matches."""

_RESULT = 2
"""The part of each kind of rule that it creates."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A rule with one `change`; `form` is what it says, without ruleset and name."""

    rule: Rule
    kind: Kind
    change: str
    form: Form

    def __str__(self) -> str:
        return f"{self.rule.name}: {self.change}"

    @property
    def name(self) -> str:
        """The name of the mutant."""
        return f"{self.rule.name}-mutant"

    @property
    def changed(self) -> Rule:
        """The rule with the change."""
        return replace(self.rule, form=self.form)

    def book(self) -> RuleBook:
        """The book with the mutant in place of its rule; raises `RuleError` if it is invalid."""
        return replaced(_BOOK, self.rule, self.form, self.name)

    def verdict(self, cases: Iterable[Case], seed: int = 0) -> Verdict:
        """The verdict on the mutant, with the trials of its rule."""
        name = self.rule.name
        known = [replace(c, fires=c.fires - {name} | {self.name}) for c in cases if name in c.fires]
        (verdict,) = check_rules(self.book(), [self.name], known, seed=seed)
        return verdict


def is_rule(mutant: Mutant) -> bool:
    """Whether egglog accepts the mutant: its variables are bound, and sorts fit."""
    try:
        mutant.book()
    except RuleError:
        return False
    return True


def one_of(rule: Rule, seed: int) -> Mutant | None:
    """A mutant of `rule` with another result; ``None`` if there is none."""
    mutants = [m for m in mutants_of(rule) if m.kind == "result changed"]
    Random(f"{seed} {rule.name}").shuffle(mutants)
    return next(filter(is_rule, mutants), None)


def mutants_of(rule: Rule) -> Iterator[Mutant]:
    """All distinct mutants of `rule`; some are invalid rules."""
    seen = {written(rule.form)}
    for kind, change, changed in _changed(rule.form):
        text = written(changed)
        if text not in seen:
            seen.add(text)
            yield Mutant(rule, kind, change, changed)


def weaker(rule: Rule) -> Iterator[Mutant]:
    """The mutants of `rule` that assume less."""
    return (m for m in mutants_of(rule) if m.kind != "result changed")


def parted(rule: Rule) -> Iterator[Mutant]:
    """`rule` with another variable at one place where its pattern or a premise has one again."""
    form = rule.form
    premises = premises_in(form)
    conditions = [] if form.head == "rule" or premises is None else [form.items.index(premises)]
    for part in (_PATTERN, *conditions):
        for change, other in everywhere(form.items[part], _another):
            yield Mutant(rule, "parted", change, with_item(form, part, other))


_Change: TypeAlias = tuple[str, Tree]


def _another(tree: Tree) -> Iterator[_Change]:
    if isinstance(tree, Form):
        for at, item in enumerate(tree.items):
            is_name = isinstance(item, Atom) and not is_literal(item.text) and item.text != "_"
            if is_name and (at or not tree.head):
                other = with_item(tree, at, Atom("another", item.start))
                yield f"{written(other)} for {written(tree)}", other


def _changed(form: Form) -> Iterator[tuple[Kind, str, Form]]:
    premises = premises_of(form)
    for number, premise in enumerate(premises):
        yield "premise dropped", f"without {written(premise)}", without(form, number)
    for number in range(len(premises)):
        for change, changed in looser(form, number):
            yield "premise loosened", change, changed
    result = form.items[_RESULT]
    for change, other in (*everywhere(result, _other), *_exchanged(result)):
        yield "result changed", change, with_item(form, _RESULT, other)


def _other(tree: Tree) -> Iterator[_Change]:
    """Plausible mistakes in place of `tree`."""
    if isinstance(tree, Atom):
        for text in _other_texts(tree.text):
            yield f"{text} for {tree.text}", replace(tree, text=text)
    elif tree.head and tree.head not in _COMMUTES:
        for a, b in combinations(range(1, len(tree.items)), 2):
            items = list(tree.items)
            items[a], items[b] = items[b], items[a]
            yield _change(tree, replace(tree, items=tuple(items)))


def _other_texts(text: str) -> Iterator[str]:
    for siblings in _SIBLINGS:
        if text in siblings:
            yield from (s for s in siblings if s != text)
    match literal_of(text):
        case Written(value=bool(value)):
            yield str(not value).lower()
        case Written(value=str(value)) if value.isdigit():
            yield f'"{int(value) + 1}"'
        case Written(value=int(value) | float(value)) if abs(value) < inf:
            yield str(value + 1)
        case _:
            pass


def _exchanged(tree: Tree) -> Iterator[_Change]:
    """`tree` with two variables exchanged, neither of which it binds itself."""
    for a, b in combinations(sorted(set(_variables(tree)) - set(_named(tree))), 2):
        yield f"{a} and {b} exchanged", _renamed(tree, {a: b, b: a})


def _named(tree: Tree) -> Iterator[str]:
    """The variables that actions of `tree` bind."""
    for action in tree.items if isinstance(tree, Form) else ():
        if isinstance(action, Form) and action.head == "let" and isinstance(action.items[1], Atom):
            yield action.items[1].text


def _variables(tree: Tree) -> Iterator[str]:
    if isinstance(tree, Form):
        for item in tree.items[1 if tree.head else 0 :]:
            yield from _variables(item)
    elif not is_literal(tree.text):
        yield tree.text


def _renamed(tree: Tree, names: dict[str, str]) -> Tree:
    if isinstance(tree, Atom):
        return replace(tree, text=names.get(tree.text, tree.text))
    return replace(tree, items=tuple(_renamed(i, names) for i in tree.items))


def _change(tree: Tree, other: Tree) -> _Change:
    return f"{written(other)} for {written(tree)}", other

"""Which rules deduce what others read.

A relation such as ``(cube-of y x)`` means whatever the rules that make it say.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import Form, Tree
from relax_egraph.egraph.rulebook.loader import RuleInfo
from relax_egraph.rules import FACTS
from relax_egraph.verify.instances.query import (
    Pattern,
    generated_rules,
    patterns_of,
    signatures_of,
)

NATIVE = frozenset(
    (
        *("shape-of", "rank-of", "dtype-of", "const-scalar", "is-const", "source-index"),
        *("numel-of", "is-static", "static-prefix", "dim-text", "shape-claim", "dtype-claim"),
        *("factors", "number-of-elements"),
        *("shape-conflict", "dtype-conflict", "operand-conflict", "within-tolerance"),
    )
)
"""Facts that are known of an instance as it is drawn."""


@dataclass(frozen=True, slots=True)
class Makers:
    """`of` a name: the patterns that deduce it, each with the action that does.

    `walks` are names that are read by a rule that makes them: such rules compute.
    """

    of: Mapping[str, Sequence[tuple[Pattern, Form]]]
    uniting: tuple[Pattern, ...]
    walks: tuple[str, ...]


@cache
def makers_of(book: RuleBook) -> Makers:
    """What the rules of `book`, those that deduce facts among them, make."""
    of: dict[str, list[tuple[Pattern, Form]]] = defaultdict(list)
    uniting: list[Pattern] = []
    for rule in (*book.rules, *generated_rules(book)):
        for pattern in patterns_of(rule):
            for action in pattern.actions:
                if (name := made_by(action)) and name not in NATIVE:
                    of[name].append((pattern, action))
            if pattern.unites:
                uniting.append(pattern)
    walks = (name for name, ways in of.items() if any(name in reads_of(p) for p, _ in ways))
    return Makers(dict(of), tuple(uniting), tuple(walks))


@cache
def reads_of(pattern: Pattern) -> frozenset[str]:
    """What the premises and the left side of `pattern` apply, each once."""
    return frozenset(pattern.reads)


@cache
def reads_in(rule: RuleInfo) -> frozenset[str]:
    """What the premises and the left sides of `rule` apply, each once."""
    return frozenset().union(*map(reads_of, patterns_of(rule)))


def made_by(action: Form) -> str:
    """The relation or function that `action` adds to; empty if it is none."""
    if action.head == "set" and isinstance(action.items[1], Form):
        return action.items[1].head
    if action.head in ("union", "let", "delete", "subsume") or action.head.startswith(("R.", "K.")):
        return ""
    return action.head


def arguments_of(action: Form) -> Sequence[Tree]:
    """What the name is applied to that `action` adds to."""
    made = action.items[1] if action.head == "set" else action
    return made.items[1:] if isinstance(made, Form) else ()


def relations_of(rule: RuleInfo) -> tuple[str, ...]:
    """The relations and functions that `rule` adds to, each once."""
    actions = (action for pattern in patterns_of(rule) for action in pattern.actions)
    return tuple(dict.fromkeys(filter(None, map(made_by, actions))))


def chains_to(pattern: Pattern, makers: Makers) -> list[tuple[Pattern, ...]]:
    """For each rule that equates and reads what `pattern` deduces, the chain of the two.

    `pattern` alone is one more if it equates values itself; where no such rule is there, the one
    chain is that of `chain_to`, which may be empty.
    """
    made = {made_by(action) for action in pattern.actions} - NATIVE - {""}
    readers = dict.fromkeys(p for p in makers.uniting if p is not pattern and made & reads_of(p))
    found: list[tuple[Pattern, ...]] = [(reader, pattern) for reader in readers]
    if pattern.unites:
        found.append((pattern,))
    return found or [chain_to(pattern, makers)]


def chain_to(pattern: Pattern, makers: Makers) -> tuple[Pattern, ...]:
    """A rule that equates, then those by which it reads what `pattern` deduces; empty if none does.

    The last is `pattern`; the chain is a shortest one.
    """
    chains: list[tuple[Pattern, ...]] = [(pattern,)]
    seen = {pattern.name}
    for chain in chains:
        made = {made_by(action) for action in chain[0].actions}
        readers = [p for name in makers.of for p, _ in makers.of[name]] + list(makers.uniting)
        if chain[0].unites:
            return chain
        for reader in sorted(readers, key=lambda p: not p.unites):
            if reader.name not in seen and made & reads_of(reader):
                seen.add(reader.name)
                chains.append((reader, *chain))
    return ()


@cache
def deduced_by_none(chain: Sequence[Pattern], book: RuleBook) -> str:
    """A relation that one of `chain` reads and no rule of `book` makes; empty if there is none."""
    makers, signatures = makers_of(book), signatures_of(book)
    for name in (name for pattern in chain for name in pattern.reads):
        relation = name in signatures and signatures[name].result == "Unit"
        if relation and name not in NATIVE and name not in makers.of:
            return name
    return ""


def needed(rule: RuleInfo, makers: Makers) -> tuple[RuleInfo, ...]:
    """`rule`, and all rules that deduce what it reads, and what they read."""
    found = {rule.name: rule}
    todo = list(patterns_of(rule))
    for pattern in todo:
        for name in pattern.reads:
            for maker, _ in makers.of.get(name, ()):
                if maker.rule.name not in found and maker.rule.ruleset not in FACTS:
                    found[maker.rule.name] = maker.rule
                    todo.append(maker)
    return tuple(found.values())

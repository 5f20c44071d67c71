"""Unfolding: premises that other rules deduce are replaced by the patterns of those rules.

A rule that reads a relation is tried together with the rules that deduce it (`makers`).  A rule
that only deduces is tried with a rule that equates values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random

from relax_egraph.egraph.rulebook.forms import Atom, Form
from relax_egraph.egraph.rulebook.rule import Direction, Row, Rule
from relax_egraph.verify.instances.makers import Makers, keeps, reads_of
from relax_egraph.verify.instances.query import Apply, Arg, Literal, Query, literal_of

_DEPTH = 8
_AGAIN = 0.75
"""The probability that a premise reuses an earlier deduction of the same relation."""


@dataclass(frozen=True, slots=True)
class Unfolded:
    """A query over operators and known facts only, and the rules that deduce the rest."""

    query: Query
    rules: tuple[Rule, ...]


def unfold(
    chain: Sequence[Direction], makers: Makers, random: Random, left: frozenset[str]
) -> Unfolded:
    """The unfolded pattern of the first rule in `chain`; one rule is drawn for each premise.

    The other rules of `chain` are among the rules used.  For a walk in `left`, only the first step
    is unfolded and egglog computes the others, except for rules of `chain`.
    """
    unfolding = _Unfolding(makers, random, list(chain[1:]), {p.rule.name: p.rule for p in chain})
    unfolding.query.match(chain[0])
    begun: list[Apply] = []
    for depth in range(_DEPTH):
        derived = [a for a in unfolding.query.applies if a.head in makers.of and not a.built]
        for number, apply in enumerate(derived):
            prefix = f"{apply.head}-{depth}-{number}: "
            if apply.head not in left or unfolding.forced(makers.of[apply.head]):
                unfolding.replace(apply, depth, prefix)
            elif not any(apply is other for other in begun):
                begun.append(apply)
                unfolding.begin(apply, prefix)
    return Unfolded(unfolding.query, tuple(unfolding.rules.values()))


@dataclass(slots=True)
class _Unfolding:
    makers: Makers
    random: Random
    wanted: list[Direction]
    rules: dict[str, Rule]
    query: Query = field(default_factory=Query)
    deduced: list[Apply] = field(default_factory=list[Apply])
    above: dict[Apply, tuple[Apply, ...]] = field(default_factory=dict[Apply, tuple[Apply, ...]])
    parent: dict[Arg, Arg] = field(default_factory=dict[Arg, Arg])
    seen: int = 0

    def forced(self, ways: Sequence[tuple[Direction, Row]]) -> list[tuple[Direction, Row]]:
        """The ways by the next rule of the chain."""
        return [w for w in ways if self.wanted and w[0].name == self.wanted[0].name]

    def replace(self, apply: Apply, depth: int, prefix: str) -> None:
        """Replace `apply` by the pattern of a rule that deduces it, or by an earlier deduction."""
        ways = [w for w in self.makers.of[apply.head] if self.fits(apply, w[1])]
        ways = [w for w in ways if self.is_of(apply, *w)] or ways
        forced = self.forced(ways)
        above = self.above.get(apply, ())
        known = [d for d in self.deduced if d.head == apply.head and self.agree(d, apply)]
        known = [d for d in known if d not in above]  # nothing deduces itself
        self.query.applies.remove(apply)
        if known and not forced and self.random.random() < _AGAIN:
            near = [d for d in known if set(d.args) & set(apply.args)]
            self.same(apply, self.random.choice(near or known))
            return
        if not ways:
            self.query.same.append((Literal(apply.text), Literal("what any rule deduces")))
            return
        if forced:
            self.wanted.pop(0)
        pattern, row = self.random.choice(forced or self.shallow(ways, depth))
        before = len(self.query.applies)
        self.rules[pattern.rule.name] = pattern.rule
        self.query.match(pattern, prefix)
        for name, value in pattern.lets.items():
            self.query.same.append((prefix + name, self.query.term(value, prefix, None, True)))
        inside = [self.query.term(item, prefix, None, True) for item in row.args]
        self.query.same += zip(apply.args, inside, strict=True)
        if row.value is not None and apply.result is not None:
            self.query.same.append((apply.result, self.query.term(row.value, prefix, None, True)))
        self.deduced.append(apply)
        self.above |= dict.fromkeys(self.query.applies[before:], (*above, apply))

    def shallow(
        self, ways: Sequence[tuple[Direction, Row]], depth: int
    ) -> Sequence[tuple[Direction, Row]]:
        """`ways` without recursive rules beyond half of the depth, if there are others."""
        ends = [w for w in ways if not self.makers.recurs(w)] if depth >= _DEPTH // 2 else []
        return ends or ways

    def begin(self, apply: Apply, prefix: str) -> None:
        """Add the first step of the walk to which `apply` belongs."""
        ways = self.makers.of[apply.head]
        steps = [w for w in ways if apply.head in reads_of(w[0])]
        begins = [w for w in ways if w not in steps and self.is_of(apply, *w)]
        if not begins or self.wanted:
            return
        pattern, row = self.random.choice(begins)
        self.rules[pattern.rule.name] = pattern.rule
        self.query.match(pattern, prefix)
        for at, item in enumerate(row.args):
            if all(keeps(*step, at) for step in steps):
                same = (apply.args[at], self.query.term(item, prefix, None, True))
                self.query.same.append(same)

    def same(self, a: Apply, b: Apply) -> None:
        self.query.same += zip(a.args, b.args, strict=True)
        if a.result is not None and b.result is not None:
            self.query.same.append((a.result, b.result))

    def fits(self, apply: Apply, row: Row) -> bool:
        """Whether the literals of `apply` equal those of `row`."""
        pairs = list(zip(apply.args, row.args, strict=True))
        if row.value is not None and apply.result is not None:
            pairs.append((apply.result, row.value))
        for arg, tree in pairs:
            ours = self.literal(arg)
            theirs = literal_of(tree.text) if isinstance(tree, Atom) else None
            if ours is not None and theirs is not None and ours != theirs:
                return False
        return True

    def is_of(self, apply: Apply, pattern: Direction, row: Row) -> bool:
        """Whether the operators behind the arguments of `apply` fit those of `pattern`."""
        heads = _operators_of(pattern)
        for arg, item in zip(apply.args, row.args, strict=True):
            wanted = heads.get(item.text) if isinstance(item, Atom) else None
            if wanted and (known := self.operators(arg)) and wanted not in known:
                return False
        return True

    def operators(self, arg: Arg) -> set[str]:
        """The operators whose result `arg` is known to be."""
        self.literal(arg)
        representative = self.find(arg)
        return {
            a.head
            for a in self.query.applies
            if a.head.startswith("R.")
            and a.result is not None
            and self.find(a.result) == representative
        }

    def agree(self, a: Apply, b: Apply) -> bool:
        for x, y in zip((*a.args, a.result), (*b.args, b.result), strict=True):
            if x is None or y is None:
                continue
            first, second = self.literal(x), self.literal(y)
            if first is not None and second is not None and first != second:
                return False
        return True

    def literal(self, arg: Arg) -> Literal | None:
        """The literal that `arg` is known to equal."""
        for a, b in self.query.same[self.seen :]:
            first, second = self.find(a), self.find(b)
            if first != second:
                if isinstance(first, Literal):
                    first, second = second, first
                self.parent[first] = second
        self.seen = len(self.query.same)
        representative = self.find(arg)
        return representative if isinstance(representative, Literal) else None

    def find(self, arg: Arg) -> Arg:
        while arg in self.parent:
            arg = self.parent[arg]
        return arg


@cache
def _operators_of(pattern: Direction) -> Mapping[str, str]:
    """By variable, the operator that a premise of `pattern` equates it with."""
    return {
        name.text: value.head
        for fact in pattern.premises
        if isinstance(fact, Form) and fact.head == "="
        for name in fact.items[1:]
        for value in fact.items[1:]
        if isinstance(name, Atom) and isinstance(value, Form) and value.head.startswith("R.")
    }

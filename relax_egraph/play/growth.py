"""The growth of an e-graph: its classes after each iteration of a run, and what each rule added.

The matches that were recorded of a run are applied once more to a table of nodes, with a
union-find over classes and congruence closure, as egglog applied them.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.node import Node
from relax_egraph.egraph.readback.tables import Key
from relax_egraph.egraph.recording.recording import Moment
from relax_egraph.egraph.recording.snapshot import Instance, Made
from relax_egraph.egraph.view import ClassId, View

Class: TypeAlias = int
"""The number of a class here; classes of the program keep theirs."""


_PART = re.compile(r"(/\d+)?(=>|<=)?$")


def name_of(reported: str) -> str:
    """The name of a rule in its file; a run names each alternative and direction of it."""
    return _PART.sub("", reported, count=1)


@dataclass(slots=True)
class Entry:
    """A node and its class; `rule` added it in `step`, and is empty for a node of the program."""

    node: Node[Class]
    owner: Class
    rule: str
    step: int


@dataclass(frozen=True, slots=True)
class RuleEffect:
    """What a rule did in a step: its matches, and the nodes and unions of classes that are new."""

    rule: str
    matches: int
    nodes: int
    unions: int


@dataclass(frozen=True, slots=True)
class Step:
    """The classes after an `iteration` of a `phase`, each with its nodes, and the rules' effects.

    `merged` are the classes that took in another one.
    """

    number: int
    phase: str
    iteration: int
    effects: tuple[RuleEffect, ...]
    classes: Mapping[Class, tuple[Entry, ...]]
    merged: frozenset[Class]


class Growth:
    """Applies the matches of recorded moments to the classes of `view`.

    What several rules add in one iteration is of the rule in `first`, if one of them is.
    """

    def __init__(self, view: View, first: Container[str] = ()) -> None:
        self._first = first
        self._parent: dict[Class, Class] = {}
        self._table: dict[Node[Class], Entry] = {}
        self._of_key: dict[Key, Class] = {}
        self._step = 0
        self._next = max(view.classes, default=-1) + 1
        self._begun: set[Class] = set()
        for number in view.classes:
            self._parent[number] = number
        for number, eclass in view.classes.items():
            for node in eclass.nodes:
                self._table[node] = Entry(node, number, "", 0)
        self._close()

    def steps(self, moments: Iterable[Moment]) -> Iterator[Step]:
        """The e-graph of the program, then that after each iteration."""
        yield self._now("", 0, ())
        for moment in moments:
            self._step += 1
            self._begun = {self.find(c) for c in self._parent}
            for key, value in moment.classes:
                self._learn(key, value)
            effects = self._apply(moment)
            self._close()
            if moment.phase:
                yield self._now(moment.phase, moment.iteration, effects)

    def find(self, c: Class) -> Class:
        """The class that has taken in class `c`."""
        while self._parent[c] != c:
            c = self._parent[c]
        return c

    def _learn(self, key: Key, value: ClassId | Made) -> None:
        """Have `key` name a class of the program, or that of a node over known classes."""
        if isinstance(value, int):
            if value in self._parent:
                self._of_key[key] = value
        else:
            self._of_key[key] = self._class_of(value, "the engine")

    def _apply(self, moment: Moment) -> tuple[RuleEffect, ...]:
        matches, nodes, unions = Counter[str](), Counter[str](), Counter[str]()
        for match in sorted(moment.matches, key=lambda m: name_of(m.rule) not in self._first):
            before = len(self._table)
            for instance in match.made:
                self._instance(instance, match.rule)
            for left, right in match.edges:
                one, other = self._instance(left, match.rule), self._instance(right, match.rule)
                if one is not None and other is not None:
                    unions[match.rule] += self._unite(one, other)
            matches[match.rule] += 1
            nodes[match.rule] += len(self._table) - before
        return tuple(RuleEffect(r, n, nodes[r], unions[r]) for r, n in matches.most_common())

    def _instance(self, value: Instance, rule: str) -> Class | None:
        match value:
            case None:
                return None
            case Key():
                return self._of(value)
            case Node():
                return self._class_of(value, rule)

    def _of(self, key: Key) -> Class:
        if key not in self._of_key:
            self._of_key[key] = self._new()
        return self.find(self._of_key[key])

    def _class_of(self, made: Made, rule: str) -> Class:
        """The class of a node, which is added if it is new."""

        def child(value: Key | Made) -> Class:
            return self._of(value) if isinstance(value, Key) else self._class_of(value, rule)

        node = made.over(child)
        if node not in self._table:
            self._table[node] = Entry(node, self._new(), rule, self._step)
        return self.find(self._table[node].owner)

    def _new(self) -> Class:
        self._parent[self._next] = self._next
        self._next += 1
        return self._next - 1

    def _unite(self, one: Class, other: Class) -> bool:
        """Join two classes; the older one keeps its number.  Whether they were different."""
        one, other = sorted((self.find(one), self.find(other)))
        self._parent[other] = one
        return one != other

    def _close(self) -> None:
        """Unite the classes of equal nodes until there are none."""
        changed = True
        while changed:
            changed = False
            table: dict[Node[Class], Entry] = {}
            for entry in self._table.values():
                entry.node, entry.owner = entry.node.over(self.find), self.find(entry.owner)
                known = table.setdefault(entry.node, entry)
                changed |= self._unite(known.owner, entry.owner)
            self._table = table

    def _now(self, phase: str, iteration: int, effects: tuple[RuleEffect, ...]) -> Step:
        classes: dict[Class, list[Entry]] = {}
        for e in self._table.values():
            shown = Entry(e.node.over(self.find), self.find(e.owner), e.rule, e.step)
            classes.setdefault(shown.owner, []).append(shown)
        now = {c: self.find(c) for c in self._begun}
        merged = frozenset(to for c, to in now.items() if c != to)
        whole = {c: tuple(entries) for c, entries in classes.items()}
        return Step(self._step, phase, iteration, effects, whole, merged)

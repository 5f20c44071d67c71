"""The programs of a trace, node by node: the nodes that each step removes, adds, and moves."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.egraph.node import Node
from relax_egraph.errors import ReplayError
from relax_egraph.proof.term import Term, key_of, post_order
from relax_egraph.proof.trace import Trace

Number: TypeAlias = int
"""The number of a node: equal nodes share it, and it is above the numbers of the operands."""


@dataclass(frozen=True, slots=True)
class Change:
    """The effect of a step: it replaces `before` by `after`, and thereby the nodes over `before`.

    Common context of both sides of the step is not part of them.  `moved` maps each node over
    `before` to its replacement; `fresh` are the nodes of `after` that are not in the program
    before, and `taken` are the nodes of `before` that are not in `after`.
    """

    rules: tuple[str, ...]
    before: Number
    after: Number
    moved: Mapping[Number, Number]
    fresh: frozenset[Number]
    taken: frozenset[Number]


class History:
    """The nodes of the programs of `trace`, and the changes from each program to the next.

    Raises `ReplayError` if a step's `before` is not in the program that it is applied to, or if
    the last program is not the result.
    """

    def __init__(self, trace: Trace) -> None:
        self._numbers: dict[Term, Number] = {}
        self._known: dict[Hashable, Number] = {}
        self._nodes: list[Node[Number]] = []
        self.changes: list[Change] = []
        root = self.number(trace.source)
        for count, step in enumerate(trace.steps, 1):
            before, after = self.number(step.before), self.number(step.after)
            program = self.below(root)
            if before not in program:
                where = f"step {count} of {trace.function}, output {trace.output}"
                raise ReplayError(f"{where}: {step.rule} is applied to what the program has not")
            moved = self._moved(program, before, after)
            root = moved.get(root, root)
            self.changes.append(self._change(step.rules, program, before, after, moved))
        if root != self.number(trace.result):
            raise ReplayError(
                f"{trace.function}, output {trace.output}: the last of {len(trace.steps)} steps "
                "does not make the result"
            )

    def number(self, term: Term) -> Number:
        """The number of `term`, which is added if it is new."""
        for inner in post_order(term, self._numbers):
            self._numbers[inner] = self._node(inner.over(self._numbers.__getitem__))
        return self._numbers[term]

    def below(self, root: Number, ends: Collection[Number] = ()) -> set[Number]:
        """The nodes that `root` reaches, with itself, without passing through `ends`."""
        nodes, todo = {root}, [root]
        while todo:
            new = [c for c in self._nodes[todo.pop()].operands if c not in nodes and c not in ends]
            nodes.update(new)
            todo += new
        return nodes

    def operands(self, number: Number) -> tuple[Number, ...]:
        """The operands of a node."""
        return self._nodes[number].operands

    def _node(self, node: Node[Number]) -> Number:
        key = key_of(node)
        if key not in self._known:
            self._known[key] = len(self._nodes)
            self._nodes.append(node)
        return self._known[key]

    def _change(
        self,
        rules: tuple[str, ...],
        program: set[Number],
        before: Number,
        after: Number,
        moved: dict[Number, Number],
    ) -> Change:
        """The change from `before` to `after`, without their common context."""
        over = {was: now for was, now in moved.items() if was != before}
        while (inner := self._inner(before, after)) is not None:
            over[before] = after
            before, after = inner
        left, right = self.below(before), self.below(after)
        fresh, taken = frozenset(right - program), frozenset(left - right)
        return Change(rules, before, after, over, fresh, taken)

    def _inner(self, before: Number, after: Number) -> tuple[Number, Number] | None:
        """The only pair of operands in which two nodes differ; ``None`` if they differ in more."""
        left, right = self.operands(before), self.operands(after)
        pairs = {(b, a) for b, a in zip(left, right, strict=False) if b != a}
        same = len(left) == len(right) and len(pairs) == 1
        if not same or self._replaced(before, dict(pairs)) != after:
            return None
        return pairs.pop()

    def _moved(
        self, program: Iterable[Number], before: Number, after: Number
    ) -> dict[Number, Number]:
        """The replacements of the nodes of `program` that change."""
        moved = {before: after}
        for node in sorted(n for n in program if n > before):
            if any(c in moved for c in self.operands(node)):
                moved[node] = self._replaced(node, moved)
        return moved

    def _replaced(self, node: Number, moved: Mapping[Number, Number]) -> Number:
        return self._node(self._nodes[node].over(lambda c: moved.get(c, c)))

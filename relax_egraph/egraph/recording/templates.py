"""Templates: the expressions of a rule over the values of one match.

A rewrite has them as its sides, ``(rewrite (R.add x (R.exp y)) (R.f x y))``; a rule as its body and
its actions, in which a name stands for an expression of the body:
``(rule ((= t (R.add x e)) (= e (R.exp y))) ((union t (R.f x y))))``.  Both have the same templates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Slot:
    """An expression with a value in each match, and its sort."""

    text: str
    sort: str


@dataclass(frozen=True, slots=True)
class Template:
    """An application of the operator `head`; a tuple of parts is a ``vec-of``."""

    head: str
    args: tuple["Part | tuple[Part, ...]", ...]


Part: TypeAlias = Slot | Template

RowTemplate: TypeAlias = "tuple[str, tuple[Part | tuple[Part, ...], ...]]"
"""A row of a relation or a function: its name, then its arguments and the value if it has one.

Arguments of sorts that rule files declare are left out.
"""


@dataclass(frozen=True, slots=True)
class RuleTemplates:
    """The templates of one direction of a rule.

    `body` are the premises of a match, with a name for every argument, and `lets` the bindings that
    its slots need.  A match makes both sides of each of `edges` equal and adds the nodes `created`;
    both sides of each of `premises` are equal before.  `reads` and `writes` are the rows that it
    reads and adds: of relations and functions that rule files declare, and of facts that rules add
    to or that follow from a union.
    """

    name: str
    body: str
    lets: str
    edges: tuple[tuple[Part, Part], ...]
    premises: tuple[tuple[Part, Part], ...]
    created: tuple[Template, ...]
    reads: tuple["RowTemplate", ...]
    writes: tuple["RowTemplate", ...]

    @property
    def slots(self) -> tuple[Slot, ...]:
        """All slots, without repetition."""
        return tuple(dict.fromkeys(slot for part in self._parts for slot in _slots(part)))

    @property
    def _parts(self) -> "Iterator[Part | tuple[Part, ...]]":
        for pair in (*self.edges, *self.premises):
            yield from pair
        yield from self.created
        for _, parts in (*self.reads, *self.writes):
            yield from parts


def _slots(part: Part | tuple[Part, ...]) -> Iterator[Slot]:
    match part:
        case Slot():
            yield part
        case Template(args=args) | args:
            for arg in args:
                yield from _slots(arg)

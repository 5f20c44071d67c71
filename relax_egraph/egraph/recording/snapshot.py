"""What is in an e-graph while the matches of rules are written down in it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, TypeAlias

from relax_egraph.egraph.bindings import FrozenRow, Value
from relax_egraph.egraph.encoding.constructors import NONE, constructors
from relax_egraph.egraph.node import Node, scalar_node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.recording.templates import Part, RuleTemplates, Slot, Template
from relax_egraph.egraph.rulebook.vocabulary import vocabulary_table
from relax_egraph.egraph.view import ClassId

Made: TypeAlias = Node["Key | Made"]
"""A node over classes, or over nodes like this: what a rule writes."""

Instance: TypeAlias = Key | Made | None
"""A value in a match: a class, an operator that the rule writes, or an operand that is left out."""


@dataclass(frozen=True, slots=True)
class Match:
    """One match of a rule: what it makes equal, left side first, and all that it makes.

    The two of each of `given` are equal by what was before: a premise of the match.  `reads` and
    `writes` are rows of relations and functions.
    """

    rule: str
    edges: tuple[tuple[Instance, Instance], ...]
    made: tuple[Instance, ...]
    given: tuple[tuple[Instance, Instance], ...] = ()
    reads: "tuple[Row, ...]" = ()
    writes: "tuple[Row, ...]" = ()


Row: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a relation or a function, and a row of it: tensors, vectors of them, plain values."""


CONSTANT = "const-from-value"
"""The rule of the ruleset ``facts`` that equates values."""


class Snapshot(Tables):
    """The database while a match is written down."""

    def classes(self, known: set[Key]) -> Iterator[tuple[Key, ClassId | Made]]:
        """The classes that are not `known`, which they are then."""
        for number, key in sorted(self.loaded.items()):
            if key not in known:
                known.add(key)
                yield key, number
        waiting = list(self._unknown(known))
        while waiting:
            later: list[tuple[Key, str, list[Value]]] = []
            for key, head, inputs in waiting:
                if key in known:
                    continue
                made = self._made(head, inputs)
                if all(c in known for c in made.operands):
                    known.add(key)
                    yield key, made
                else:
                    later.append((key, head, inputs))
            if len(later) == len(waiting):
                return
            waiting = later

    def _unknown(self, known: set[Key]) -> Iterator[tuple[Key, str, list[Value]]]:
        for head, constructor in constructors().items():
            result = constructor.result
            for row in self._new(head, lambda value, result=result: Key(result, value) in known):
                yield Key(result, row.output), head, row.inputs

    def equal_constants(self, known: set[Made]) -> Iterator[Match]:
        """What is equal to a constant by the rule `CONSTANT`.

        None of what is `known`, to which it is added.
        """
        for head in (head for head, c in constructors().items() if c.result == "Tensor"):
            for row in self._new(head, lambda value: value not in self._numbers):
                constant = self._number(row.output)
                # the class of an operand may be that of the result by now
                made = self._made(head, row.inputs).over(self._or_number)
                if made != constant and made not in known:
                    known.add(made)
                    read = ("const-scalar", (made, constant.scalar))
                    yield Match(CONSTANT, ((made, constant),), (constant,), reads=(read,))

    def _number(self, value: Value) -> Made:
        return scalar_node(self.scalars[value], self.dtype(value) or "")

    def _or_number(self, child: Key | Made) -> Key | Made:
        """An operand of a node, as the number that it is if it is one."""
        if isinstance(child, Key) and child.value in self._numbers:
            return self._number(child.value)
        return child

    @cached_property
    def _numbers(self) -> set[Value]:
        """The tensors of rank 0 that are known numbers."""
        return {value for value in self.scalars if self.rank(value) == 0}

    def _new(self, head: str, known: Callable[[Value], bool]) -> list[FrozenRow]:
        """The rows of a constructor, in order, but for those of classes that are `known`."""
        function = self._functions.get(head)
        rows = [row for row in function.rows if not known(row.output)] if function else []
        return sorted(rows, key=lambda row: (row.output, row.inputs))

    def matches(self, search: RuleTemplates, relation: str) -> Iterator[Match]:
        """The matches that were written down in a `relation`, by what `search` shows of a rule."""
        slots = search.slots
        for row in self.rows(relation):
            values = dict(zip(slots, row.inputs, strict=True))

            def part(of: Part | tuple[Part, ...], values: dict[Slot, Value] = values) -> Any:
                match of:
                    case Slot(sort=sort):
                        return self._value(sort, values[of])
                    case Template(head="unstable-app", args=(function, *args)):
                        head, bound = part(function)
                        return _instance(head, [*bound, *map(part, args)])
                    case Template(head=head, args=args):
                        return _instance(head, [part(arg) for arg in args])
                    case tuple():
                        return tuple(map(part, of))

            edges = tuple((part(a), part(b)) for a, b in search.edges)
            given = tuple((part(a), part(b)) for a, b in search.premises)
            made = tuple(map(part, search.created))
            reads, writes = (
                tuple((name, tuple(map(part, parts))) for name, parts in rows)
                for rows in (search.reads, search.writes)
            )
            yield Match(search.name, edges, made, given, reads, writes)

    def _made(self, head: str, inputs: Sequence[Value]) -> Made:
        args = [self._value(s, v) for s, v in zip(_sorts()[head], inputs, strict=True)]
        return constructors()[head].node(args)

    def _value(self, sort: str, value: Value) -> Any:
        match sort:
            case "Tensor" if value in self._none:
                return None
            case "Tensor" | "Kernel" | "Tuple":
                return Key(sort, value)
            case "Unary" | "Binary" | "Ternary" | "Reduction":
                head, bound = self._egraph.value_to_function(value)
                given = zip(_sorts()[head], bound, strict=False)
                return head, [self._value(s, v) for s, v in given]
            case "Dim":
                return self._dims[value]
            case _:
                return self.decode(sort, value)


@cache
def _sorts() -> Mapping[str, Sequence[str]]:
    """The sorts of what a name is applied to."""
    return {d.name: [p.sort for p in d.params] for d in vocabulary_table()}


def _instance(head: str, args: Sequence[Any]) -> Instance:
    """What rules write ``(head args..)``."""
    return None if head == NONE else constructors()[head].node(args)

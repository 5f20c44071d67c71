"""Snapshot of an e-graph in a recorded run: its new classes, and the matches of rules."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from relax_egraph.egraph.bindings import FrozenRow, Value
from relax_egraph.egraph.encoding.constructors import NONE, constructors
from relax_egraph.egraph.node import Node, scalar_node
from relax_egraph.egraph.readback.tables import Key, Tables
from relax_egraph.egraph.recording.templates import Part, RuleTemplates, Slot, Template
from relax_egraph.egraph.rulebook.vocabulary import vocabulary_table
from relax_egraph.egraph.view import ClassId
from relax_egraph.ir.operators import by_operators

Made: TypeAlias = Node["Key | Made"]
"""A node over classes, or over nodes like this: a term on the right side of a rule."""

Instance: TypeAlias = Key | Made | None
"""A value in a match: a class, a node that the rule adds, or an omitted operand."""


@dataclass(frozen=True, slots=True)
class Match:
    """One match of a rule: the `edges` that it unites, left side first, and the nodes `made`.

    Each pair in `given` is equal before the match, as a premise.  `reads` and `writes` are rows of
    relations and functions.
    """

    rule: str
    edges: tuple[tuple[Instance, Instance], ...]
    made: tuple[Instance, ...]
    given: tuple[tuple[Instance, Instance], ...] = ()
    reads: "tuple[Row, ...]" = ()
    writes: "tuple[Row, ...]" = ()


Row: TypeAlias = tuple[str, tuple[Any, ...]]
"""The name of a table, and a row: tensors, vectors of them, plain values."""


CONSTANT = "const-from-value"
"""The rule of the ruleset ``facts`` that equates values."""


class Snapshot(Tables):
    """The tables of an e-graph at one moment of a recorded run."""

    def classes(self, known: set[Key]) -> Iterator[tuple[Key, ClassId | Made]]:
        """The classes that are not in `known`, each with its value or a node; adds them to it."""
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
                node = self._node(head, inputs)
                if all(c in known for c in node.operands):
                    known.add(key)
                    yield key, node
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
        """Matches of the rule `CONSTANT`: nodes that equal a constant, and are not in `known`.

        Adds the nodes to `known`.
        """
        for head in (head for head, c in constructors().items() if c.result == "Tensor"):
            for row in self._new(head, lambda value: value not in self._numbers):
                constant = self._number(row.output)
                # the class of an operand may be that of the result by now
                node = self._node(head, row.inputs).over(self._or_number)
                if node != constant and node not in known:
                    known.add(node)
                    read = ("const-scalar", (node, constant.scalar))
                    yield Match(CONSTANT, ((node, constant),), (constant,), reads=(read,))

    def _number(self, value: Value) -> Made:
        return scalar_node(self.scalars[value], self.dtype(value) or "")

    def _or_number(self, child: Key | Made) -> Key | Made:
        """`child`, as a scalar node if it is a known number."""
        if isinstance(child, Key) and child.value in self._numbers:
            return self._number(child.value)
        return child

    @cached_property
    def _numbers(self) -> set[Value]:
        """The tensors of rank 0 that are known numbers."""
        return {value for value in self.scalars if self.rank(value) == 0}

    def _new(self, head: str, known: Callable[[Value], bool]) -> list[FrozenRow]:
        """The rows of a constructor whose classes are not `known`, in order."""
        function = self._functions.get(head)
        rows = [row for row in function.rows if not known(row.output)] if function else []
        return sorted(rows, key=lambda row: (row.output, row.inputs))

    def matches(self, search: RuleTemplates, relation: str) -> Iterator[Match]:
        """The matches in the rows of `relation`, from the templates of a rule."""
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
            premises = tuple((part(a), part(b)) for a, b in search.premises)
            created = tuple(map(part, search.created))
            reads, writes = (
                tuple((name, tuple(map(part, parts))) for name, parts in rows)
                for rows in (search.reads, search.writes)
            )
            yield Match(search.name, edges, created, premises, reads, writes)

    def _node(self, head: str, inputs: Sequence[Value]) -> Made:
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
                pairs = zip(_sorts()[head], bound, strict=False)
                return head, [self._value(s, v) for s, v in pairs]
            case "Dim":
                return self._dims[value]
            case _:
                return self.decode(sort, value)


@by_operators(64)
def _sorts() -> Mapping[str, Sequence[str]]:
    """The sorts of the arguments of each name."""
    return {d.name: [p.sort for p in d.params] for d in vocabulary_table()}


def _instance(head: str, args: Sequence[Any]) -> Instance:
    """The node of ``(head args..)``; ``None`` for an omitted operand."""
    return None if head == NONE else constructors()[head].node(args)

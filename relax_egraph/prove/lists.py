"""Lists of tensors: how many there are, and which ranks and dtypes each may have."""

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, atoms, forms_in, is_literal
from relax_egraph.ir.op import Op
from relax_egraph.prove.beside import Alike, Beside
from relax_egraph.prove.bindings import Unbound, is_term, text_of
from relax_egraph.prove.nodes import Value
from relax_egraph.prove.operands import Operands

MOST_PARTS = 3
"""The most tensors in a list of unknown length, of which no place beyond the second is named."""

_JOIN = Alike(rank=True, dtype=True)
_FLAT_JOIN = Alike(rank=False, dtype=True)
_ALIKE: Mapping[str, Alike] = {"concat": _JOIN, "stack": _JOIN, "einsum": _FLAT_JOIN}
"""What the tensors of a list have in common; of other operators, nothing."""


@dataclass
class Lists(Operands, ABC):
    """Lists of tensors, as operands of joins and of other operators."""

    def tensors(self, item: Tree, op: Op, attributes: Sequence[Tree]) -> tuple[Value, ...]:
        """A list of tensors, the operand of `op`; one of unknown length has several lengths."""
        if isinstance(item, Form) and item.head == "vec-of":
            return self.parts(item.items[1:], op, attributes)
        try:
            return self.value(item)
        except Unbound:
            if not isinstance(item, Atom):
                raise
        count = self.choices.of(f"length of {item.text}", self.lengths_of(item.text))
        self.lengths[item.text] = count
        elements = [self.element(item.text, k) for k in range(count)]
        self.values[item.text] = self.parts(elements, op, attributes)
        return self.values[item.text]

    def lengths_of(self, name: str) -> Sequence[int]:
        """The length that a fact says a list has, or some, one beyond all places that are named."""
        places = [-1]
        for form in (f for tree in (*self.facts, *self.made) for f in forms_in(tree)):
            match form:
                case Form(items=(Atom(text="="), Atom(text=text), Form() as other)) if (
                    text_of(other) == f"(vec-length {name})" and text.isdecimal()
                ):
                    return (int(text),)
                case Form(items=(Atom(text="vec-get"), Atom(text=text), Atom(text=place))) if (
                    text == name and place.isdecimal()
                ):
                    places.append(int(place))
                case _:
                    pass
        return range(1, max(MOST_PARTS, max(places) + 2) + 1)

    def element(self, name: str, place: int) -> Tree:
        """A tensor in a list: the term that a fact says it is, or an operand of the rule."""
        for fact in self.facts:
            if not isinstance(fact, Form) or fact.head != "=":
                continue
            for a, b in ((fact.items[1], fact.items[2]), (fact.items[2], fact.items[1])):
                if not isinstance(b, Form) or b.head != "vec-get" or text_of(b.items[1]) != name:
                    continue
                if isinstance(a, Atom) and self.place(b.items[2]) == place:
                    self.like(_of_list(name, place), a.text)
                made = is_term(a) or (
                    isinstance(a, Atom)
                    and a.text in self.defined
                    and is_term(self.defined[a.text][0])
                )
                if made and self.place(b.items[2]) == place:
                    return a
        return Atom(_of_list(name, place), 0)

    def like(self, name: str, other: str) -> None:
        """Note of one name of an operand what is known of the other."""
        if other in self.limits:
            self.limits[name] = self.limits[other]
        if other in self.scalars:
            self.scalars[name] = self.scalars[other]

    def place(self, tree: Tree) -> Any:
        """The value of a place in a list, if it has one yet."""
        try:
            return self.value(tree)
        except Unbound:
            return None

    def parts(self, items: Sequence[Tree], op: Op, attributes: Sequence[Tree]) -> tuple[Value, ...]:
        """The tensors in a list."""
        alike = _ALIKE.get(op.name, Alike(rank=False, dtype=False))
        if op.name == "concat" and len(items) > 1 and self.is_flat(attributes[0]):
            alike = _FLAT_JOIN
        values: list[Value] = []
        for item in items:
            values.append(self.operand(item, Beside(op, values, len(values), True, alike=alike)))
        return tuple(values)

    def is_flat(self, axis: Tree) -> bool:
        """Whether tensors, which may differ in rank then, are or may be joined without an axis."""
        if not isinstance(axis, Atom) or is_literal(axis.text) or axis.text in self.values:
            return self.place(axis) in (None, -1)
        if not self.choices.of(f"{axis.text} is no axis", (False, True)):
            return False
        self.bind(axis.text, -1)
        for fact in self.facts:
            names = [a.text for a in atoms(fact) if not is_literal(a.text)]
            if isinstance(fact, Form) and fact.head in _COMPARISONS and set(names) == {axis.text}:
                self.compared(fact.head, *map(self.value, fact.items[1:]))
        return True


def _of_list(name: str, place: int) -> str:
    """The name of a tensor in a list; a variable of a rule has no space in its name."""
    return f"{name} #{place}"


_COMPARISONS = frozenset(("<", "<=", ">", ">=", "!="))

"""Stated meanings: what the rows of a relation say, in terms of operators.

    ; (times-number y x c): y = x · c, c one finite number
    (relation times-number (Tensor Tensor f64))
    (meaning (times-number y x c)
      ((= y (R.multiply x (R.broadcast_to (R.const c d) s))) (= d (dtype-of x))
       (= s (shape-of x)) (< -inf c) (< c inf)))

Where the row is, the facts hold; of several lists of facts, those of one.  Runs do without
meanings: a proof of a rule that reads the relation assumes its meaning, after it is shown for each
rule that adds a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, form_of, heads, written
from relax_egraph.egraph.rulebook.rule import Row


@dataclass(frozen=True, slots=True, eq=False)
class Meaning:
    """What a `row` says, whose arguments are variables: the facts of one of the `ways` hold."""

    row: Row
    ways: tuple[tuple[Tree, ...], ...]

    def named(self, args: Sequence[Tree], value: Tree | None) -> dict[str, Tree] | None:
        """Terms for the variables of the row in one with `args`; ``None`` if it has others."""
        names: dict[str, Tree] = {}
        pairs = [*zip(self.row.args, args, strict=True)]
        if self.row.value is not None and value is not None:
            pairs.append((self.row.value, value))
        return names if all(_name(ours, theirs, names) for ours, theirs in pairs) else None

    @property
    def text(self) -> str:
        """The row and the ways, as they are written."""
        row = form_of(self.row.head, *self.row.args)
        stated = row if self.row.value is None else form_of("=", self.row.value, row)
        ways = (f"({' '.join(map(written, way))})" for way in self.ways)
        return f"(meaning {written(stated)} {' '.join(ways)})"

    @property
    def reads(self) -> Iterator[str]:
        """The heads of all forms in the facts."""
        return (head for way in self.ways for fact in way for head in heads(fact))

    @property
    def constructors(self) -> frozenset[str]:
        """The constructors that take the row apart."""
        trees = (*self.row.args, *filter(None, (self.row.value,)))
        return frozenset(head for tree in trees for head in heads(tree))


def _name(ours: Tree, theirs: Tree, names: dict[str, Tree]) -> bool:
    if isinstance(ours, Atom):
        names[ours.text] = theirs
        return True
    if not isinstance(theirs, Form) or theirs.head != ours.head:
        return False
    pairs = zip(ours.items[1:], theirs.items[1:], strict=True)
    return all(_name(a, b, names) for a, b in pairs)

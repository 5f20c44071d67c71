"""General instances of a rule: every rank and attribute, with symbols for extents and numbers.

The facts of a rule are followed in the order in which they can be; what they leave open is chosen,
each way once.  Nothing that is chosen is more special than the rule, except for the ranks, of which
there are finitely many.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, atoms, forms_in, is_literal
from relax_egraph.egraph.rulebook.generate import APPLICATIONS
from relax_egraph.egraph.rulebook.vocabulary import operators
from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove import reals, sums
from relax_egraph.prove.attributes import Open
from relax_egraph.prove.bindings import Unbound, text_of, with_lists
from relax_egraph.prove.choices import Impossible
from relax_egraph.prove.contradictions import is_false
from relax_egraph.prove.nodes import Value, dtype_of
from relax_egraph.prove.primitives import contains
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.terms import OF_TENSORS, Terms
from relax_egraph.prove.typing import IllFormed
from relax_egraph.prove.unfolding import BUILT, ROUNDED


@dataclass
class Matching(Terms):
    """One run over the facts of a rule."""

    def run(self) -> None:
        """Follow all facts."""
        self.define()
        self.choices.contradictory = self.is_contradictory
        self.waits = True  # an operand is made beside others, where that says more of it
        todo = sorted(self.facts, key=lambda f: isinstance(f, Form) and f.head == BUILT)
        while todo:
            left: list[Tree] = []
            for fact in todo:
                if left and isinstance(fact, Form) and fact.head == BUILT:
                    left.append(fact)
                    continue
                try:
                    self.fact(fact)
                except Unbound:
                    left.append(fact)
            if len(left) == len(todo):
                self.guess(left)
            todo = left
        self.waits = False

    def is_contradictory(self) -> bool:
        """Whether a premise is false of the values so far."""
        return any(is_false(fact, self.values) for fact in self.facts)

    def fact(self, fact: Tree) -> None:
        """Follow one fact; raises `Unbound` if it cannot be yet, `Impossible` if it is false."""
        assert isinstance(fact, Form)
        match fact.head:
            case "=" if any(isinstance(i, Form) and i.head == "Leaf" for i in fact.items):
                pass
            case "=" if name := self.of_any_tensor(fact):
                if name not in self.values:
                    self.bind(name, self.unknown_number(name))
            case head if head == ROUNDED and isinstance(fact.items[1], Atom):
                self.rounded_number(fact.items[1].text)
            case "=" | "built=":
                self.equation(fact.items[1], fact.items[2], fact.head == "=")
            case head if head in APPLICATIONS:
                self.bind_result(fact.items[1], self.value(fact))
            case "is-float":
                if not is_float(dtype_of(self.value(fact.items[1]))):
                    raise Impossible
            case "dim-equal":
                self.extents.equate(*self.several(fact.items[1:]))
            case "dim-ge":
                self.extents.at_least(*self.several(fact.items[1:]))
            case "dim-divides":
                divisor, size = self.several(fact.items[1:])
                if divisor == 0:
                    raise Impossible  # nothing is a multiple of it
                self.extents.divides(divisor, size)
            case "is-number":
                if self.is_unmade(fact.items[1]):
                    raise Unbound(fact.head)
                self.operand(fact.items[1])
            case "is-nonnegative":
                self.bounds.append(reals.Bound(self.value(fact.items[1]), ">=", sums.NOTHING))
            case "has-reciprocal":
                self.bounds.append(reals.Bound(self.value(fact.items[1]), "!=", sums.NOTHING))
            case "or":
                raise IllFormed("an alternative among premises")
            case head if head in ("<", "<=", ">", ">=", "!="):
                self.compared(head, *self.several(fact.items[1:]))
            case "vec-not-contains" | "vec-contains":
                found = contains(*self.several(fact.items[1:]))
                if found is not None and found != (fact.head == "vec-contains"):
                    raise Impossible
            case "not" | "and":
                if (value := self.value(fact)) is False:
                    raise Impossible
                if value is not True:
                    raise IllFormed(f"whether {text_of(fact)} is true is not known")
            case head:
                raise IllFormed(f"nothing is known of {head}")

    def of_any_tensor(self, fact: Form) -> str:
        """The variable that a fact says is the number of a tensor of which nothing else is said."""
        match fact.items[1:]:
            case (Atom(text=name), Form(items=(Atom(text="const-scalar"), Atom(text=tensor)))):
                terms = (*self.facts, *self.made)
                uses = sum(a.text == tensor for t in terms for a in atoms(t))
                return name if uses == 1 and not is_literal(name) else ""
            case _:
                return ""

    def rounded_number(self, name: str) -> None:
        """A variable that is a number, of which the engine may have a rounded one."""
        if name not in self.values:
            self.bind(name, self.unknown_number(name))
        number = self.values[name]
        if isinstance(number, Sum) and reals.as_float(number) is None:
            self.rounded[number.key] = self.rounded.get(number.key, reals.INFINITE) & reals.INFINITE

    def equation(self, a: Tree, b: Tree, assumed: bool) -> None:
        """Follow an equation, whose terms are well-typed, or have to be."""
        before, self.assumed = self.assumed, assumed
        try:
            if self.pattern(a, b) or self.pattern(b, a):
                return
            self.unify(self.value(a), self.value(b))
        finally:
            self.assumed = before

    def pattern(self, a: Tree, b: Tree) -> bool:
        """Bind the variable, or the variables in a list, `a` to the value of `b`."""
        if isinstance(a, Atom) and not is_literal(a.text):
            if a.text in self.values:
                return False
            if a.text in self.defined and self.defined[a.text][0] is not b:
                return False
            self.bind(a.text, self.uniform(a.text, self.value(b)))
            return True
        return False

    def bind_result(self, result: Tree, value: Value) -> None:
        """Give the result of an application its value."""
        if isinstance(result, Atom) and result.text not in self.values:
            self.bind(result.text, self.uniform(result.text, value))
        else:
            self.unify(self.value(result), value)

    def guess(self, facts: Sequence[Tree]) -> None:
        """Give a value to a variable that no fact gives one, or give up."""
        for fact in facts:
            for form in with_lists(fact):
                if self.is_open(form.items[1]):
                    op = operators()[form.head[2:]].op
                    self.tensors(form.items[1], op, form.items[2:])
                    return
        for fact in facts:
            for form in forms_in(fact):
                for item in form.items[1:2]:
                    if form.head in _OF_TENSORS and self.is_open(item):
                        self.operand(item)
                        return
        if not self.guess_attribute(facts) and not self.guess_permutation(facts):
            raise Open("what its premises leave open is nowhere an attribute")

    def guess_permutation(self, facts: Sequence[Tree]) -> bool:
        """Choose a vector of which a function has a value only if it is a permutation."""
        for form in (f for fact in facts for f in forms_in(fact) if f.head == "inverse-of"):
            (item,) = form.items[1:]
            if isinstance(item, Atom) and self.is_open(item):
                ranks = range(self.search.ranks + 1)
                every = [p for rank in ranks for p in permutations(range(rank))]
                permutation = self.choices.of(f"permutation {item.text}", every)
                self.most_axes = max(self.most_axes, len(permutation))
                self.bind(item.text, permutation)
                return True
        return False

    def guess_attribute(self, facts: Sequence[Tree]) -> bool:
        """Choose an attribute of an operator whose operands are known, if there is one."""
        for form in (f for fact in facts for f in forms_in(fact)):
            if not form.head.startswith("R.") or form.head[2:] not in operators():
                continue
            op = operators()[form.head[2:]].op
            count = len(op.operands)
            for attr, item in zip(op.attrs, form.items[1 + count :], strict=False):
                if self.is_open(item):
                    operands = [self.operand(o) for o in form.items[1 : 1 + count]]
                    self.attribute(op, attr, item, operands)
                    return True
        return False


_OF_TENSORS = OF_TENSORS | {"is-float", "is-number"}

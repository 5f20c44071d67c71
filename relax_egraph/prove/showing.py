"""Facts that are shown of a general instance, which assumes nothing more for it."""

from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, form_of, variables, written
from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove import finite, reals, specials
from relax_egraph.prove.attributes import Open
from relax_egraph.prove.bindings import Function, Unbound, is_term
from relax_egraph.prove.choices import Impossible
from relax_egraph.prove.comparison import MOST_CASES, Comparing, NotProven
from relax_egraph.prove.conditions import COMPARISONS, Nonnegative, Zero
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.extents import Again
from relax_egraph.prove.layouts import AnyOrder
from relax_egraph.prove.matching import Matching
from relax_egraph.prove.nodes import Value
from relax_egraph.prove.polynomial import of_dim, variable
from relax_egraph.prove.reading import Undecided
from relax_egraph.prove.sums import Applied, Sum, axes_of, factors_in
from relax_egraph.prove.tensors import Tensor


class Showing:
    """Shows facts of the instance of `matching`; `rounded` are numbers in columns of the row."""

    def __init__(self, matching: Matching, comparing: Comparing) -> None:
        self.matching = matching
        self.comparing = comparing
        self.required = 0
        self.before = self.assumed()
        self.rounded = set[str]()

    def every(self, facts: Sequence[Tree], columns: Mapping[str, Tree]) -> None:
        """Raise `NotProven` unless all `facts` are shown.

        What else they name is what an equation says it is.  The tensors among `columns` that no
        equation makes are operands of who reads them: finite where operands are, as those of rules.
        """
        try:
            for name, tree in columns.items():
                self.column(name, self.matching.right(tree))
                self.well_typed()
            for fact in self.ordered(facts):
                self.fact(fact)
                self.well_typed()
            if not self.comparing.exact:
                self.finite(facts, columns)
        except (Again, Impossible, Unbound, Open, Undecided) as problem:
            raise NotProven(f"it is not shown: {type(problem).__name__} {problem}") from None
        if self.assumed() != self.before:
            raise NotProven("to show it takes an assumption")

    def column(self, name: str, value: Any) -> None:
        """Raise `NotProven` if a number is rounded, but for one step from exact numbers.

        Then it is finite only if the number that it is rounded from is.
        """
        limits = self.matching.rounded.get(value.key) if isinstance(value, Sum) else None
        if limits is not None and not limits >= reals.INFINITE:
            raise NotProven(f"{name} is computed of rounded numbers")
        if limits is not None:
            self.rounded.add(value.key)

    def assumed(self) -> tuple[object, ...]:
        """All that the instance assumes, of facts that were not shown as well."""
        m = self.matching
        conditions = tuple(c.key for c in m.extents.conditions)
        return conditions, len(m.numbers), len(m.bounds), tuple(m.choices.made.items())

    def well_typed(self) -> None:
        """Raise `NotProven` unless the terms that were made are well-typed."""
        needed = self.matching.typing.needed
        for where, condition in needed[self.required :]:
            self.comparing.require(where, condition)
        self.required = len(needed)

    def ordered(self, facts: Sequence[Tree]) -> list[Form]:
        """`facts`, those first that say what a variable is."""
        left = [f for f in facts if isinstance(f, Form)]
        known, first = set(self.matching.values), list[Form]()
        while found := next((f for f in left if self.said(f, known)), None):
            left.remove(found)
            first.append(found)
            known |= variables([found])
        for name in sorted(variables(left) - known):
            raise NotProven(f"nothing says what {name} is")
        return [*first, *left]

    def said(self, fact: Form, known: set[str]) -> Tree | None:
        """The variable that an equation of what is `known` makes known."""
        if fact.head != "=":
            return None
        for one, other in (fact.items[1:], fact.items[:0:-1]):
            if isinstance(one, Atom) and variables([one]) - known and variables([other]) <= known:
                return one
        return None

    def fact(self, fact: Form) -> None:
        """Raise `NotProven` unless a fact is shown."""
        m = self.matching
        name = self.said(fact, set(m.values))
        match fact.head, fact.items[1:]:
            case "=", (a, b) if isinstance(name, Atom):
                m.bind(name.text, self.value(b if name is a else a))
            case "=", (a, b):
                self.equal(self.value(a), self.value(b), fact)
            case "is-float", (a,):
                self.holds(is_float(m.value(form_of("dtype-of", a))), fact)
            case "dim-equal", (a, b):
                self.equal(m.value(a), m.value(b), fact)
            case "dim-ge", (a, b):
                self.comparing.require(
                    written(fact), Nonnegative(of_dim(m.value(a)) - of_dim(m.value(b)))
                )
            case (("<" | "<=" | ">" | ">=" | "!=") as head, (a, b)):
                self.compared(head, m.value(a), m.value(b), fact)
            case (("vec-contains" | "vec-not-contains"), _):
                self.holds(m.value(fact) is True, fact)
            case _:
                raise NotProven(f"how to show {fact.head} is not known")

    def value(self, tree: Tree) -> Any:
        """The value of a term; the number of a tensor is computed from its elements."""
        if not isinstance(tree, Form) or tree.head != "const-scalar":
            return self.matching.right(tree)
        tensor = self.comparing.readers[0].of(self.matching.value(tree.items[1]))
        number = tensor.at([variable(a) for a in axes_of(tensor.extents)])
        if not all(isinstance(f, Applied) for f in factors_in(number)):
            raise NotProven(f"that {written(tree.items[1])} is one number does not follow")
        return number

    def holds(self, known: bool, fact: Form) -> None:
        """Raise `NotProven` unless a fact is `known` to hold."""
        if not known:
            raise NotProven(f"that {written(fact)} does not follow")

    def equal(self, a: Any, b: Any, fact: Form) -> None:
        """Raise `NotProven` unless two values are equal."""
        match a, b:
            case tuple(), tuple():
                self.holds(len(a) == len(b), fact)
                for x, y in zip(a, b, strict=True):
                    self.equal(x, y, fact)
            case (Function(), _) | (_, Function()):
                self.holds(isinstance(b, Function) and a.key == b.key, fact)
            case _ if isinstance(a, Value) and isinstance(b, Value):
                self.comparing.compare(a, b)
            case _ if isinstance(a, Value) or isinstance(b, Value):
                raise NotProven(f"whether {written(fact)} is not decided")
            case (Sum() | float(), _) | (_, Sum() | float()):
                x, y = reals.number(a), reals.number(b)
                exact = self.matching.holds_exactly(reals.Comparison("=", x, y))
                self.holds(exact and Equality(self.comparing.solver, []).sums(x, y), fact)
            case (bool() | str() | None, _) | (_, bool() | str() | None):
                self.holds(type(a) is type(b) and a == b, fact)
            case _:
                self.comparing.require(written(fact), Zero(of_dim(a) - of_dim(b)))

    def compared(self, head: str, a: Any, b: Any, fact: Form) -> None:
        """Raise `NotProven` unless a comparison holds."""
        if isinstance(a, Sum | float) or isinstance(b, Sum | float):
            c = reals.Comparison(head, reals.number(a), reals.number(b))
            below, above = (reals.as_float(x) for x in (c.a, c.b))
            known = c.decided is True or c in self.matching.numbers
            if head == "<" and (below == -inf or above == inf):
                other = c.b if below == -inf else c.a
                if other.key not in self.rounded:  # a rounded number may be infinite
                    known = known or finite.is_number(other, self.matching.numbers)
            self.holds(known and self.matching.holds_exactly(c), fact)
        elif any(isinstance(x, str | bool | tuple) for x in (a, b)):
            texts = all(isinstance(x, str) and not isinstance(x, AnyOrder) for x in (a, b))
            self.holds(head == "!=" and texts and a != b, fact)
        else:
            self.comparing.require(written(fact), COMPARISONS[head](of_dim(a), of_dim(b)))

    # ------------------------------------------------------------------------------ finite columns

    def finite(self, facts: Sequence[Tree], columns: Mapping[str, Tree]) -> None:
        """Raise `NotProven` unless the tensors that no fact makes are finite or NaN.

        A reader is not told that a tensor is made of itself (`arranging`).
        """
        made = {
            written(a)
            for fact in facts
            if isinstance(fact, Form) and fact.head == "="
            for a, b in (fact.items[1:], fact.items[:0:-1])
            if is_term(b) and variables([a]).isdisjoint(variables([b]))
        }
        for name, tree in columns.items():
            if written(tree) not in made:
                value = self.matching.right(tree)
                for v in value if isinstance(value, tuple) else (value,):
                    if isinstance(v, Value):
                        self.finite_or_nan(name, v)

    def finite_or_nan(self, name: str, value: Value) -> None:
        """Raise `NotProven` unless all elements of `value` are finite or NaN."""
        matching, comparing = self.matching, self.comparing
        tensor = comparing.written.of(value)
        axes = axes_of(tensor.extents)
        inside = [c for a in axes for c in (Nonnegative(a.extent - 1), Nonnegative(variable(a)))]

        def check(_: Tensor, a: Sum, __: Sum) -> None:
            assumed = specials.Assumptions(
                matching.numbers,
                comparing.bounds(),
                True,
                Equality(comparing.solver, []).factors,
            )
            if not finite.is_finite(a, assumed):
                raise NotProven(f"that {name} is finite does not follow")

        index = [variable(a) for a in axes]
        comparing.cases(tensor, tensor.at, tensor.at, index, inside, MOST_CASES, check)

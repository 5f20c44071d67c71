"""Ways in which premises are deduced of which no general instance was found.

Instances have operands of few axes, and lists of few tensors: that there is none of these does not
say that there is none.  So nothing is proven of such a way, unless its premises contradict each
other by themselves.  Of these, only their equations are read, what they say of whole numbers, and
how many items vectors have: no operator, and no bound on what is tried.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from operator import add, ge, gt, le, lt, mul, sub
from typing import Any, TypeAlias

from relax_egraph.egraph.rulebook.forms import Form, Tree, forms_in, sort_of_literal
from relax_egraph.prove.instances import NONE
from relax_egraph.prove.questions import ask, z3
from relax_egraph.prove.solver import EFFORT
from relax_egraph.prove.unfolding import BUILT, Unfolded
from relax_egraph.verify.instances.query import literal_of

Found: TypeAlias = dict[tuple[str, Unfolded], int]
"""The number of instances, by the name of a direction and the way in which its premises hold."""


def missing(found: Mapping[tuple[str, Unfolded], int]) -> str:
    """Of which way there is no instance, though there may be one; empty if there is no such way."""
    for (name, way), count in found.items():
        if not count and not contradict(way.facts):
            by = dict.fromkeys((*way.rules, *(f"the meaning of {m}" for m in way.meanings)))
            return f"{NONE} of {name}" + (f" by {' and '.join(by)}" if by else "")
    return ""


@lru_cache(1 << 8)
def contradict(facts: tuple[Tree, ...]) -> bool:
    """Whether it is proven that not all of `facts` hold, whatever the values are."""
    values = _Values()
    forms = [form for fact in facts for form in forms_in(fact)]
    most = max((len(f.items) - 1 for f in forms if f.head == "vec-of"), default=0)
    terms = [*(t for fact in facts for t in values.fact(fact))]
    terms += [t for form in forms for t in values.known(form, most)]
    return ask((*terms, *values.of_literals()), EFFORT) == "impossible"


_COMPARED: Mapping[str, Callable[[Any, Any], Any]] = {"<": lt, "<=": le, ">": gt, ">=": ge}

_COMPUTED: Mapping[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul}
"""Functions of whole numbers; of other values, `_Values.number` may be any that agree with them."""


def _is_whole(tree: Tree) -> bool:
    """Whether a term shows that it is a whole number."""
    if isinstance(tree, Form):
        return tree.head in ("rank-of", "vec-length")
    return sort_of_literal(tree.text) == "i64"


@dataclass
class _Values:
    """Terms of z3: one sort has all values, of which some have a whole number."""

    sort: Any = field(default_factory=lambda: z3().DeclareSort("value"))
    literals: dict[str, tuple[Any, int | None]] = field(
        default_factory=dict[str, tuple[Any, int | None]]
    )

    def fact(self, fact: Tree) -> Iterator[Any]:
        """What an equation, or a comparison of whole numbers, says."""
        if not isinstance(fact, Form):
            return
        first, *others = fact.items[1:] or (None,)
        if fact.head in ("=", BUILT) and first is not None:
            yield from (self.value(first) == self.value(other) for other in others)
        elif fact.head in _COMPARED and any(map(_is_whole, fact.items[1:])):
            a, b = (self.number(self.value(item)) for item in fact.items[1:])
            yield _COMPARED[fact.head](a, b)

    def value(self, tree: Tree) -> Any:
        """The value of a term: equal terms have one."""
        if isinstance(tree, Form):
            items = tree.items[1:] if tree.head else tree.items
            return self.applied(tree.head, *map(self.value, items))
        literal = literal_of(tree.text)
        if literal is None:
            return z3().Const(f"of {tree.text}", self.sort)
        return self.literal(literal.value)

    def applied(self, head: str, *args: Any) -> Any:
        """The value of a function."""
        name = f"{head} of {len(args)}"
        return z3().Function(name, *(self.sort for _ in args), self.sort)(*args)

    def literal(self, value: Any) -> Any:
        """The value of a literal; both zeros have one."""
        key = f"{type(value).__name__} {value or type(value)()}"
        whole = value if type(value) is int else None
        return self.literals.setdefault(key, (z3().Const(f"as {key}", self.sort), whole))[0]

    def known(self, form: Form, most: int) -> Iterator[Any]:
        """What is known of a function: of a vector, of `most` items at least."""
        of = self.value(form)
        match form.head, [*map(self.value, form.items[1:])]:
            case "rank-of" | "vec-length", [_]:
                yield self.number(of) >= 0
            case ("+" | "-" | "*") as head, [a, b]:
                yield self.number(of) == _COMPUTED[head](self.number(a), self.number(b))
            case "vec-of", items:
                yield self.applied("vec-length", of) == self.literal(len(items))
                yield from (self.item(of, k) == item for k, item in enumerate(items))
            case "vec-range", [a]:
                count = self.number(a)
                length = self.number(self.applied("vec-length", of))
                yield z3().Implies(count >= 0, length == count)
                for k in range(most):
                    yield z3().Implies(k < count, self.item(of, k) == self.literal(k))
            case _:
                pass

    def item(self, vector: Any, place: int) -> Any:
        """The item of a vector."""
        return self.applied("vec-get", vector, self.literal(place))

    def number(self, value: Any) -> Any:
        """The whole number that a value is, or any other of one that is none."""
        return z3().Function("number", self.sort, z3().IntSort())(value)

    def of_literals(self) -> Iterator[Any]:
        """That literals are different values, and which numbers they are."""
        if self.literals:
            yield z3().Distinct(*(value for value, _ in self.literals.values()))
        yield from (
            self.number(value) == whole
            for value, whole in self.literals.values()
            if whole is not None
        )

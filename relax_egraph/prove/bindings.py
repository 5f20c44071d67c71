"""The variables of a rule: what is known of them, and what is assumed to be equal."""

from abc import ABC, abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from relax_egraph.egraph.rulebook.forms import Atom, Form, Tree, forms_in, is_literal, written
from relax_egraph.egraph.rulebook.generate import APPLICATIONS
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.prove import reals
from relax_egraph.prove.beside import Beside
from relax_egraph.prove.choices import Choices, Impossible
from relax_egraph.prove.dtypes import Dtypes
from relax_egraph.prove.effort import Named, Pass, Seen
from relax_egraph.prove.extents import Extents
from relax_egraph.prove.layouts import may_be_one
from relax_egraph.prove.nodes import (
    Leaf,
    Result,
    Value,
    key_of,
    shape_of,
)
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.typing import IllFormed, Typing
from relax_egraph.prove.unfolding import BUILT
from relax_egraph.verify.instances.primitives import PRIMITIVES
from relax_egraph.verify.instances.query import literal_of


class Unbound(Exception):
    """A variable has no value yet."""


@dataclass(frozen=True)
class Function:
    """A function that a rule applies: an operator, or any elementwise one, or any reduction."""

    kind: str
    op: Op | None
    name: str

    @property
    def key(self) -> str:
        """Equal functions have one text."""
        return self.name


@dataclass
class Bindings(ABC):
    """One run over the `facts` of a rule, and the terms that it has `made` then.

    `dtypes` are those that operands may have, and `forms` what a value is as well, by its text.
    `rounded` are the numbers that the engine rounds, by their texts, with those that each is
    compared with as if it were exact.
    It `is_partial` if a premise is left out: what holds then holds with it.
    """

    facts: Sequence[Tree]
    made: Sequence[Tree]
    choices: Choices
    extents: Extents
    typing: Typing
    dtypes: Dtypes
    search: Pass
    numbers: list[reals.Comparison]
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    defined: dict[str, tuple[Form, bool]] = field(default_factory=dict[str, tuple[Form, bool]])
    scalars: dict[str, Tree] = field(default_factory=dict[str, Tree])
    bounds: list[reals.Bound] = field(default_factory=list[reals.Bound])
    limits: dict[str, tuple[Sequence[int], Sequence[str]]] = field(
        default_factory=dict[str, tuple[Sequence[int], Sequence[str]]]
    )
    assumed: bool = True
    on_right: bool = False
    expected: tuple[dims.Dim, ...] | None = None
    around: Beside | None = None
    lengths: dict[str, int] = field(default_factory=dict[str, int])
    making: list[str] = field(default_factory=list[str])
    asked: dict[str, tuple[Any, ...]] = field(default_factory=dict[str, tuple[Any, ...]])
    waits: bool = False
    forms: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    most_axes: int = 0
    named: set[Named] = field(default_factory=set[Named])
    rounded: dict[str, Set[float]] = field(default_factory=dict[str, Set[float]])
    is_partial: bool = False

    @abstractmethod
    def value(self, tree: Tree) -> Any:
        """The value of a term; raises `Unbound`."""

    @abstractmethod
    def variable(self, name: str) -> Any:
        """The value of a variable; raises `Unbound`."""

    @property
    def seen(self) -> Seen:
        """The dtypes of all instances of these facts."""
        return self.search.seen_of(self.facts)

    def only(self, name: str, dtypes: Sequence[str]) -> Sequence[str]:
        """Those of the `dtypes` of what has a name that are asked for."""
        asked = self.search.only
        return dtypes if asked is None or asked[0] != name else [d for d in dtypes if d in asked[1]]

    def leave_out(self, name: str, dtype: str) -> bool:
        """Whether what has a name is to have this dtype with few axes only."""
        if self.search.only is not None:
            return (name, dtype) in self.seen.had
        self.seen.left_out.add((name, dtype))
        return True

    def options(self, fact: Form) -> None:
        """Note which ranks and dtypes a fact leaves to an operand."""
        match fact:
            case Form(items=(Atom(text="is-float"), Atom(text=name))):
                self.limit(name, dtypes=[d for d in self.dtypes.every if is_float(d)])
            case Form(
                items=(
                    Atom(text="="),
                    Atom(text=text),
                    Form(items=(Atom(text=of), Atom(text=name))),
                )
            ):
                literal = literal_of(text)
                if literal is not None and of == "rank-of" and isinstance(literal.value, int):
                    self.limit(name, ranks=[literal.value])
                if literal is not None and of == "dtype-of":
                    self.limit(name, dtypes=[d for d in self.dtypes.every if d == literal.value])
            case Form(items=(Atom(text="="), Atom(text=name), Atom(text=text))):
                literal = literal_of(text)
                if literal is not None and literal_of(name) is None:
                    self.values.setdefault(name, self.value(Atom(text, 0)))
            case _:
                pass

    def limit(self, name: str, *, ranks: Sequence[int] = (), dtypes: Sequence[str] = ()) -> None:
        """Leave an operand only some ranks and dtypes."""
        before = self.limits.get(name, (range(self.search.ranks + 1), self.dtypes.every))
        kept = [r for r in before[0] if r in ranks] if ranks else before[0]
        self.limits[name] = kept, [d for d in before[1] if d in dtypes] if dtypes else before[1]

    def define(self) -> None:
        """Note which facts say how a variable is made, and which tensors are one number."""
        lists = lists_in(tuple(self.facts))
        for fact in self.facts:
            if isinstance(fact, Form):
                self.options(fact)
                if fact.head == "is-number" and isinstance(fact.items[1], Atom):
                    self.scalars.setdefault(fact.items[1].text, fact.items[2])
                if fact.head in APPLICATIONS and isinstance(fact.items[1], Atom):
                    self.defined.setdefault(fact.items[1].text, (fact, True))
            if not isinstance(fact, Form) or fact.head not in ("=", BUILT) or len(fact.items) < 3:
                continue
            for a, b in ((fact.items[1], fact.items[2]), (fact.items[2], fact.items[1])):
                made = isinstance(b, Form) and (is_tensor(b, lists) or fact.head == BUILT)
                if isinstance(a, Atom) and isinstance(b, Form) and made:
                    known = self.defined.get(a.text)
                    if known is None or (known[0].head == "vec-get" and b.head != "vec-get"):
                        self.defined[a.text] = b, fact.head == "="
                if (
                    isinstance(b, Form)
                    and b.head == "const-scalar"
                    and isinstance(b.items[1], Atom)
                ):
                    self.scalars.setdefault(b.items[1].text, a)

    def bind(self, name: str, value: Any) -> None:
        """Give a variable a value."""
        if name != "_":
            self.values[name] = value

    def is_open(self, item: Tree) -> bool:
        """Whether a term is a variable without a value."""
        if not isinstance(item, Atom) or is_literal(item.text):
            return False
        return item.text not in self.values

    def is_unmade(self, item: Tree) -> bool:
        """Whether a term is a variable that no fact says how to make."""
        return self.is_open(item) and isinstance(item, Atom) and item.text not in self.defined

    def unify(self, a: Any, b: Any) -> None:
        """Assume that two values are equal."""
        if a is b:
            return
        match a, b:
            case tuple(), tuple():
                if len(a) != len(b):
                    raise Impossible
                for x, y in zip(a, b, strict=True):
                    self.unify(x, y)
            case (bool() | str(), Sum()) | (Sum(), bool() | str()):
                if not self.assumed:
                    raise IllFormed("a text or a truth value of a symbol is not known")
                self.is_partial = True
            case (bool(), _) | (_, bool()) | (str(), _) | (_, str()):
                if a != b and may_be_one(a, b):
                    raise IllFormed("whether two orders of axes are one is not known")
                if a != b:
                    raise Impossible
            case (Sum(), _) | (_, Sum()) | (float(), _) | (_, float()):
                self.compared("=", a, b)
            case Function(), Function() if a.key != b.key and None in (a.op, b.op):
                raise IllFormed("whether two functions are one is not known")
            case (Function(), _):
                if not isinstance(b, Function) or a.key != b.key:
                    raise Impossible
            case _ if isinstance(a, Value) or isinstance(b, Value):
                self.same_value(a, b)
            case _ if isinstance(a, Sum) or isinstance(b, Sum):
                raise IllFormed("a number is compared with an extent")
            case PrimValue(), PrimValue():
                self.unify(a.dtype, b.dtype)
                self.unify(a.value, b.value)
            case (PrimValue(), _) | (_, PrimValue()) | (None, _) | (_, None):
                if a is not b:
                    raise Impossible
            case _:
                self.extents.equate(a, b)

    def same_value(self, a: Any, b: Any) -> None:
        """Two forms of one value: one is kept, and the other says less."""
        if isinstance(a, Value) and isinstance(b, Value):
            if not isinstance(a.info, TensorStructInfo) or not isinstance(b.info, TensorStructInfo):
                return
            if a.info.dtype != b.info.dtype:
                raise Impossible
            self.unify(shape_of(a), shape_of(b))
            if self.assumed:
                self.same_operands(a, b)
                self.forms.setdefault(a.key, []).append(b)
                self.forms.setdefault(b.key, []).append(a)
        elif a is not b:
            raise Impossible

    def same_operands(self, a: Value, b: Value) -> None:
        """Permutations of equal order are of equal tensors if they are equal."""
        match a, b:
            case (
                Result(op=f, operands=(Leaf() as x,), attrs=p),
                Result(op=g, operands=(Leaf() as y,), attrs=q),
            ) if f.name == g.name == "permute_dims" and p == q:
                self.forms.setdefault(x.key, []).append(y)
            case _:
                pass

    def holds_exactly(self, c: reals.Comparison) -> bool:
        """Whether what holds of rounded numbers holds of exact ones."""
        for x, y in ((c.a, c.b), (c.b, c.a)):
            limit = reals.as_float(y)
            if x.key in self.rounded and (limit is None or limit not in self.rounded[x.key]):
                return False
            if x.key in self.rounded and limit != 0 and c.kind not in ("<", ">", "!="):
                return False  # what is too large is rounded to ∞
        return True

    def round(self, head: str, args: Sequence[Any], result: Sum) -> None:
        """Note whether the engine rounds a number that is computed of others."""
        known = {a.key: a.key in self.rounded for a in args if isinstance(a, Sum)}
        plain = not any(known.values())
        if reals.as_float(result) is not None or (
            plain and (head in reals.EXACT or result.key in known)
        ):
            return
        limits = reals.LIMITS.get(head, frozenset()) if plain else frozenset[float]()
        self.rounded[result.key] = self.rounded.get(result.key, limits) & limits

    def compared(self, head: str, a: Any, b: Any) -> None:
        """A comparison of numbers, texts or vectors."""
        if isinstance(a, Sum | float) or isinstance(b, Sum | float):
            c = reals.Comparison(head, reals.number(a), reals.number(b))
            if c.decided is False:
                raise Impossible
            if c.decided is None and not self.holds_exactly(c):
                self.is_partial = True
            elif c.decided is None and c not in self.numbers:
                self.numbers.append(c)
            return
        texts = all(isinstance(x, str | bool | int) for x in (a, b))
        if texts:
            if not (a == b if head == "=" else PRIMITIVES[head](a, b)):
                raise Impossible
            return
        match head:
            case "<":
                self.extents.at_least(b, dims.add(a, 1))
            case "<=":
                self.extents.at_least(b, a)
            case ">":
                self.extents.at_least(a, dims.add(b, 1))
            case ">=":
                self.extents.at_least(a, b)
            case _:
                if head == "!=" and key_of(a) == key_of(b):
                    raise Impossible


def is_term(tree: Tree) -> bool:
    """Whether a term is the result of an operator."""
    return isinstance(tree, Form) and (tree.head.startswith("R.") or tree.head == "unstable-app")


def is_tensor(tree: Form, lists: Set[str]) -> bool:
    """Whether a term is a tensor: a result, or in one of `lists`."""
    of = tree.items[1] if tree.head == "vec-get" else None
    return is_term(tree) or (isinstance(of, Atom) and of.text in lists)


@lru_cache(1 << 14)
def text_of(tree: Tree) -> str:
    """The text of a term, which instances ask for again and again."""
    return written(tree)


@lru_cache(16)
def lists_in(facts: tuple[Tree, ...]) -> frozenset[str]:
    """The variables that are lists of tensors; asked of the same facts again and again."""
    return frozenset(text_of(form.items[1]) for fact in facts for form in with_lists(fact))


def with_lists(tree: Tree) -> list[Form]:
    """The terms in `tree` whose operand is a variable that is a list of tensors."""
    heads = ("R.concat", "R.stack", "R.meshgrid")
    return [f for f in forms_in(tree) if f.head in heads and isinstance(f.items[1], Atom)]

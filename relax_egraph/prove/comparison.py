"""Compares both sides of an instance, element by element, in cases that conditions make."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import TensorStructInfo, TupleStructInfo
from relax_egraph.prove import reads
from relax_egraph.prove.algebra import PRODUCTS, SEMIRING, WRITTEN, Algebra
from relax_egraph.prove.conditions import Condition, Nonnegative, Zero, negated
from relax_egraph.prove.counts import Counts, divides_by_counts
from relax_egraph.prove.definedness import Definedness
from relax_egraph.prove.digits import forget
from relax_egraph.prove.effort import CASE, Effort
from relax_egraph.prove.elements import Elements
from relax_egraph.prove.equality import Equality
from relax_egraph.prove.matching import Matching
from relax_egraph.prove.nodes import Leaf, Part, Result, Uniform, Value, dtype_of, parts, shape_of
from relax_egraph.prove.pointwise import Pointwise
from relax_egraph.prove.polynomial import Polynomial, of_dim, variable
from relax_egraph.prove.questions import Instance, recorded
from relax_egraph.prove.reading import Reader, Undecided
from relax_egraph.prove.reals import as_float, divisors_in, excluded
from relax_egraph.prove.signs import Signs
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.specials import Assumptions
from relax_egraph.prove.sums import Applied, Sum, axes_of, numbered
from relax_egraph.prove.tensors import Tensor
from relax_egraph.prove.translation import Assumption

MOST_CASES = 10
"""The most conditions that one case is made of."""


Element: TypeAlias = Callable[[Sequence[Polynomial]], Sum]
"""The element of a tensor at an index."""

Compare: TypeAlias = Callable[[Tensor, Sum, Sum], None]
"""Raises `NotProven` unless an element of a tensor is another one."""


class NotProven(Exception):
    """A step of a proof is missing; its text names variables of sums and axes for readers."""

    def __str__(self) -> str:
        return numbered(super().__str__())


@dataclass(frozen=True)
class Difference:
    """What is left of both sides where they are not proven equal."""

    left: Sum
    right: Sum


class Comparing:
    """Compares values under what a general instance assumes."""

    def __init__(self, matching: Matching, effort: Effort, exact: bool) -> None:
        self.solver = Solver(effort)
        self.readers = [self.elements_in(matching, a) for a in (PRODUCTS, SEMIRING)]
        self.written = self.elements_in(matching, WRITTEN)
        self.exact = exact
        self.effort = effort
        self.matching = matching
        self.bijections: list[str] = []
        for c in matching.extents.conditions:
            self.solver.assume(c)

    def elements_in(self, matching: Matching, algebra: Algebra) -> Elements:
        """The elements of values as terms of an algebra."""
        reader = Reader(self.solver, algebra)
        reader.wholes = matching.typing.wholes
        numbers = matching.numbers
        positive = (c.high.factor for c in numbers if c.is_positive)
        reader.positive = frozenset(
            f.key
            for f in positive
            if isinstance(f, Applied) and reads.is_finite(f.function, numbers)
        )
        return Elements(reader)

    def record(self) -> None:
        """Add the instance to what is recorded of a proof."""
        if (record := recorded()) is None:
            return
        values = sorted(self.matching.values.items())
        operands = {name: str(v.info) for name, v in values if isinstance(v, Leaf)}
        assumed = tuple(c.key for c in self.matching.extents.conditions)
        record.instances.append(Instance(operands, assumed, (*dict.fromkeys(self.bijections),)))

    def bounds(self) -> list[Assumption]:
        """What is assumed of the elements of operands."""
        return [
            (b.value.name, b.kind, b.limit)
            for b in self.matching.bounds
            if isinstance(b.value, Leaf)
        ]

    def require(self, what: str, c: Condition) -> None:
        """Raise `NotProven` unless a condition of the right side follows."""
        if not self.solver.holds(c):
            raise NotProven(f"that {what} does not follow: {c.key}")

    def compare(self, left: Value, right: Any) -> None:
        """Raise `NotProven` unless two values are equal, in one of the forms of the left one."""
        try:
            self.compare_form(left, right)
        except NotProven as reason:
            for form in self.matching.forms.get(left.key, ()):
                with suppress(NotProven):
                    self.compare_form(form, right)
                    return
            raise reason from None

    def compare_form(self, left: Value, right: Any) -> None:
        """Raise `NotProven` unless two values are equal."""
        if isinstance(left.info, TupleStructInfo):
            if not isinstance(right.info, TupleStructInfo) or (
                len(left.info.fields) != len(right.info.fields)
            ):
                raise NotProven("the sides are not of equally many tensors")
            for k in range(len(left.info.fields)):
                self.compare(_field(left, k), _field(right, k))
            return
        if isinstance(right, Sum) and not all(map(self.is_divisor, divisors_in(right))):
            raise NotProven("a number may be divided by 0")
        products, semiring = self.readers
        if isinstance(right, Sum) and not is_float(dtype_of(left)):
            self.elementwise(products, left, right, self.numbered)
            self.elementwise(self.written, left, right, self.special_number)
            return
        if not isinstance(right, Sum):
            self.of_one_type(left, right)
        try:
            self.elementwise(products, left, right)
        except NotProven as reason:
            try:
                self.elementwise(semiring, left, right)
            except NotProven:
                raise reason from None
        sides = (left,) if isinstance(right, Sum) else (left, right)
        if any(map(_may_be_special, parts(sides))):
            self.elementwise(self.written, left, right)

    def is_divisor(self, number: Sum) -> bool:
        """Whether a number of a rule is assumed to be other than 0."""
        known = as_float(number)
        return known != 0 if known is not None else excluded(self.matching.numbers, number, 0.0)

    def numbered(self, tensor: Tensor, a: Sum, b: Sum) -> None:
        """Raise `NotProven` unless an integer, or a truth value, is a number of the rule."""
        equality = Equality(self.solver, self.bijections)
        pointwise = Pointwise(equality, self.matching.numbers, self.bounds())
        if pointwise.is_number(a, b, tensor.dtype):
            return
        wholes = self.matching.typing.wholes
        if not wholes.is_sum_of_wholes(b) or not pointwise.within(b, tensor.dtype):
            raise NotProven(f"whether {tensor.dtype} has the number is not decided")
        if not equality.sums(a, b):  # integers wrap around, and the number does not
            raise NotProven(f"the elements differ: {a.key} and {b.key}"[:400])

    def of_one_type(self, left: Value, right: Value) -> None:
        """Raise `NotProven` unless two values have one shape and one dtype."""
        if dtype_of(left) != dtype_of(right):
            raise NotProven(f"the dtypes of both sides are {dtype_of(left)} and {dtype_of(right)}")
        a, b = shape_of(left), shape_of(right)
        if len(a) != len(b):
            raise NotProven(f"the ranks of both sides are {len(a)} and {len(b)}")
        for x, y in zip(a, b, strict=True):
            self.require("both sides have one shape", Zero(of_dim(x) - of_dim(y)))

    def elementwise(
        self, elements: Elements, a: Value, b: Value | Sum, compare: Compare | None = None
    ) -> None:
        """Raise `NotProven` unless every element of `a` is that of `b`, or that number."""
        forget()
        left = elements.of(a)
        right: Element = _constant(b) if isinstance(b, Sum) else elements.of(b).at
        self.solver.begin(left.extents)
        axes = axes_of(left.extents)
        index = [variable(a) for a in axes]
        inside = [c for a in axes for c in (Nonnegative(a.extent - 1), Nonnegative(variable(a)))]
        compare = compare or (self.special if elements is self.written else self.equal)
        self.cases(left, left.at, right, index, inside, MOST_CASES, compare)

    def cases(
        self,
        tensor: Tensor,
        left: Element,
        right: Element,
        index: Sequence[Polynomial],
        where: Sequence[Condition],
        depth: int,
        compare: Compare,
    ) -> None:
        """Compare where conditions hold, in cases of what is not decided there."""
        self.effort.spend(CASE)
        with self.solver.scope(where):
            if depth < MOST_CASES and self.solver.impossible(()):
                return
            try:
                compare(tensor, left(index), right(index))
                return
            except Undecided as undecided:
                c = undecided.condition
            except NotProven:
                if self.solver.impossible(()):
                    return  # there is no such element
                raise
            if not depth:
                raise NotProven(f"too many cases: {c.key}")
            for case in (c, negated(c)):
                self.cases(tensor, left, right, index, (case,), depth - 1, compare)

    def equal(self, tensor: Tensor, a: Sum, b: Sum) -> None:
        """Raise `NotProven` unless two elements are equal."""
        equality = Equality(self.solver, self.bijections)
        if equality.sums(a, b):
            return
        pointwise = Pointwise(equality, self.matching.numbers, self.bounds())
        if pointwise.equal(a, b, tensor.dtype):
            return
        if divides_by_counts(a) or divides_by_counts(b):
            counts = Counts(self.solver)
            if equality.sums(counts.taken(a), counts.taken(b)):
                return
        if is_float(tensor.dtype) and Signs(equality, self.effort).equal(a, b):
            return
        raise NotProven(f"the elements differ: {a.key} and {b.key}"[:400])

    def special(self, tensor: Tensor, a: Sum, b: Sum) -> None:
        """Raise `NotProven` unless both elements are NaN and infinite for the same operands."""
        self.defined(a, b, tensor.dtype)

    def special_number(self, _: Tensor, a: Sum, b: Sum) -> None:
        """The same of an integer, or a truth value as 0 or 1, and a number of the rule."""
        self.defined(a, b, "number")

    def defined(self, a: Sum, b: Sum, dtype: str) -> None:
        """Raise `NotProven` unless elements of `dtype` have the same special values."""
        same = Equality(self.solver, []).factors
        numbers = (*self.matching.numbers, *self.matching.typing.wholes.ranges)
        assumed = Assumptions(numbers, self.bounds(), not self.exact, same)
        if reason := Definedness(self.solver, self.effort, assumed).differs(a, b, dtype):
            raise NotProven(reason)


def _may_be_special(value: Value) -> bool:
    """Whether a value is of floats, or made of a number of the rule, which may be NaN."""
    info = value.info
    if isinstance(info, TensorStructInfo) and is_float(dtype_of(value)):
        return True
    numbers = (value.value,) if isinstance(value, Uniform) else getattr(value, "attrs", {}).values()
    return any(isinstance(n, Sum) and as_float(n) is None for n in numbers)


def _constant(value: Sum) -> Element:
    return lambda _: value


def _field(value: Value, number: int) -> Part:
    """One field of a tuple."""
    assert isinstance(value, Result)
    assert isinstance(value.info, TupleStructInfo)
    return Part(value, number, value.info.fields[number])

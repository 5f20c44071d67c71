"""Reads tensor expressions, from which kernels are made, as sums of products.

The solver decides what depends on indices; where it does not, `Undecided` asks for both cases.
What elements decide stays a choice between two values.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove import functions, polynomial
from relax_egraph.prove.algebra import Algebra, chosen, converted, kind_of
from relax_egraph.prove.conditions import (
    COMPARISONS,
    Condition,
    Junction,
    names_in,
    negated,
)
from relax_egraph.prove.digits import Indices, extreme, quotient, remainder
from relax_egraph.prove.polynomial import Index, Polynomial, of_dim
from relax_egraph.prove.solver import Solver
from relax_egraph.prove.stand_ins import StandIns
from relax_egraph.prove.sums import (
    Factor,
    Folded,
    Sum,
    Term,
    add,
    apply,
    fresh,
    names_of_term,
    number,
    scale,
    single,
    summed,
)
from relax_egraph.prove.tensors import Place, Tensor, counted
from relax_egraph.prove.wholes import Wholes
from relax_egraph.tir import te
from relax_egraph.tir.expr import (
    Binary,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.tensor import Reduction
from relax_egraph.tir.tensor import Tensor as TeTensor

Environment: TypeAlias = Mapping[TirVar, Polynomial]


class Undecided(Exception):
    """What is read depends on a condition that is neither proven nor refuted."""

    def __init__(self, condition: Condition) -> None:
        super().__init__(condition.key)
        self.condition = condition


class NotExpressible(Exception):
    """An operator, or a part of its definition, is no tensor expression."""


class Reader:
    """Reads elements under what `solver` assumes, as terms of an `algebra`.

    `numbers` are symbolic constants, `positive` the texts of those that are known to be positive,
    `wholes` those that are integers.
    """

    def __init__(self, solver: Solver, algebra: Algebra) -> None:
        self.solver = solver
        self.algebra = algebra
        self.numbers = StandIns()
        self.positive: frozenset[str] = frozenset()
        self.wholes = Wholes()

    def tensor(self, t: TeTensor, operands: Mapping[TeTensor, Tensor]) -> Tensor:
        """The tensor of an expression over placeholders, which stand for `operands`."""
        return Tensor(t.shape, t.dtype, lambda index: self.element(t, index, operands))

    def element(self, t: TeTensor, index: Indices, operands: Mapping[TeTensor, Tensor]) -> Sum:
        """The element of `t` at `index`."""
        if t in operands:
            return operands[t].at(index)
        if t.body is None:
            raise NotExpressible(f"the tensor {t.name} is unknown")
        reading = _Reading(self, operands, dict(zip(t.axes, index, strict=True)))
        return reading.reduction(t.body) if isinstance(t.body, Reduction) else reading.value(t.body)

    def decide(self, c: Condition) -> bool:
        """Whether `c` holds; raises `Undecided`."""
        if self.solver.holds(c):
            return True
        if self.solver.impossible((c,)):
            return False
        raise Undecided(c)

    def reduced(
        self, combine: str, dtype: str, extents: Sequence[Polynomial], at: Callable[[Indices], Sum]
    ) -> Sum:
        """The reduction of `at` over all positions in `extents`."""
        if combine == "+" and any(e == polynomial.ZERO for e in extents):
            return Sum()
        kind = f"{combine} of bool" if dtype == "bool" else combine
        if kind not in self.algebra.sums:
            return self.folded(combine, dtype, extents, at)
        index, binders = _variables(extents)
        total = Sum()
        for where, value in self.cases(lambda: at(index), _names(binders), ()):
            total = add(total, summed(value, binders, where))
        return total

    def folded(
        self, function: str, dtype: str, extents: Sequence[Polynomial], at: Callable[[Indices], Sum]
    ) -> Sum:
        """A function of the multiset of `at` over all positions in `extents`."""
        index, binders = _variables(extents)
        if not binders and function in _IDENTICAL:
            return at(index)
        cases = self.cases(lambda: at(index), _names(binders), ())
        terms = (
            Term(t.coefficient, t.factors, t.binders, (*where, *t.where))
            for where, value in cases
            for t in value.terms
        )
        of, kind = Sum(tuple(terms)), kind_of(dtype)
        if function in ("max", "min") and kind == "float":
            return self.extreme(function, binders, of)
        f = of.factor
        if isinstance(f, Folded) and f.function == function in _IDENTICAL and f.dtype == kind:
            binders, of = (*binders, *f.binders), f.of
        return single(Folded(function, binders, (), of, kind))

    def extreme(self, function: str, binders: tuple[Index, ...], of: Sum) -> Sum:
        """The greatest or the least of real numbers; shifts and positive factors are outside."""
        names = _names(binders)
        outside = [t for t in of.terms if not t.where and names.isdisjoint(names_of_term(t))]
        inside = [t for t in of.terms if t not in outside]
        if not inside:
            return single(Folded(function, binders, (), of, "float"))
        scaled, rest = Sum(tuple(inside)), number(1)
        first = min(inside, key=lambda t: t.key)
        if first.coefficient != 1:
            c = first.coefficient
            scaled, rest = scale(scaled, 1 / c), number(c)
            function = function if c > 0 else {"max": "min", "min": "max"}[function]
        shared = [
            f
            for f in first.factors
            if f.key in self.positive and all(f in t.factors for t in inside)
        ]
        for f in shared:
            rest = functions.times(rest, single(f))
            scaled = functions.times(scaled, functions.inverse(single(f)))
            scaled = _cancelled(scaled, f)
        f = scaled.factor
        if isinstance(f, Folded) and f.function == function:
            binders, scaled = (*binders, *f.binders), f.of
        folded = single(Folded(function, binders, (), scaled, "float"))
        return add(functions.times(rest, folded), Sum(tuple(outside)))

    def cases(
        self, read: Callable[[], Sum], names: frozenset[str], where: tuple[Condition, ...]
    ) -> list[tuple[tuple[Condition, ...], Sum]]:
        """The values of `read` by conditions on the variables `names`."""
        with self.solver.scope(where[-1:]):
            if where and self.solver.impossible(()):
                return []
            try:
                return [(where, read())]
            except Undecided as undecided:
                c = undecided.condition
                if names.isdisjoint(names_in(c)):
                    raise
            return [
                *self.cases(read, names, (*where, c)),
                *self.cases(read, names, (*where, negated(c))),
            ]


@dataclass(frozen=True)
class _Reading:
    """Reads one expression, with the indices in `env`."""

    reader: Reader
    operands: Mapping[TeTensor, Tensor]
    env: Environment

    def reduction(self, r: Reduction) -> Sum:
        def at(index: Indices) -> Sum:
            env = {**self.env, **dict(zip(r.axes, index, strict=True))}
            return _Reading(self.reader, self.operands, env).value(r.source)

        extents = [of_dim(a.extent) for a in r.axes]
        return self.reader.reduced(r.combine, r.source.dtype, extents, at)

    def value(self, e: TirExpr) -> Sum:
        match e:
            case _ if self.is_index(e):
                return counted(self.index(e))
            case Imm(value, dtype):
                known = self.reader.numbers.known.get(float(value))
                if known is not None:
                    return known
                return functions.real(float(value)) if is_float(dtype) else number(int(value))
            case BufferLoad(buffer, indices):
                assert isinstance(buffer, te.Tensor)
                index = [self.index(i) for i in indices]
                return self.reader.element(buffer, index, self.operands)
            case Select(condition, a, b):
                return self.choice(condition, a, b)
            case Cast(dtype, inner) if is_float(dtype) and is_float(inner.dtype):
                return self.value(inner)  # it rounds within an operator
            case Cast(dtype, inner):
                return converted(self.value(inner), inner.dtype, dtype)
            case Not(a):
                return apply("not", self.value(a), dtype="bool")
            case Intrinsic(name, args):
                dtype = args[0].dtype
                values = [self.value(a) for a in args]
                return self.reader.algebra.function(name, values, dtype)
            case Binary(kind, a, b):
                return self.reader.algebra.arithmetic(kind, self.value(a), self.value(b), a.dtype)
            case _:
                raise NotExpressible(type(e).__name__)

    def choice(self, condition: TirExpr, a: TirExpr, b: TirExpr) -> Sum:
        if self.is_condition(condition):
            return self.value(a if self.reader.decide(self.condition(condition)) else b)
        return chosen(self.value(condition), self.value(a), self.value(b), a.dtype)

    # ------------------------------------------------------------------------------- indices

    def is_index(self, e: TirExpr) -> bool:
        match e:
            case TirVar() | DimSymbol():
                return True
            case Imm(dtype=dtype):
                return dtype == "int64"
            case Binary(kind, a, b):
                arithmetic = kind in ("+", "-", "*", "//", "%", "min", "max")
                return arithmetic and self.is_index(a) and self.is_index(b)
            case _:
                return False

    def index(self, e: TirExpr) -> Polynomial:
        match e:
            case TirVar():
                return self.env[e]
            case DimSymbol(name):
                return polynomial.variable(name)
            case Imm(value):
                return polynomial.of(int(value))
            case Binary("+", a, b):
                return self.index(a) + self.index(b)
            case Binary("-", a, b):
                return self.index(a) - self.index(b)
            case Binary("*", a, b):
                return self.index(a) * self.index(b)
            case Binary("//", a, b):
                return quotient(self.index(a), self.index(b))
            case Binary("%", a, b):
                return remainder(self.index(a), self.index(b))
            case Binary("min" | "max" as kind, a, b):
                return extreme(kind == "max", self.index(a), self.index(b))
            case _:
                return polynomial.variable(Place(self.value(e)))

    def is_condition(self, e: TirExpr) -> bool:
        match e:
            case Not(a):
                return self.is_condition(a)
            case Binary("and" | "or", a, b):
                return self.is_condition(a) and self.is_condition(b)
            case Binary(kind, a, b) if kind in COMPARISONS:
                return self.is_index(a) and self.is_index(b)
            case _:
                return False

    def condition(self, e: TirExpr) -> Condition:
        match e:
            case Not(a):
                return negated(self.condition(a))
            case Binary("and" | "or" as kind, a, b):
                return Junction(kind, (self.condition(a), self.condition(b)))
            case Binary(kind, a, b):
                return COMPARISONS[kind](self.index(a), self.index(b))
            case _:
                raise NotExpressible(type(e).__name__)


_IDENTICAL = frozenset({"+", "*", "min", "max"})
"""Reductions of which one element is that element, and that of several is one of all."""


def _variables(extents: Sequence[Polynomial]) -> tuple[list[Polynomial], tuple[Index, ...]]:
    """An index along `extents`, and the variables in it."""
    axes = [None if e == polynomial.ONE else fresh(e) for e in extents]
    index = [polynomial.ZERO if a is None else polynomial.variable(a) for a in axes]
    return index, tuple(a for a in axes if a is not None)


def _cancelled(a: Sum, f: Factor) -> Sum:
    """`a` without `f` and its inverse in each term."""
    inverse = functions.inverse(single(f)).factor
    result = Sum()
    for t in a.terms:
        left = list(t.factors)
        if f in left and inverse in left:
            left.remove(f)
            left.remove(inverse)
        result = add(result, Sum((Term(t.coefficient, tuple(left), t.binders, t.where),)))
    return result


def _names(binders: Sequence[Index]) -> frozenset[str]:
    return frozenset(b.name for b in binders)

"""The missing premise of a rule: the simplest predicate that separates good from bad instances.

A candidate is false for every bad instance, on which the rule fails, and true for many good ones.
The rule is then tried with the candidate as an additional premise, weak and simple candidates
first.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from relax_egraph.egraph.encoding.literals import number, string
from relax_egraph.egraph.rulebook.forms import Source
from relax_egraph.egraph.rulebook.reader import read
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.failures.shown import names_of
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.problem import VALUES
from relax_egraph.verify.instances.query import Literal

_TRIED = 10
"""The most predicates that are tried as premises."""

_NEARLY = 0.8
"""Predicates that hold on at least this share of the most good instances rank by simplicity."""

_AXES = 4


@dataclass(frozen=True, slots=True, eq=False)
class Guard:
    """A predicate of instances, in words and as premises.

    `holds` decides predicates of shapes, dtypes and attributes; it is false for predicates of
    elements.  A guard `of_one_dtype` is tried last: few rules are meant for one dtype.
    """

    words: str
    premises: str
    holds: Callable[[Instance], bool]
    of_one_dtype: bool = False

    def __str__(self) -> str:
        return f"{self.words}: {self.premises}"

    def added_to(self, pattern: Direction) -> Direction:
        """`pattern` with these premises added."""
        return replace(pattern, premises=(*pattern.premises, *read(Source("guard", self.premises))))


def missing_guard(
    pattern: Direction,
    good: Sequence[Instance],
    bad: Sequence[Instance],
    passes: Callable[[Direction], bool],
) -> str:
    """The missing premise of `pattern`, in words and in the syntax of rules; empty without one.

    It separates the `good` instances from the `bad` ones, and `passes` accepts the pattern with it.
    """
    if not bad:
        return ""
    apart = [g for g in _guards(pattern, good or bad) if not any(map(g.holds, bad))]
    covered = {g: sum(map(g.holds, good)) for g in apart}
    most = _NEARLY * max(covered.values(), default=0)
    proposed = sorted((g for g in apart if covered[g]), key=lambda g: -min(covered[g], most))
    wide = [g for g in proposed if not g.of_one_dtype]
    narrow = [g for g in proposed if g.of_one_dtype]
    for guard in (*wide[:_TRIED], *_of_elements(pattern, bad[0]), *narrow[:_TRIED]):
        if passes(guard.added_to(pattern)):
            return str(guard)
    return ""


def _guards(pattern: Direction, instances: Sequence[Instance]) -> Iterator[Guard]:
    """Predicates of the rule's variables, with values that occur in `instances`; simplest first."""
    first = instances[0]
    names = names_of(pattern, first)
    attributes = [n for v, n in names.items() if first.problem.sorts.get(v) in _WRITTEN]
    tensors = [n for v, n in names.items() if _is_operand(first, v)]
    for name in attributes:
        yield from _of_attribute(name, instances)
    for name in tensors:
        yield from _of_extents(name, attributes, first)
    for x, y in combinations(tensors, 2):
        yield from _of_two(x, y)
    for name in tensors:
        yield from _of_form(name, instances)


def _is_operand(instance: Instance, variable: str) -> bool:
    problem = instance.problem
    return problem.sorts.get(variable) in VALUES and variable not in problem.producers


def _get(instance: Instance, name: str) -> Any:
    """The value of a variable of the rule, or ``None``."""
    known = instance.problem.names.get(name, name)
    if isinstance(known, Literal):
        return known.value
    return instance.values.get(known)


def _shape(instance: Instance, name: str) -> Shape:
    return instance.info(str(instance.problem.names.get(name, name))).dims or ()


def _dtype(instance: Instance, name: str) -> str:
    return str(instance.info(str(instance.problem.names.get(name, name))).dtype)


# --------------------------------------------------------------------------- of shapes and dtypes


def _of_attribute(name: str, instances: Sequence[Instance]) -> Iterator[Guard]:
    """Guards on an attribute: it equals or differs from a value; a number is finite or positive."""
    sort = instances[0].problem.sorts[str(instances[0].problem.names.get(name, name))]
    values = Counter(v for i in instances if (v := _get(i, name)) is not None)
    for value, _ in values.most_common(3):
        text, shown = _WRITTEN[sort](value), str(value)
        yield Guard(f"{name} = {shown}", f"(= {text} {name})", _Equals(name, value))
        if sort != "bool":
            yield Guard(f"{name} ≠ {shown}", f"(!= {text} {name})", _Equals(name, value, False))
    if sort == "f64":
        for words, premises, test in _OF_NUMBERS:
            yield Guard(f"{name} is {words}", premises.format(name), _IsNumber(name, test))


@dataclass(frozen=True, slots=True)
class _Equals:
    name: str
    value: Any
    wanted: bool = True

    def __call__(self, instance: Instance) -> bool:
        return (_get(instance, self.name) == self.value) == self.wanted


@dataclass(frozen=True, slots=True)
class _IsNumber:
    name: str
    test: Callable[[float], bool]

    def __call__(self, instance: Instance) -> bool:
        value = _get(instance, self.name)
        return value is not None and self.test(value)


_FINITE = "(< -inf {0}) (< {0} inf)"

_OF_NUMBERS: tuple[tuple[str, str, Callable[[float], bool]], ...] = (
    ("≠ 0", "(!= 0.0 {0})", lambda c: c != 0),
    ("finite", _FINITE, math.isfinite),
    ("finite and ≠ 0", f"(!= 0.0 {{0}}) {_FINITE}", lambda c: math.isfinite(c) and c != 0),
    ("≥ 0", "(<= 0.0 {0})", lambda c: c >= 0),
    ("finite and ≥ 0", "(<= 0.0 {0}) (< {0} inf)", lambda c: 0 <= c < math.inf),
    ("> 0", "(< 0.0 {0})", lambda c: c > 0),
)
"""Predicates of numbers: in words, as premises, and as functions."""


def _vector(items: tuple[Any, ...]) -> str:
    return f"(vec-of {' '.join(map(str, items))})" if items else "(vec-of)"


def _boolean(value: bool) -> str:
    return str(value).lower()


_WRITTEN: dict[str, Callable[[Any], str]] = {
    "i64": str,
    "f64": number,
    "bool": _boolean,
    "String": string,
    "Axes": _vector,
}
"""The text of values in the syntax of rules, by sort."""


def _of_extents(name: str, attributes: Sequence[str], first: Instance) -> Iterator[Guard]:
    """Guards on an extent, of an axis by number or by an attribute: it is 1, or at least 1."""
    sorts, names = first.problem.sorts, first.problem.names
    numbers = [a for a in attributes if sorts.get(str(names.get(a, a))) == "i64"]
    for axis in (*range(_AXES), *numbers):
        place = f"(vec-get (shape-of {name}) {axis})"
        words = f"the extent of axis {axis} of {name}"
        one = '(DimSym "1")'
        yield Guard(f"{words} is 1", f"(dim-equal {place} {one})", _OfExtent(name, axis, _is_one))
        yield Guard(f"{words} ≥ 1", f"(dim-ge {place} {one})", _OfExtent(name, axis, _is_some))


@dataclass(frozen=True, slots=True)
class _OfExtent:
    name: str
    axis: int | str
    test: Callable[[Dim], bool]

    def __call__(self, instance: Instance) -> bool:
        shape = _shape(instance, self.name)
        at = _get(instance, self.axis) if isinstance(self.axis, str) else self.axis
        return isinstance(at, int) and 0 <= at < len(shape) and self.test(shape[at])


def _is_one(extent: Dim) -> bool:
    return dims.equal(extent, 1)


def _is_some(extent: Dim) -> bool:
    return dims.prove_ge(extent, 1)


def _of_two(x: str, y: str) -> Iterator[Guard]:
    """Guards on two operands: they have one shape, dtype, rank, or extent."""
    yield Guard(
        f"{x} and {y} have one shape",
        f"(= (shape-of {x}) (shape-of {y}))",
        lambda i: _same(_shape(i, x), _shape(i, y)),
    )
    yield Guard(
        f"{x} and {y} have one dtype",
        f"(= (dtype-of {x}) (dtype-of {y}))",
        lambda i: _dtype(i, x) == _dtype(i, y),
    )
    yield Guard(
        f"{x} and {y} have one rank",
        f"(= (rank-of {x}) (rank-of {y}))",
        lambda i: len(_shape(i, x)) == len(_shape(i, y)),
    )
    for axis in range(_AXES):
        yield Guard(
            f"axis {axis} of {x} and of {y} have one extent",
            f"(dim-equal (vec-get (shape-of {x}) {axis}) (vec-get (shape-of {y}) {axis}))",
            lambda i, k=axis: _same(_shape(i, x)[k : k + 1], _shape(i, y)[k : k + 1], 1),
        )


def _same(a: Shape, b: Shape, least: int = 0) -> bool:
    return len(a) == len(b) >= least and all(map(dims.equal, a, b))


def _of_form(name: str, instances: Sequence[Instance]) -> Iterator[Guard]:
    """Guards on one operand: it is floating-point, or has one dtype or rank."""
    yield Guard(
        f"the dtype of {name} is floating-point",
        f"(is-float {name})",
        lambda i: is_float(_dtype(i, name)),
    )
    for dtype, _ in Counter(_dtype(i, name) for i in instances).most_common(3):
        yield Guard(
            f"the dtype of {name} is {dtype}",
            f"(= {string(dtype)} (dtype-of {name}))",
            lambda i, d=dtype: _dtype(i, name) == d,
            of_one_dtype=True,
        )
    for rank in sorted({len(_shape(i, name)) for i in instances}):
        yield Guard(
            f"the rank of {name} is {rank}",
            f"(= {rank} (rank-of {name}))",
            lambda i, r=rank: len(_shape(i, name)) == r,
        )


# ------------------------------------------------------------------------------------ of elements


def _of_elements(pattern: Direction, instance: Instance) -> Iterator[Guard]:
    """Guards on elements: all elements of an operand are one constant number, with a predicate."""
    names = names_of(pattern, instance)
    free = next(n for n in ("c", "k", "v", "number") if n not in names.values())
    for variable, name in names.items():
        if not _is_operand(instance, variable) or variable in instance.problem.scalars:
            continue
        constant = f"(= {free} (const-scalar {name}))"
        yield Guard(f"{name} is any constant number", constant, lambda _: False)
        for words, premises, _ in _OF_NUMBERS:
            text = f"{constant} {premises.format(free)}"
            yield Guard(f"{name} is a constant, {words}", text, lambda _: False)

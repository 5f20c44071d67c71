"""Proofs by sympy that both sides of a rule have one shape and one dtype for all extents.

An instance is generalized: every extent of its operands becomes a distinct symbol, except where the
left side or a premise requires equal extents, or extent 1.  The struct-info rules of the operators
give the shapes of both sides, and `dims.equal` decides whether these are equal for all values of
the symbols.  Struct-info rules accept symbols that may be equal, so a second instance with distinct
primes for extents decides whether the operators accept their operands.  The proof covers a few
forms: the ranks, axes and other attributes of instances that egglog matched.  It does not cover
elements, which are compared for some sizes only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, TypeAlias

from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.ir import dims
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo, tensor
from relax_egraph.verify.failures.shrink import Values, completed, free_values
from relax_egraph.verify.failures.terms import Terms, Unknown, equated, inferred
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.values.evaluation import NOT_COMPUTED

_FORMS = 2

_Place: TypeAlias = tuple[str, int]
"""An extent: the variable of a shape, and an axis."""


def shapes_agree(pattern: Direction, instances: Sequence[Instance]) -> bool:
    """Whether both sides of `pattern` provably have one shape and dtype for all sizes.

    The proof generalizes some of the `instances`, with different ranks if possible.
    """
    if not equated(pattern):
        return False
    forms: dict[Any, Instance] = {}
    for instance in instances:
        forms.setdefault(_form(instance), instance)
    some = list(forms.values())[:_FORMS]
    try:
        return bool(some) and all(_agree(pattern, general(i)) for i in some)
    except (Unknown, Fails, *NOT_COMPUTED):
        return False


# ------------------------------------------------------------------------ what sides have in common


def _agree(pattern: Direction, form: "General | None") -> bool:
    if form is None:
        return False
    both = [Terms.of(pattern, i, _Infos(i)) for i in (form.numbers, form.symbols)]
    return all(_same(t.value(a), t.value(b)) for a, b in equated(pattern) for t in both)


def _same(a: StructInfo, b: StructInfo) -> bool:
    if isinstance(a, TupleStructInfo) and isinstance(b, TupleStructInfo):
        return len(a.fields) == len(b.fields) and all(map(_same, a.fields, b.fields))
    if not isinstance(a, TensorStructInfo) or not isinstance(b, TensorStructInfo):
        return False
    x, y = a.dims, b.dims
    if x is None or y is None or a.dtype != b.dtype or len(x) != len(y):
        return False
    return all(map(dims.equal, x, y))


@dataclass(frozen=True, slots=True)
class _Infos:
    """Struct info as the domain of `Terms`."""

    instance: Instance

    def tensor(self, variable: str) -> StructInfo:
        if variable in self.instance.problem.shapes:
            return self.instance.info(variable)
        return self.instance.values[variable]

    def number(self, value: float, dtype: str) -> StructInfo:
        del value
        return tensor((), dtype)

    def part(self, whole: Any, index: int) -> StructInfo:
        return whole.fields[index]

    def applied(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> StructInfo:
        return inferred(op, operands, attrs)


# ------------------------------------------------------------------------------ general instances


def _form(instance: Instance) -> Any:
    """The parts of an instance that are not generalized: ranks, and integer attributes."""
    sorts = instance.problem.sorts
    return tuple(
        (v, len(x) if sorts.get(v) == "Shape" else x)
        for v, x in sorted(instance.values.items())
        if sorts.get(v) in ("Shape", "Axes", "i64", "bool")
    )


@dataclass(frozen=True, slots=True)
class General:
    """An instance with symbols for extents, and one with distinct primes."""

    symbols: Instance
    numbers: Instance


def general(instance: Instance) -> General | None:
    """`instance` with symbols for extents; ``None`` if an extent must be a number other than 1.

    Extents that the left side requires to be equal share a symbol, which is at least 1 if a premise
    requires it.
    """
    free = free_values(instance)
    if any(instance.problem.sorts.get(v) == "Dim" for v in free):
        return None
    classes = _classes(free, instance)
    if classes is None:
        return None
    for count in (1, 2):
        for places in list(combinations(classes, count)):
            shared = [p for p, c in classes.items() if c == classes[places[0]]]
            if len(shared) > count and set(places) <= set(shared):
                split = {**classes, **dict.fromkeys(places, places[0])}
                split |= _renamed([p for p in shared if p not in places])
                if _with_numbers(free, split, instance) is not None:
                    classes = split
    numbers = _with_numbers(free, classes, instance)
    for least in (0, 1):
        extents = {p: _symbol(c) + least for p, c in classes.items()}
        symbols = completed(_put(free, extents), instance, static=False)
        if symbols is not None and numbers is not None:
            return General(symbols, numbers)
    return None


def _classes(free: Values, instance: Instance) -> dict[_Place, _Place] | None:
    """The first equal extent of each extent in the instance, without extents that must be 1."""
    sorts = instance.problem.sorts
    places = {
        (v, k): d for v, x in free.items() if sorts.get(v) == "Shape" for k, d in enumerate(x)
    }
    first = {d: place for place, d in reversed(places.items())}
    classes = {place: first[d] for place, d in places.items()}
    if _with_numbers(free, classes, instance) is not None:
        return classes
    classes = {place: c for place, c in classes.items() if places[place] != 1}
    if _with_numbers(free, classes, instance) is None:
        return None
    for place, extent in places.items():
        more = {**classes, place: place}
        if extent == 1 and _with_numbers(free, more, instance) is not None:
            classes = more
    return classes


def _renamed(places: Sequence[_Place]) -> dict[_Place, _Place]:
    """`places` as a separate class."""
    return dict.fromkeys(places, places[0])


def _with_numbers(
    free: Values, classes: Mapping[_Place, _Place], like: Instance
) -> Instance | None:
    """The instance with a prime for each class; struct-info rules are strict about numbers."""
    numbers = dict(zip(dict.fromkeys(classes.values()), _PRIMES, strict=False))
    if not all(c in numbers for c in classes.values()):
        return None
    return completed(_put(free, {p: numbers[c] for p, c in classes.items()}), like, static=False)


_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59)


def _symbol(place: _Place) -> Any:
    name = "".join(c if c.isalnum() else "_" for c in place[0])
    return dims.symbol(f"{name}_{place[1]}")


def _put(free: Values, extents: Mapping[_Place, Any]) -> Values:
    """`free` with these extents."""
    values = dict(free)
    for (variable, axis), extent in extents.items():
        shape = values[variable]
        values[variable] = (*shape[:axis], extent, *shape[axis + 1 :])
    return values

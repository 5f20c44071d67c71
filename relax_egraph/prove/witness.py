"""Counterexamples of a rule: extents that the solver finds, and operands, for a failed proof.

The general instance at which a proof ends states all that its operands have to be.  z3 finds small
extents of that kind, numbers and elements are random, and numpy computes both sides.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import sympy

from relax_egraph.egraph.rulebook.book import RuleBook
from relax_egraph.egraph.rulebook.forms import heads
from relax_egraph.egraph.rulebook.rule import FloatClass, Rule
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.prove import sums
from relax_egraph.prove.concrete import Concrete, Unclear
from relax_egraph.prove.matching import Matching
from relax_egraph.prove.nodes import Leaf, Value, dtype_of, shape_of
from relax_egraph.prove.questions import z3
from relax_egraph.prove.reals import COMPARED
from relax_egraph.prove.solver import Integers
from relax_egraph.prove.sums import Applied, Sum
from relax_egraph.prove.unfolding import STEERING, Unfolded
from relax_egraph.verify.instances.makers import makers_of, needed
from relax_egraph.verify.values.inputs import Array, Kind

TRIALS = 8
"""The random extents that are tried for one instance."""

DRAWS = 40
"""The random numbers that are tried for one choice of extents."""

_EXTENTS = (0, 1, 2, 3, 4, 5)
"""The extents that are tried, where the conditions on them leave a choice."""

_LARGEST = 25
"""The largest extent that is tried."""

KINDS: Mapping[FloatClass, tuple[Kind, ...]] = {
    "exact": ("ordinary", "nan", "all nan", "infinite"),
    "reassociates": ("ordinary", "nan", "all nan"),
    "fast": ("ordinary",),
}
"""The kinds of elements that operands are tried with, by the class of the rule."""

_NUMBERS = (2.0, 0.5, -1.5, 3.0, 1.0, -2.0, 0.0, 4.0, -0.25, 1e-3)

_CLOSE = {"float64": 1e-8, "float32": 1e-3}
"""How far sides may be apart by rounding, as a part of the largest element."""

_FAST = 1e-2
"""The same for rules with constants of few digits."""


@dataclass(frozen=True, slots=True)
class Witness:
    """Operands for which the sides differ `at` an index, as text for readers."""

    operands: tuple[str, ...]
    at: tuple[int, ...]
    left: str
    right: str

    def __str__(self) -> str:
        place = f"element {self.at}: " if self.at else ""
        sides = f"{place}the left side is {self.left}, the right side {self.right}"
        return "\n".join((*self.operands, sides))


def may_be_refuted(rule: Rule, way: Unfolded, book: RuleBook) -> bool:
    """Whether an instance has all that the rule says.

    Premises that steer the engine are left out of it, a stated meaning may hold of more than the
    rows of its relation, and what a bounded rule states is less than equality.
    """
    facts = (f for r in needed(rule, makers_of(book)) for d in r.directions for f in d.body)
    steered = any(STEERING.intersection(heads(fact)) for fact in facts)
    return rule.float_class in KINDS and not (steered or way.meanings)


def witness(
    matching: Matching, left: Value, right: Value | Sum, stated: FloatClass
) -> Witness | None:
    """Operands for which both sides of an instance of such a rule differ, if some are found."""
    if matching.is_partial:
        return None
    room = _FAST if stated == "fast" else 0.0
    names = _symbols(matching)
    for trial, extents in enumerate(_extents(matching)):
        for kind in KINDS[stated]:
            try:
                made = _drawn(matching, extents, names, kind, trial)
                found = made and _difference(matching, made, left, right, room)
            except Unclear:
                break
            if found is not None:
                return found
    return None


def _drawn(
    matching: Matching, extents: Mapping[str, int], names: Sequence[str], kind: Kind, trial: int
) -> Concrete | None:
    """Operands with elements of a kind, and numbers for `names`, of which the premises hold."""
    for draw in range(DRAWS):
        random = Random(f"{trial} {draw}")
        numbers = {name: random.choice(_NUMBERS) for name in names}
        made = Concrete(extents, numbers, kind, np.random.default_rng((trial, draw)))
        if _admitted(matching, made):
            return made
    return None


def _extents(matching: Matching) -> Iterator[dict[str, int]]:
    """Small values for all symbols, for which the conditions on extents hold."""
    into = Integers()
    terms = [into.condition(c) for c in matching.extents.conditions]
    shapes = [shape_of(v) for v in matching.values.values() if isinstance(v, Leaf)]
    names = sorted({s for shape in shapes for d in shape for s in dims.symbols(d)})
    symbols = {name: z3().Int(name) for name in (*names, *_free(matching))}
    for trial in range(TRIALS + len(symbols)):
        random = Random(f"extents {trial}")
        empty = trial - TRIALS  # after some trials, each extent is 0 once
        solver = z3().Solver()
        solver.set("rlimit", 2_000_000)
        solver.add(*terms, *into.known)
        solver.add(*(z3().And(s >= 0, s <= _LARGEST) for s in symbols.values()))
        for place, symbol in enumerate(symbols.values()):
            solver.push()
            solver.add(symbol == (0 if place == empty else random.choice(_EXTENTS)))
            if solver.check() != z3().sat:
                solver.pop()
        if solver.check() != z3().sat:
            return
        model = solver.model()
        yield {
            name: model.eval(symbol, model_completion=True).as_long()
            for name, symbol in symbols.items()
        }


def _free(matching: Matching) -> list[str]:
    """The symbols of extents in conditions and among attributes."""
    free: set[str] = set()
    for value in matching.values.values():
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, sympy.Expr):
                free |= dims.symbols(part)
    return sorted(free)


def _symbols(matching: Matching) -> list[str]:
    """The symbolic numbers of an instance."""
    numbers = [side for c in matching.numbers for side in (c.a, c.b)]
    numbers += [b.limit for b in matching.bounds]
    numbers += [v for v in matching.values.values() if isinstance(v, Sum)]
    numbers += [getattr(v, "value", None) for v in matching.values.values()]
    return sorted({name for n in numbers if isinstance(n, Sum) for name in _names(n)})


def _names(a: Sum) -> Iterator[str]:
    for f in (f for t in a.terms for f in t.factors if isinstance(f, Applied)):
        if not f.args and f.function.startswith("number "):
            yield f.function
        for arg in f.args:
            yield from _names(arg)


def _admitted(matching: Matching, made: Concrete) -> bool:
    """Whether numbers compare as premises say; elements of operands are brought within bounds."""
    wholes = matching.typing.wholes
    for c in (*matching.numbers, *wholes.ranges):
        if not c.of(made.number(c.a), made.number(c.b)):
            return False
    if any(x % 1 for name, x in made.numbers.items() if wholes.is_known(sums.apply(name))):
        return False
    for b in matching.bounds:
        limit = made.number(b.limit)
        if isinstance(b.value, Leaf):
            made.known[b.value.key] = _bounded(made.of(b.value), b.kind, limit)
    return all(_within(made.of(b.value), b.kind, made.number(b.limit)) for b in matching.bounds)


def _bounded(array: Array, kind: str, limit: float) -> Array:
    match kind:
        case ">=":
            return np.maximum(array, np.asarray(limit, array.dtype))
        case "<=":
            return np.minimum(array, np.asarray(limit, array.dtype))
        case "!=":
            return np.where(array == limit, array + 1, array).astype(array.dtype)
        case _:
            return array


def _within(array: Array, kind: str, limit: float) -> bool:
    if kind == "finite":
        return bool(np.isfinite(array.astype(np.float64)).all())
    return bool(np.all(COMPARED[kind](array, limit)))


def _difference(
    matching: Matching, made: Concrete, left: Value, right: Value | Sum, room: float
) -> Witness | None:
    """What the sides are where they differ; the sign of an infinity may be that of a zero."""
    a: Any = made.of(left)
    b: Any = made.number(right) if isinstance(right, Sum) else made.of(right)
    if isinstance(a, tuple):
        return None  # the fields are compared one by one
    a = np.asarray(a)
    b = np.broadcast_to(np.asarray(b), a.shape) if isinstance(right, Sum) else np.asarray(b)
    if a.shape != b.shape:
        return Witness(_shown(matching, made), (), f"of shape {a.shape}", f"of {b.shape}")
    if not a.size:
        return None
    if is_float(dtype_of(left)):
        close = _CLOSE.get(dtype_of(left))
        if close is None:
            return None
        x, y = a.astype(np.float64), b.astype(np.float64)
        known = np.isfinite(x) & np.isfinite(y)
        scale = float(np.max(np.abs(x), initial=1.0, where=known))
        with np.errstate(invalid="ignore"):
            wrong = known & (np.abs(x - y) > max(close, room) * scale)
        wrong |= (np.isnan(x) != np.isnan(y)) | (np.isinf(x) != np.isinf(y))
    else:
        wrong = a != b
    if not wrong.any():
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return Witness(_shown(matching, made), at, str(a[at]), str(b[at]))


def _shown(matching: Matching, made: Concrete) -> tuple[str, ...]:
    """The operands and numbers of an instance."""
    leaves = [(name, v) for name, v in matching.values.items() if isinstance(v, Leaf)]
    names: dict[Leaf, str] = {}
    for name, leaf in sorted(leaves, key=lambda named: (not named[0].isidentifier(), named[0])):
        names.setdefault(leaf, name)
    lines = [
        f'{name} = R.Tensor({made.shape(v)}, "{dtype_of(v)}")'
        for v, name in sorted(names.items(), key=lambda named: named[1])
        if v.key in made.known
    ]
    lines += [f"{name} = {value:g}" for name, value in made.numbers.items()]
    return tuple(lines)

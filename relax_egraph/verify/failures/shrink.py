"""Shrinks an instance on which the sides of a rule differ to a minimal one with that difference.

Shrinking is greedy, as in QuickCheck (Claessen and Hughes, 2000).  A step simplifies some of the
free variables, those that no premise determines, and solves for the others.  Shapes, attributes and
dtypes come first, then the elements of the operands.  The sides are computed directly; for rules
without sides, egglog runs at each step.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from random import Random
from typing import Any, TypeAlias

import numpy as np
import sympy

from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.egraph.rulebook.vocabulary import Declaration
from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.failures.judge import Judge
from relax_egraph.verify.failures.shrink_elements import simplify_elements
from relax_egraph.verify.failures.terms import Unknown
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.known import Known
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.instances.query import Arg
from relax_egraph.verify.instances.slots import MISSING, Palette
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.tolerance import ORDER, Need

Values: TypeAlias = dict[str, Any]
Seen: TypeAlias = tuple[Instance, Difference]
"""An instance with elements, and the difference of its sides."""

_EGGLOG_RUNS = 24
"""The most runs of egglog for a rule without sides."""


def minimal(
    pattern: Direction,
    instances: Sequence[Instance],
    declarations: Mapping[str, Declaration],
    differs: Callable[[Instance], Seen | None],
    need: Need,
) -> Seen | None:
    """A minimal instance, shrunk from one of `instances`, and its difference; ``None`` without one.

    The difference is of the class `need`, or a worse one.  `differs` runs egglog: it returns the
    difference of the united values if the rule matches.
    """
    judge = _judge(pattern, instances, declarations, need)
    if judge is not None:
        smaller(judge.sides.instance, judge.accept)
        simplify_elements(judge)
        return judge.sides.instance, judge.difference()
    left, seen = _EGGLOG_RUNS, differs(instances[0])

    def accept(candidate: Instance) -> Instance | None:
        nonlocal left, seen
        left -= 1
        outcome = differs(candidate) if left >= 0 else None
        seen = outcome or seen
        return candidate if outcome else None

    if seen is None:
        return None
    smaller(instances[0], accept)
    last = seen[0]
    for number in (0, 1):
        arrays = {leaf: np.full_like(a, number) for leaf, a in last.arrays.items()}
        if (simple := differs(replace(last, arrays=arrays))) is not None:
            return simple
    return seen


def _judge(
    pattern: Direction,
    instances: Sequence[Instance],
    declarations: Mapping[str, Declaration],
    need: Need,
) -> Judge | None:
    """The judge of the first instance whose sides differ so; ``None`` if only egglog finds it."""
    try:
        judges = (Judge.of(pattern, instance, declarations) for instance in instances)
        bad = (j for j in judges if j and ORDER.index(j.wanted) >= ORDER.index(need))
        return next(bad, None)
    except Unknown:
        return None


def smaller(instance: Instance, accept: Callable[[Instance], Instance | None]) -> Instance:
    """The instance at the end of greedy steps, each of which `accept` allows."""
    sorts = instance.problem.sorts
    progress = True
    while progress:
        progress = False
        free = free_values(instance)
        for candidate in _steps(free, instance):
            if _size(candidate, sorts) >= _size(free, sorts):
                continue
            solved = completed(candidate, instance)
            accepted = None if solved is None else accept(solved)
            if accepted is not None:
                instance, progress = accepted, True
                break
    return instance


def free_values(instance: Instance) -> Values:
    """The free variables with their values, from which all other values follow.

    All variables are free if solving fails, as for a number that only has to be near another.
    """
    free: Values = {}
    try:
        known = _known(instance)
        for variable in _order(instance):
            if known.get(variable) is MISSING and variable in instance.values:
                free[variable] = known.values[variable] = instance.values[variable]
                known.spread()
    except Fails:
        return dict(instance.values)
    return free


def _order(instance: Instance) -> Iterator[str]:
    """All variables: dtypes and shapes of leaves first, then attributes, then all others."""
    problem = instance.problem
    leaves = [t for t in problem.shapes if t in problem.needed and t not in problem.producers]
    yield from (d for t in leaves if isinstance(d := problem.dtypes[t], str))
    yield from (s for t in leaves if isinstance(s := problem.shapes[t], str))
    yield from (a for n in problem.nodes for a in n.args if isinstance(a, str))
    yield from instance.values


def _known(instance: Instance) -> Known:
    known = Known(instance.problem, Palette(Random(0), (1, 2), "float32"), Counter())
    known.spread()
    return known


def completed(free: Values, like: Instance, static: bool = True) -> Instance | None:
    """The instance with these values, or ``None``; `static` requires constants of static shape."""
    try:
        known = _known(like)
        for variable, value in free.items():
            if known.get(variable) is MISSING:
                known.values[variable] = value
                known.spread()
        for node in like.problem.nodes:
            if node.op is not None:
                known.agrees(node)
        if any(v not in known.values for v in like.values):
            return None
        if static and not all(known.static(t) for t in like.problem.constants):
            return None
    except (Fails, IllTyped, IndexError, ValueError, TypeError):
        return None
    return replace(like, values=known.values, arrays={}, extents={})


def _steps(free: Values, instance: Instance) -> Iterator[Values]:
    """Candidates with simpler values of one variable, or of several variables at once."""
    sorts = instance.problem.sorts
    shapes = {v: x for v, x in free.items() if sorts.get(v) == "Shape"}
    every = [d for s in shapes.values() for d in s]
    every += [x for v, x in free.items() if sorts.get(v) == "Dim"]
    for name in sorted({n for d in every for n in dims.symbols(d)}):
        for extent in (2, 1, 3, 0):
            yield {v: _substituted(x, sorts.get(v, ""), name, extent) for v, x in free.items()}
    for rank in sorted({len(s) for s in shapes.values()}, reverse=True):
        for axis in range(rank):
            yield free | {v: _without(s, axis) for v, s in shapes.items() if len(s) == rank}
            yield {v: _dropped(x, sorts.get(v, ""), axis, rank) for v, x in free.items()}
    for extent in sorted({d for d in every if isinstance(d, int) and d != 1}):
        for less in (1, 2, 3):
            yield {v: _replaced(x, sorts.get(v, ""), extent, less) for v, x in free.items()}
    texts = (x for v, x in free.items() if sorts.get(v) == "String")
    for dtype in dict.fromkeys(x for x in texts if x in _DTYPES):
        for other in _DTYPES[: _DTYPES.index(dtype)]:
            yield {v: other if x == dtype else x for v, x in free.items()}
    sized = _of_fixed_length(instance)
    for variable, value in free.items():
        for simpler in _simpler(value, sorts.get(variable, "")):
            if variable not in sized or len(simpler) == len(value):
                yield free | {variable: simpler}
    yield from (free | fewer for fewer in (*_pairs(shapes), *_swapped(shapes)))


def _pairs(shapes: Mapping[str, Shape]) -> Iterator[Values]:
    """Candidates with two smaller extents, such as channels of the input and of the weight."""
    places = [
        (v, k) for v, s in shapes.items() for k, d in enumerate(s) if isinstance(d, int) and d > 1
    ]
    for (v, k), (w, m) in combinations(places, 2):
        a, b = int(shapes[v][k]), int(shapes[w][m])
        for x, y in ((1, 1), *((a // f, b // f) for f in _FACTORS if a % f == b % f == 0)):
            first = {v: _put(shapes[v], k, x)}
            yield first | {w: _put(first.get(w, shapes[w]), m, y)}


def _swapped(shapes: Mapping[str, Shape]) -> Iterator[Values]:
    """Candidates with two extents swapped, in one shape or in all shapes of a rank."""
    for rank in {len(s) for s in shapes.values()}:
        for k in range(rank - 1):
            other = {
                v: (*s[:k], s[k + 1], s[k], *s[k + 2 :])
                for v, s in shapes.items()
                if len(s) == rank
            }
            yield other
            yield from ({v: s} for v, s in other.items())


_FACTORS = (2, 3, 5, 7)


def _put(shape: Shape, at: int, extent: Dim) -> Shape:
    return (*shape[:at], extent, *shape[at + 1 :])


def _of_fixed_length(instance: Instance) -> set[Arg]:
    """Vector attributes with one item for each spatial axis, such as strides."""
    return {
        arg
        for node in instance.problem.nodes
        if node.op is not None
        for attr, arg in zip(node.op.attrs, node.args[len(node.op.operands) :], strict=True)
        if instance.problem.sorts.get(str(arg)) == "Axes" and "ax" not in attr.name
    }


def _without(items: tuple[Any, ...], at: int) -> tuple[Any, ...]:
    return (*items[:at], *items[at + 1 :])


def _dropped(value: Any, sort: str, axis: int, rank: int) -> Any:
    """`value` of a variable after tensors of `rank` lose an axis."""
    match sort:
        case "Shape" if len(value) == rank:
            return _without(value, axis)
        case "Axes" if value and max(value) < rank and rank > 1:
            return tuple(a - (a > axis) for a in value if a != axis or len(value) == 1)
        case "i64" if axis < value < rank:
            return value - 1
        case _:
            return value


def _substituted(value: Any, sort: str, name: str, extent: int) -> Any:
    def one(d: Dim) -> Dim:
        if isinstance(d, int):
            return d
        return dims.canonical(d.subs({s: extent for s in d.free_symbols if str(s) == name}))

    if sort == "Shape":
        return tuple(map(one, value))
    return one(value) if sort == "Dim" else value


def _replaced(value: Any, sort: str, extent: int, less: int) -> Any:
    if sort == "Shape":
        return tuple(less if d == extent else d for d in value)
    return less if sort == "Dim" and value == extent else value


def _simpler(value: Any, sort: str) -> Iterator[Any]:
    match sort:
        case "Shape":
            for at, extent in enumerate(value):
                yield _without(value, at)
                for less in (1, 2, 3, 4):
                    if extent != less:
                        yield (*value[:at], less, *value[at + 1 :])
        case "Axes":
            for at, item in enumerate(value):
                yield _without(value, at)
                for less in range(min(item, 4)):
                    yield (*value[:at], less, *value[at + 1 :])
            if value:
                yield (1,) * len(value)
                yield (0,) * len(value)
        case "i64":
            yield from (k for k in (0, 1, 2, 3) if abs(k) < abs(value) or value < 0)
        case "Dim":
            yield from (1, 2, 3)
        case "f64":
            yield from (k for k in _PLAIN if k != value)
        case "bool" if value:
            yield False
        case "String" if value in _DTYPES:
            yield from _DTYPES[: _DTYPES.index(value)]
        case _:
            pass


_PLAIN = (0.0, 1.0, 2.0, -1.0, 3.0, 0.5)
_USUAL = ("float32", "int32", "float64", "int64", "uint8", "bool")
_DTYPES = (*_USUAL, *(d for d in DTYPES if d not in _USUAL))


def _size(free: Values, sorts: Mapping[str, str]) -> tuple[float, ...]:
    """A sort key: counts of symbols, axes, extents of 0, extents, attributes, and rare dtypes.

    The last item prefers large extents on the last axes.
    """
    symbols = zeros = axes = extents = attributes = dtypes = front = 0.0
    for variable, value in free.items():
        parts = value if isinstance(value, tuple) else (value,)
        axes += len(parts) if parts is value else 0
        for place, part in enumerate(parts):
            match part:
                case bool():
                    attributes += part
                case int() if sorts.get(variable) in ("Shape", "Dim"):
                    extents += part
                    front += part * (len(parts) - place)
                    zeros += part == 0
                case int():
                    attributes += abs(part)
                case float():
                    attributes += _rank(part, _PLAIN)
                case str():
                    dtypes += _rank(part, _DTYPES) if part in _DTYPES else bool(part)
                case sympy.Expr():
                    symbols += 1
                    extents += 2
                case _:
                    pass
    return symbols, axes, zeros, extents, attributes, dtypes, front


def _rank(value: Any, order: tuple[Any, ...]) -> int:
    return order.index(value) if value in order else len(order)

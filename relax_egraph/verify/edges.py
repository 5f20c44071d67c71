"""Instances with an empty axis, or of halves: what is wrong there only is seldom drawn."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from relax_egraph.ir.dtypes import is_float, scalar
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.failures.shrink import completed, free_values
from relax_egraph.verify.instances.draw import Instance

_VARIED, _MOST = 4, 8
"""So many instances are varied, and so many instances are made of them at most."""

_LONG, _LARGEST = 1500, 40_000
"""The extent of a long axis, and the most elements of a tensor that has it."""

_USUAL = ("float32", "float64", "int32", "int64")
"""Dtypes in which a value of nothing is told from 0: the least of them is none."""


def with_empty_axes(instances: Sequence[Instance]) -> Iterator[Instance]:
    """Of the first instances of usual dtypes one for each axis that can be empty."""
    usual = (i for i in instances if _is_usual(i))
    return islice(_varied(islice(usual, _VARIED)), _MOST)


def in_halves(instances: Sequence[Instance]) -> Iterator[Instance]:
    """The first instances of usual floating-point dtypes, with float16 in their place.

    Two of three have a long axis, if one can be: over many elements a sum is beyond float16.
    """
    return islice(filter(_is_representable, _narrowed(instances)), _MOST)


def _narrowed(instances: Iterable[Instance]) -> Iterator[Instance]:
    for number, instance in enumerate(instances):
        free, sorts = free_values(instance), instance.problem.sorts
        halves = {
            v: "float16"
            for v, x in free.items()
            if sorts.get(v) == "String" and x in ("float32", "float64")
        }
        if not halves:
            continue
        longer = _with_long_axis(free, sorts) if number % 3 else dict[str, Any]()
        for changed in (longer, dict[str, Any]())[not longer :]:
            found = completed(free | halves | changed, instance)
            if found is not None and (not changed or _is_small(found)):
                yield found
                break


def _with_long_axis(free: Mapping[str, Any], sorts: Mapping[str, str]) -> dict[str, Any]:
    """All shapes with the last extent of the first one as long as may be."""
    shapes: dict[str, Shape] = {v: x for v, x in free.items() if sorts.get(v) == "Shape"}
    extent = next((s[-1] for s in shapes.values() if s), 1)
    if not isinstance(extent, int) or extent < 2:
        return {}
    return {v: tuple(_LONG if d == extent else d for d in s) for v, s in shapes.items()}


def _is_small(instance: Instance) -> bool:
    """Whether no tensor of it is large, of those that a rule makes, too."""
    known = (instance.values.get(s) for s in instance.problem.shapes.values() if isinstance(s, str))
    sizes = (math.prod(d if isinstance(d, int) else 5 for d in s) for s in known if s is not None)
    return max(sizes, default=0) <= _LARGEST


def _is_representable(instance: Instance) -> bool:
    """Whether float16 has the numbers that its tensors are said to be."""
    problem = instance.problem
    for variable, constant in problem.scalars.items():
        known = constant if isinstance(constant, str) else None
        number = instance.values.get(known) if known else getattr(constant, "value", None)
        if not isinstance(number, float) or problem.dtypes[variable] not in instance.values:
            continue
        dtype = instance.values[str(problem.dtypes[variable])]
        if is_float(dtype) and not np.array_equal(scalar(number, dtype), number, equal_nan=True):
            return False
    return True


def _is_usual(instance: Instance) -> bool:
    problem = instance.problem
    leaves = [t for t in problem.shapes if t in problem.needed and t not in problem.made]
    return all(instance.info(t).dtype in _USUAL for t in leaves)


def _varied(instances: Iterable[Instance]) -> Iterator[Instance]:
    for instance in instances:
        free, sorts = free_values(instance), instance.problem.sorts
        shapes = {v: x for v, x in free.items() if sorts.get(v) == "Shape"}
        for variable, shape in shapes.items():
            for axis, extent in enumerate(shape):
                one = {variable: (*shape[:axis], 0, *shape[axis + 1 :])}
                # of shapes that share a symbol one alone must not change: it could be that, and 0
                every = one if isinstance(extent, int) else _without_symbols(shapes)
                found = completed(free | every, instance) if extent != 0 else None
                if found is not None:
                    yield found


def _without_symbols(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """`shapes` with nothing along each axis whose extent is a symbol."""
    return {v: tuple(d if isinstance(d, int) else 0 for d in s) for v, s in shapes.items()}

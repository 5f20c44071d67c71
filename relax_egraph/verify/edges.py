"""Edge instances, which random draws seldom produce: empty axes and float16."""

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
"""The number of instances that are varied, and the most edge instances."""

_LONG, _LARGEST = 1500, 40_000
"""The extent of a long axis, and the most elements of a tensor with such an axis."""

_USUAL = ("float32", "float64", "int32", "int64")
"""Dtypes with a least value other than 0: the maximum of no elements differs from 0 in them."""


def with_empty_axes(instances: Sequence[Instance]) -> Iterator[Instance]:
    """Copies of the first instances of usual dtypes, one for each axis that can be empty."""
    usual = (i for i in instances if _is_usual(i))
    return islice(_varied(islice(usual, _VARIED)), _MOST)


def in_halves(instances: Sequence[Instance]) -> Iterator[Instance]:
    """Copies of the first floating-point instances in float16.

    Two of three have a long axis, if possible: sums of many elements overflow float16.
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
            narrowed = completed(free | halves | changed, instance)
            if narrowed is not None and (not changed or _is_small(narrowed)):
                yield narrowed
                break


def _with_long_axis(free: Mapping[str, Any], sorts: Mapping[str, str]) -> dict[str, Any]:
    """All shapes, with a long axis in place of the last extent of the first shape."""
    shapes: dict[str, Shape] = {v: x for v, x in free.items() if sorts.get(v) == "Shape"}
    extent = next((s[-1] for s in shapes.values() if s), 1)
    if not isinstance(extent, int) or extent < 2:
        return {}
    return {v: tuple(_LONG if d == extent else d for d in s) for v, s in shapes.items()}


def _is_small(instance: Instance) -> bool:
    """Whether all tensors of an instance are small, the results of a rule included."""
    known = (instance.values.get(s) for s in instance.problem.shapes.values() if isinstance(s, str))
    sizes = (math.prod(d if isinstance(d, int) else 5 for d in s) for s in known if s is not None)
    return max(sizes, default=0) <= _LARGEST


def _is_representable(instance: Instance) -> bool:
    """Whether the constants of an instance are numbers of float16."""
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
    leaves = [t for t in problem.shapes if t in problem.needed and t not in problem.producers]
    return all(instance.info(t).dtype in _USUAL for t in leaves)


def _varied(instances: Iterable[Instance]) -> Iterator[Instance]:
    for instance in instances:
        free, sorts = free_values(instance), instance.problem.sorts
        shapes = {v: x for v, x in free.items() if sorts.get(v) == "Shape"}
        for variable, shape in shapes.items():
            for axis, extent in enumerate(shape):
                one = {variable: (*shape[:axis], 0, *shape[axis + 1 :])}
                # one of several shapes that share a symbol must not change alone: n could be 0
                every = one if isinstance(extent, int) else _without_symbols(shapes)
                varied = completed(free | every, instance) if extent != 0 else None
                if varied is not None:
                    yield varied


def _without_symbols(shapes: Mapping[str, Shape]) -> dict[str, Shape]:
    """`shapes` with extent 0 in place of each symbol."""
    return {v: tuple(d if isinstance(d, int) else 0 for d in s) for v, s in shapes.items()}

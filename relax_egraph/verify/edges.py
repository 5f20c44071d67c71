"""Instances with an empty axis, made of others: what is wrong there only is seldom drawn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.failures.shrink import completed, free_values
from relax_egraph.verify.instances.draw import Instance

_VARIED, _MOST = 4, 8
"""So many instances are varied, and so many instances are made of them at most."""

_USUAL = ("float32", "float64", "int32", "int64")
"""Dtypes in which a value of nothing is told from 0: the least of them is none."""


def with_empty_axes(instances: Sequence[Instance]) -> Iterator[Instance]:
    """Of the first instances of usual dtypes one for each axis that can be empty."""
    usual = (i for i in instances if _is_usual(i))
    return islice(_varied(islice(usual, _VARIED)), _MOST)


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

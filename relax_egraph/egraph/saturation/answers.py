"""Evaluation of engine functions: the values that rules demand, computed between two iterations.

There is one demand for each distinct argument (`rulebook.calls`); the value stays in the table of
the function, which rules read.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from relax_egraph.egraph.bindings import FrozenRow
from relax_egraph.egraph.encoding import literals
from relax_egraph.egraph.functions.function import FUNCTIONS, Function
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.egraph.rulebook.calls import ASKED
from relax_egraph.errors import SaturationError


def asked(sizes: Mapping[str, int], before: Mapping[str, int]) -> tuple[Function, ...]:
    """The functions with new demands, by the sizes of the demand tables now and `before`."""
    return tuple(
        function
        for name, function in FUNCTIONS.items()
        if sizes.get(ASKED + name, 0) > before.get(ASKED + name, 0)
    )


def values_asked(functions: Iterable[Function], tables: Tables) -> Iterator[str]:
    """Actions that add the demanded values of `functions` to their tables.

    Raises `SaturationError` if a function fails.
    """
    return (action for function in functions for action in _values(function, tables))


def _values(function: Function, tables: Tables) -> Iterator[str]:
    known = {tuple(row.inputs) for row in tables.rows(function.name)}
    for row in tables.rows(ASKED + function.name):
        if tuple(row.inputs) not in known:
            args = _arguments(function, row, tables)
            value = None if args is None else function.value(args)
            if args is not None and value is not None:
                sorts = (sort for _, sort in function.params)
                written = " ".join(_written(s, a) for s, a in zip(sorts, args, strict=True))
                result = _written(function.result, value)
                yield f"(set ({function.name} {written}) {result})"


def _arguments(function: Function, row: FrozenRow, tables: Tables) -> tuple[Any, ...] | None:
    """The arguments in a row; ``None`` if a dimension among them has no canonical text."""
    try:
        pairs = zip(function.params, row.inputs, strict=True)
        return tuple(tables.decode(sort, value) for (_, sort), value in pairs)
    except KeyError:
        return None


def _written(sort: str, value: Any) -> str:
    match sort:
        case "Dim":
            return literals.dim(value)
        case "Shape":
            return literals.shape(value)
        case _:
            text = literals.attribute(sort, value)
            if text is None:
                raise SaturationError(f"{value!r} is of no sort {sort}")
            return text

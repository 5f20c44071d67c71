"""Conflicts: contradictory facts of one class."""

from collections.abc import Mapping

from relax_egraph.egraph.bindings import EGraph
from relax_egraph.egraph.commands import run_text
from relax_egraph.egraph.readback.tables import Tables
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import Shape, shape_text

_RELATIONS = ("shape-conflict", "dtype-conflict", "operand-conflict")


def find_conflict(egraph: EGraph, sizes: Mapping[str, int]) -> str | None:
    """The first conflict, as a sentence without its subject; ``None`` if there is none.

    `sizes` has the number of rows of each table.  Shapes that only sympy proves equal are no
    conflict; their dimensions are united in the e-graph.
    """
    if not any(sizes.get(relation) for relation in _RELATIONS):
        return None
    tables = Tables(egraph)
    for row in tables.rows("shape-conflict"):
        first, second = (tables.decode("Shape", v) for v in row.inputs[1:])
        if not _unite_if_equal(egraph, first, second):
            return unequal_shapes(first, second)
    for row in tables.rows("dtype-conflict"):
        first, second = (tables.decode("String", v) for v in row.inputs[1:])
        if first != second:
            return f"equates values of dtypes {first} and {second}"
    for row in tables.rows("operand-conflict"):
        name = tables.decode("String", row.inputs[1])
        first, second = (tables.decode("Shape", v) for v in row.inputs[2:])
        if not _unite_if_equal(egraph, first, second):
            shapes = f"{shape_text(first)} and {shape_text(second)}"
            return (
                f"applies {name} to shapes {shapes}; a rule writes the broadcast out, "
                "(R.broadcast_to x s)"
            )
    return None


def unequal_shapes(first: Shape, second: Shape) -> str:
    """The sentence for a class whose values have two different shapes."""
    return f"equates values of shapes {shape_text(first)} and {shape_text(second)}"


def _unite_if_equal(egraph: EGraph, first: Shape, second: Shape) -> bool:
    """Whether the shapes are equal for all values of their symbols; if so, unites their dims."""
    if first == second:
        return True
    if len(first) != len(second):
        return False
    if not all(dims.equal(a, b) for a, b in zip(first, second, strict=True)):
        return False
    for a, b in zip(first, second, strict=True):
        run_text(egraph, f'(union (DimSym "{dims.text(a)}") (DimSym "{dims.text(b)}"))')
    return True

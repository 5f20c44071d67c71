"""Conflicts: what the facts of one class contradict each other in."""

from dataclasses import dataclass

from egglog.bindings import EGraph

from relax_egraph.egraph.session import run_text
from relax_egraph.egraph.tables import Tables
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import Shape, shape_text

RELATIONS = ("shape-conflict", "dtype-conflict", "operand-conflict")


@dataclass(frozen=True, slots=True)
class Conflict:
    """Two facts that cannot both be; `says` completes a sentence that begins with a rule."""

    says: str


def find_conflict(egraph: EGraph) -> Conflict | None:
    """A conflict among the rows of the conflict relations, or ``None`` if there is none.

    Shapes that the e-graph could not prove equal, but sympy can, are made equal.
    """
    tables = Tables(egraph)
    for row in tables.rows("shape-conflict"):
        first, second = (tables.decode("Shape", v) for v in row.inputs[1:])
        if not _made_equal(egraph, first, second):
            return Conflict(
                f"equates values of shapes {shape_text(first)} and {shape_text(second)}"
            )
    for row in tables.rows("dtype-conflict"):
        first, second = (tables.decode("String", v) for v in row.inputs[1:])
        if first != second:
            return Conflict(f"equates values of dtypes {first} and {second}")
    for row in tables.rows("operand-conflict"):
        name = tables.decode("String", row.inputs[1])
        first, second = (tables.decode("Shape", v) for v in row.inputs[2:])
        if not _made_equal(egraph, first, second):
            shapes = f"{shape_text(first)} and {shape_text(second)}"
            return Conflict(
                f"applies {name} to shapes {shapes}; a rule writes the broadcast out, "
                "(R.broadcast_to x s)"
            )
    return None


def _made_equal(egraph: EGraph, first: Shape, second: Shape) -> bool:
    """Whether the shapes are equal for all values of their symbols; the e-graph then learns it."""
    if first == second:
        return True
    if len(first) != len(second):
        return False
    if not all(dims.equal(a, b) for a, b in zip(first, second, strict=True)):
        return False
    for a, b in zip(first, second, strict=True):
        run_text(egraph, f'(union (DimSym "{dims.text(a)}") (DimSym "{dims.text(b)}"))')
    return True

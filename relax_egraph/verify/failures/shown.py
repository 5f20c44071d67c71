"""Text of an instance, and of the difference between its sides."""

from typing import Any

from relax_egraph.egraph.rulebook.forms import symbols, written
from relax_egraph.egraph.rulebook.rule import Direction
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import shape_text, tensor
from relax_egraph.verify.instances.draw import Instance
from relax_egraph.verify.instances.problem import VALUES
from relax_egraph.verify.instances.query import spelled
from relax_egraph.verify.values.classes import Difference
from relax_egraph.verify.values.inputs import Array

_MOST = 24
"""The largest array whose elements are printed."""


def names_of(pattern: Direction, instance: Instance) -> dict[str, str]:
    """By variable of the instance, the name of the variable in the rule."""
    names: dict[str, str] = {}
    for name in (atom.text for tree in pattern.matched for atom in symbols(tree)):
        known = instance.problem.names.get(name, name)
        if isinstance(known, str):
            names.setdefault(known, name)
    return names


def operands(pattern: Direction, instance: Instance) -> list[str]:
    """Lines for the leaves with their elements, attributes, terms of other rules, and extents."""
    problem, names = instance.problem, names_of(pattern, instance)
    order = [*names, *(v for v in problem.needed if v not in names)]
    rule = " ".join(map(written, pattern.matched))
    lines: list[str] = []
    for variable in dict.fromkeys(order):
        name = names.get(variable) or spelled(variable)
        sort, node = problem.sorts.get(variable, ""), problem.producers.get(variable)
        if sort in VALUES and node is None and variable in problem.needed:
            lines.append(f"{name}: {instance.info(variable)}{_elements(instance, variable)}")
        elif sort in VALUES and node is not None and node.text not in rule:
            lines.append(f"{name} = {node.text}")
        elif variable in names and sort not in VALUES and variable in instance.values:
            lines.append(f"{name} = {_value(sort, instance.values[variable])}")
    return lines + [f"{name} = {extent}" for name, extent in sorted(instance.extents.items())]


def _elements(instance: Instance, variable: str) -> str:
    constant = instance.problem.scalars.get(variable)
    if constant is not None:
        return f", each element {instance.get(constant)}"
    array = instance.arrays.get(variable)
    return "" if array is None else _elements_text(array)


def _elements_text(array: Array) -> str:
    return f" = {array_text(array)}" if 0 < array.size <= _MOST else ""


def _value(sort: str, value: Any) -> str:
    match sort:
        case "Shape":
            return shape_text(value)
        case "Dim":
            return dims.text(value)
        case _:
            return repr(value)


def array_text(array: Array) -> str:
    """All elements as nested lists, in the fewest digits that are distinct in their dtype."""
    if not array.ndim:
        return str(array[()])
    return f"[{', '.join(map(array_text, array))}]"


def results(difference: Difference) -> list[str]:
    """Lines for the values of both sides, in full if small, and for the largest difference."""
    left, right, at = difference.left, difference.right, difference.at
    if left is None or right is None:
        known = [] if left is None else [f"left is {_form(left)}"]
        return [*known, ("right has no value: " if known else "") + difference.problem]
    if at is None:
        return [f"left is {_form(left)}", f"right is {_form(right)}"]
    whole: list[str] = []
    if 1 < left.size <= _MOST:
        whole = [f"left is {array_text(left)}", f"right is {array_text(right)}"]
    place = f"at {list(at)} " if at else ""
    return [*whole, f"{place}left is {left[at]}, right is {right[at]}"]


def _form(array: Array) -> str:
    return f"{tensor(array.shape, array.dtype.name)}{_elements_text(array)}"

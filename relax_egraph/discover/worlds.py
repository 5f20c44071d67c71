"""Worlds: shapes, attributes and elements for the variables of terms.

A term has a value in each world in which its operators accept their operands.  All tensor variables
of a world have one shape, so that renaming variables changes no equation.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from relax_egraph.discover.terms import Literal as Written
from relax_egraph.discover.terms import Number, ShapeOf, Term, Variable, Vector
from relax_egraph.egraph.rulebook.vocabulary import Param
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import Shape

Array: TypeAlias = np.ndarray[Any, Any]

TENSORS = tuple(map(Variable, "xyzvw"))
"""Tensor variables, in the order in which terms use them."""

_ATTRIBUTES: Mapping[str, tuple[Term, ...]] = {
    "Axes": (Variable("a", "Axes"), Variable("b", "Axes")),
    "bool": (Variable("keep", "bool"), Written("bool", True), Written("bool", False)),
    "i64": (Variable("k", "i64"),),
    "Shape": (Variable("s", "Shape"), Variable("u", "Shape")),
}
"""The attributes that terms have, by sort."""

_OF_OPERATORS: Mapping[tuple[str, str], tuple[Term, ...]] = {
    ("R.permute_dims", "axes"): (Variable("p", "Axes"), Written("Axes", (1, 0))),
    ("R.strided_slice", "begin"): (Variable("begin", "Shape"),),
    ("R.strided_slice", "end"): (Variable("end", "Shape"),),
    ("R.strided_slice", "strides"): (Written("Axes", (1,)),),
    ("R.strided_slice", "assume_inbound"): (Written("bool", False),),
}
"""The attributes of operators that have others, by operator and name."""

SORTS = ("Tensor", "Tensors", *_ATTRIBUTES)
"""The sorts of arguments of operators that terms may have; of tensors that are joined, two."""


def attributes(
    head: str, param: Param, operands: Sequence[Variable], axes: Sequence[int]
) -> tuple[Term, ...]:
    """The attributes `param` of the operator `head`, over the variables of its operands.

    `axes` are those of matrices that may be written out.
    """
    if (head, param.name) in _OF_OPERATORS:
        return _OF_OPERATORS[head, param.name]
    written = tuple(Written("i64", axis) for axis in axes)
    known = tuple(v for v in operands if v.sort == "i64")
    of_operands: Mapping[str, tuple[Term, ...]] = {
        "Axes": tuple(Vector((axis,)) for axis in (*known, *written)),
        "i64": written,
        "Shape": tuple(ShapeOf(v) for v in operands if v.sort == "Tensor"),
    }
    return (*_ATTRIBUTES[param.sort], *of_operands.get(param.sort, ()))


@dataclass(frozen=True, slots=True)
class World:
    """The shape of all tensor variables, the sizes of its symbols, and attributes by variable.

    Elements are ``mixed``, or ``few``: 0, 1, -1 and 2, so that many are equal.
    """

    shape: Shape
    sizes: Mapping[str, int]
    attributes: Mapping[str, Any]
    elements: Literal["mixed", "few"] = "mixed"

    @property
    def is_generic(self) -> bool:
        """Whether tensors have axes, none of extent 0 or 1."""
        return min((dims.evaluate(d, self.sizes) for d in self.shape), default=0) > 1

    def attribute(self, term: Term) -> Any:
        """The value of an attribute."""
        match term:
            case Variable(name):
                return self.attributes[name]
            case Written(value=value):
                return value
            case ShapeOf():
                return self.shape
            case Vector(items):
                return tuple(map(self.attribute, items))
            case _:
                raise TypeError(f"{term} is not an attribute")

    def tensor(self, term: Variable | Number) -> Array:
        """The elements of a variable, or of a number."""
        shape = tuple(dims.evaluate(d, self.sizes) for d in self.shape)
        if isinstance(term, Number):
            return np.full(shape, term.value)
        rng = np.random.default_rng([*map(ord, term.name), len(self.sizes), *shape])
        if self.elements == "few":
            return rng.choice((0.0, 1.0, -1.0, 2.0), shape)
        return rng.integers(-40, 41, shape) / 8.0  # sums and products of these are exact


def _world(
    shape: Sequence[str],
    sizes: Mapping[str, int],
    shapes: tuple[Sequence[str], Sequence[str]],
    axes: tuple[tuple[int, ...], tuple[int, ...]],
    permutation: tuple[int, ...],
    keep: bool,
    k: int,
    elements: Literal["mixed", "few"] = "mixed",
) -> World:
    (s, u), (a, b) = (tuple(map(dims.parse, t)) for t in shapes), axes
    begin, end = ((1,), (2,)) if elements == "few" else ((0,), (1,))
    values = {"s": s, "u": u, "a": a, "b": b, "p": permutation, "keep": keep}
    values |= {"k": k, "begin": begin, "end": end}
    return World(tuple(map(dims.parse, shape)), sizes, values, elements)


_ROWS = ("n", "m")

WORLDS = (
    _world(_ROWS, {"n": 3, "m": 5}, (("m", "n"), ("n*m",)), ((0,), (1,)), (1, 0), False, 1),
    _world(_ROWS, {"n": 4, "m": 3}, (("n*m",), ("n", "m")), ((1,), (0,)), (0, 1), True, 1, "few"),
    _world(("1", "m"), {"n": 3, "m": 4}, (("n", "m"), ("m",)), ((0, 1), (0,)), (1, 0), True, 1),
    _world(("n", "n"), {"n": 3}, (("n*n",), ("n", "n")), ((1,), (0,)), (1, 0), False, 0),
    _world(("m", "m"), {"m": 4}, (("m*m",), ("m", "m")), ((0,), (1,)), (0, 1), True, 0, "few"),
    _world(("n",), {"n": 7}, (("1", "n"), ("n", "1")), ((0,), (0,)), (0,), False, 0),
    _world(("0", "m"), {"m": 2}, (("m", "0"), ("0",)), ((0,), (1,)), (1, 0), False, 1),
    _world(("n", "0"), {"n": 3}, (("0", "n"), ("0",)), ((0,), (1,)), (1, 0), False, 0),
    _world((), {}, (("1",), ("1", "1")), ((), ()), (), True, 0),
)
"""The worlds in which terms are compared: ranks 0 to 2, extents 0, 1, odd and even ones."""

"""Functions of rules on symbolic shapes: their values, and what holds where they have one.

A function that looks at whether extents are equal has no value for different symbols.  Here each
case in which it has one is chosen, with the equations that hold in it.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.prove.choices import Choices, Impossible
from relax_egraph.prove.extents import Extents

Meaning: TypeAlias = Callable[..., Any]
"""The value of a function, for the choices and the extents of a run, and the arguments."""


MOST_PLACES = 5
"""No list or shape of an instance is longer."""


def position_on(choices: Choices, extents: Extents, position: Dim, extent: Dim) -> Dim:
    """The position from the front: it is within the axis, beyond it, or counts from its end."""

    def may_be(place: str) -> bool:
        a, b = (position, 0) if place == "from the end" else (-1, position)
        return not dims.prove_ge(a, b)

    label = f"{position} on {extent}"
    match choices.of(label, ("within", "beyond", "from the end"), may_be):
        case "within":
            extents.at_least(position, 0)
            extents.at_least(extent, position)
            return position
        case "beyond":
            extents.at_least(position, extent)
            return extent
        case _:
            extents.at_least(-1, position)
            extents.at_least(dims.add(extent, position), 0)
            return dims.add(extent, position)


def varying_axes(choices: Choices, extents: Extents, part: Shape, whole: Shape) -> tuple[int, ...]:
    """The axes along which extents are equal; the others are 1 in the part."""
    added = len(whole) - len(part)
    if added < 0:
        raise Impossible
    varying: list[int] = []
    for k, (a, b) in enumerate(zip(part, whole[added:], strict=True)):

        def may_vary(varies: bool, a: Dim = a, b: Dim = b) -> bool:
            if dims.equal(a, b):
                return varies
            return not dims.distinct(a, b if varies else 1)

        # of every axis, as the answers are kept by the order of the questions
        if choices.of(f"varies along {k}: {a} and {b}", (True, False), may_vary):
            extents.equate(a, b)
            varying.append(k + added)
        else:
            extents.equate(a, 1)
    return tuple(varying)


def common_shape(choices: Choices, extents: Extents, first: Shape, second: Shape) -> Shape:
    """The larger of two shapes, if the other is empty, or lacks only leading extents of 1."""
    small, large = sorted((first, second), key=len)
    if small:
        before = len(large) - len(small)
        for a, b in zip(small, large[before:], strict=True):
            extents.equate(a, b)
        for d in large[:before]:
            extents.equate(d, 1)
    return large


def bias_shape(choices: Choices, extents: Extents, bias: Shape, scores: Shape) -> Shape:
    """The shape (batch, head, query, key) of a bias that is broadcast to the shape of scores."""
    if not 1 <= len(bias) <= len(scores) <= 4:
        raise Impossible
    extents.equate(bias[-1], scores[-1])
    if len(scores) == 3 and len(bias) == 3:
        return (bias[0], 1, *bias[1:])
    return (1,) * (4 - len(bias)) + bias


def axis_without(choices: Choices, extents: Extents, shape: Shape, left: Shape) -> int:
    """An axis of extent 1 without which `shape` is `left`."""
    if len(shape) != len(left) + 1:
        raise Impossible
    axis = choices.of(f"axis of {shape} that {left} lacks", range(len(shape)))
    extents.equate(shape[axis], 1)
    for a, b in zip(shape[:axis] + shape[axis + 1 :], left, strict=True):
        extents.equate(a, b)
    return axis


def only_units_move(
    choices: Choices, extents: Extents, shape: Shape, permutation: tuple[int, ...]
) -> bool:
    """Whether a permutation of `shape` keeps the order of all axes of extent other than 1."""
    if len(shape) != len(permutation):
        raise Impossible
    units: set[int] = set()
    for k, d in enumerate(shape):
        if choices.of(f"axis {k} of {shape} is 1", (False, True)):
            extents.equate(d, 1)
            units.add(k)
    moved = [a for a, k in zip(permutation, range(len(shape)), strict=True) if k not in units]
    return moved == sorted(moved)


def number_of(choices: Choices, extents: Extents, dim: Dim) -> Dim:
    """The number of a dimension: a place in a list or a shape, one beyond all of them, or below."""
    if isinstance(dim, int):
        return dim

    def may_be(number: int | str) -> bool:
        if number == "negative":
            return not dims.prove_ge(dim, 0)
        return number == "beyond" or not dims.distinct(dim, int(number))

    options = (*range(MOST_PLACES), "beyond", "negative")
    match choices.of(f"number of {dim}", options, may_be):
        case "beyond":
            extents.at_least(dim, MOST_PLACES)
            return dim
        case "negative":
            extents.at_least(-1, dim)
            return dim
        case number:
            extents.equate(dim, int(number))
            return int(number)


def all_zero(choices: Choices, extents: Extents, numbers: tuple[Dim, ...]) -> bool:
    """Whether all are 0."""
    return _all_are(choices, extents, numbers, 0)


def all_one(choices: Choices, extents: Extents, numbers: tuple[Dim, ...]) -> bool:
    """Whether all are 1."""
    return _all_are(choices, extents, numbers, 1)


def _all_are(choices: Choices, extents: Extents, numbers: tuple[Dim, ...], value: int) -> bool:
    """Whether all numbers are `value`; nothing is assumed where they are not."""
    if any(dims.distinct(n, value) for n in numbers):
        return False
    if all(dims.equal(n, value) for n in numbers):
        return True
    if not choices.of(f"all of {numbers} are {value}", (True, False)):
        return False
    for n in numbers:
        extents.equate(n, value)
    return True


def shape_of_parts(
    choices: Choices, extents: Extents, shape: Shape, parts: Dim, axis: int
) -> Shape:
    """The shape of equal parts: the extent is a multiple of their number."""
    if not 0 <= axis < len(shape):
        raise Impossible
    extents.divides(parts, shape[axis])
    return (parts, *shape[:axis], dims.floordiv(shape[axis], parts), *shape[axis + 1 :])


def axis_before_reshape(
    choices: Choices, extents: Extents, before: Shape, after: Shape, parts: Dim, axis: int
) -> int:
    """An axis of equal parts, with as many elements before it as `axis` has after the reshape."""
    if not 0 <= axis < len(after):
        raise Impossible
    place = choices.of(f"axis of {before} at {axis} of {after}", range(len(before)))
    extents.divides(parts, before[place])
    extents.divides(parts, after[axis])
    extents.equate(dims.product(before[:place]), dims.product(after[:axis]))
    return place


def axis_before_broadcast(
    choices: Choices, extents: Extents, before: Shape, after: Shape, axis: int
) -> int:
    """The axis that is not repeated: its extents are equal."""
    place = axis - (len(after) - len(before))
    if not 0 <= place < len(before):
        raise Impossible
    extents.equate(before[place], after[axis])
    return place


def is_repeated_along(
    choices: Choices, extents: Extents, before: Shape, after: Shape, axis: int
) -> bool:
    """Whether a broadcast adds the axis, or repeats one of extent 1."""
    place = axis - (len(after) - len(before))
    if place < 0:
        return True
    if place >= len(before) or not choices.of(f"{before} is repeated along {axis}", (True, False)):
        return False
    extents.equate(before[place], 1)
    return True


MEANINGS: Mapping[str, Meaning] = {
    "position-on": position_on,
    "varying-axes": varying_axes,
    "common-shape": common_shape,
    "bias-shape": bias_shape,
    "axis-without": axis_without,
    "only-units-move": only_units_move,
    "number-of": number_of,
    "all-zero": all_zero,
    "all-one": all_one,
    "shape-of-parts": shape_of_parts,
    "axis-before-reshape": axis_before_reshape,
    "axis-before-broadcast": axis_before_broadcast,
    "is-repeated-along": is_repeated_along,
}
"""The functions that look at whether extents are equal, or how large they are."""

BLIND = frozenset(
    (
        *("inverse-of", "axes-before", "permutation-without", "axes-of-both", "units-of"),
        *("dims-of", "product-along", "shape-without", "shape-keeping", "axis-of"),
        *("layout-permuted", "layout-before", "dtype-holds"),
        *("with-units-behind-parts", "axes-of-parts", "permutation-of-parts"),
        "axis-before-reduction",
    )
)
"""The functions whose value does not depend on extents."""

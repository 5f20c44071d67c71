"""Slices at numbered places, written from symbols on: equal time steps become equal views.

Steps of an unrolled loop differ in the places that they read: ``x[13:14]`` and ``x[14:15]`` in one,
``x[18:19]`` and ``x[19:20]`` in another.  Both are ``x[at:at + 1]`` and ``x[at + 1:at + 2]``, at 13
and at 18.  What rules prove of that view holds for each value of the symbol in its range, as with
any symbol of a shape: so it holds for all steps.  Slices of one value along one axis are written
from one symbol on, and rules see which of them are adjacent or overlap.  They do not see where the
value begins and ends: an axis of which a slice reaches an end keeps its numbers.
"""

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, cast

from relax_egraph.egraph.encoding.signature import signature
from relax_egraph.egraph.node import LEAF, Attrs, Node
from relax_egraph.egraph.view import ClassId, EClass, ENode, View
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Var
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, tensor
from relax_egraph.ir.symbol_ranges import Assumptions, Range, active, assuming, symbol

Axis: TypeAlias = tuple[ClassId, int]
"""A class, and one of its axes."""

Slice: TypeAlias = Mapping[Axis, tuple[int, int]]
"""The places of a class that a node reads: from the first up to the second, along each axis."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A `view` over symbols, which have the values `at`, each within its range of `ranges`."""

    view: View
    at: Mapping[str, int] = field(default_factory=dict[str, int])
    ranges: tuple[tuple[str, Range], ...] = ()


@contextmanager
def within(source: Placed) -> Generator[None]:
    """Assume that the places of `source` are within their ranges, beside what is assumed."""
    known = active() or Assumptions()
    with assuming(replace(known, ranges=tuple(sorted((*known.ranges, *source.ranges))))):
        yield


def placed(views: Sequence[View], symbols: Callable[[], Collection[str]]) -> list[Placed]:
    """Each of `views`, over symbols of places where several are equal so at different places.

    The symbols are new: none of `symbols`.
    """
    written = [Placed(view) for view in views]
    slices = [_inner(view, _slices(view)) for view in views]
    if sum(map(bool, slices)) < 2:
        return written
    prefix = _prefix(symbols())
    forms = [_placed(view, own, prefix) for view, own in zip(views, slices, strict=True)]
    keys = [signature(form.view) if form.at else None for form in forms]
    places: dict[object, set[tuple[int, ...]]] = {None: set()}
    for key, form in zip(keys, forms, strict=True):
        places.setdefault(key, set()).add(tuple(form.at.values()))
    return [
        form if key is not None and len(places[key]) > 1 else one
        for key, form, one in zip(keys, forms, written, strict=True)
    ]


def _slices(view: View) -> dict[ClassId, Slice]:
    """What the classes of `view` that are slices of variables from outside read of these."""
    found: dict[ClassId, Slice] = {}
    for number, eclass in view.classes.items():
        (node,) = eclass.nodes
        if node.op in ("strided_slice", "take") and _is_variable(view, node.operands[0]):
            read = _taken(view, node) if node.op == "take" else _sliced(view, node)
            if read:
                found[number] = read
    return found


def _inner(view: View, slices: Mapping[ClassId, Slice]) -> dict[ClassId, Slice]:
    """`slices` along the axes of which none reaches an end."""
    reached = {
        axis
        for read in slices.values()
        for axis, (begin, end) in read.items()
        if not _is_inside(_extent(view, axis), begin, end)
    }
    inner = {
        number: {axis: places for axis, places in read.items() if axis not in reached}
        for number, read in slices.items()
    }
    return {number: read for number, read in inner.items() if read}


def _is_inside(extent: Dim, begin: int, end: int) -> bool:
    return isinstance(extent, int) and 0 < begin < end < extent


def _extents(view: View, number: ClassId) -> Shape:
    return view.classes[number].struct_info.dims or ()


def _extent(view: View, axis: Axis) -> Dim:
    return _extents(view, axis[0])[axis[1]]


def _is_variable(view: View, number: ClassId) -> bool:
    (node,) = view.classes[number].nodes
    known = view.classes[number].struct_info.dims is not None
    return known and node.op == LEAF and isinstance(view.leaves[node.key], Var)


def _sliced(view: View, node: ENode) -> Slice | None:
    """What a slice reads; ``None`` if it has a stride, or a place that is no number."""
    attrs: dict[str, Any] = dict(node.attrs)
    begin, end = node.children[1:]
    if not isinstance(begin, ShapeStructInfo) or not isinstance(end, ShapeStructInfo):
        return None
    read: dict[Axis, tuple[int, int]] = {}
    places = zip(attrs["axes"], begin.values or (), end.values or (), strict=True)
    for axis, first, last in places:
        if not isinstance(first, int) or not isinstance(last, int):
            return None
        read[node.operands[0], axis] = (first, last)
    return read if set(attrs["strides"]) == {1} else None


def _taken(view: View, node: ENode) -> Slice | None:
    """What an element at one known place reads; ``None`` for other indices."""
    source, index = node.operands
    place, extents = view.classes[index].scalar, view.classes[index].struct_info.dims
    if place is None or extents is None or any(n != 1 for n in extents):
        return None
    attrs: dict[str, Any] = dict(node.attrs)
    return {(source, attrs["axis"]): (int(place), int(place) + 1)}


def _prefix(taken: Collection[str]) -> str:
    """The beginning of the names of places: no name in `taken` has it."""
    prefix = "at"
    while any(name.startswith(prefix) for name in taken):
        prefix += "_"
    return prefix


def _placed(view: View, slices: Mapping[ClassId, Slice], prefix: str) -> Placed:
    """`view` with the slices `slices` from a symbol on for each axis."""
    ends: dict[Axis, tuple[int, int]] = {}
    for axis, (begin, end) in (pair for read in slices.values() for pair in read.items()):
        first, last = ends.get(axis, (begin, end))
        ends[axis] = min(first, begin), max(last, end)
    names = {axis: f"{prefix}{number}" for number, axis in enumerate(ends)}
    offsets = {axis: dims.sub(symbol(names[axis]), first) for axis, (first, _) in ends.items()}
    ranges = {
        names[axis]: Range(most=cast(int, _extent(view, axis)) - (last - first))
        for axis, (first, last) in ends.items()
    }
    classes = dict(view.classes)
    for number in slices:
        eclass = classes[number]
        if eclass.nodes[0].op == "take":
            classes[number], number, eclass = _reshaped(eclass, len(classes), view)
        classes[number] = replace(eclass, nodes=(_moved(eclass.nodes[0], offsets),))
    read = {c for eclass in classes.values() for node in eclass.nodes for c in node.operands}
    unread = classes.keys() - read - set(view.roots)
    classes |= {c: replace(classes[c], scalar=None) for c in unread}
    at = {names[axis]: first for axis, (first, _) in ends.items()}
    return Placed(replace(view, classes=classes), at, tuple(ranges.items()))


def _reshaped(taken: EClass, number: ClassId, view: View) -> tuple[EClass, ClassId, EClass]:
    """The class `taken` as a reshape of class `number`, a slice, and that class."""
    (node,) = taken.nodes
    ((source, axis), places), *_ = (_taken(view, node) or {}).items()
    extents, result = _extents(view, source), taken.struct_info.dims or ()
    begin, end = (ShapeStructInfo((place,), 1) for place in places)
    attrs: Attrs = (("axes", (axis,)), ("strides", (1,)), ("assume_inbound", False))
    info = tensor((*extents[:axis], 1, *extents[axis + 1 :]), taken.struct_info.dtype)
    part = EClass(taken.sort, (Node("strided_slice", (source, begin, end), attrs),), info)
    shape = ShapeStructInfo(result, len(result))
    return replace(taken, nodes=(Node("reshape", (number, shape)),)), number, part


def _moved(node: ENode, offsets: Mapping[Axis, Dim]) -> ENode:
    """A slice, by the `offsets` of the axes that have one."""
    attrs: dict[str, Any] = dict(node.attrs)
    source, *ends = node.children
    by = [offsets.get((cast(ClassId, source), axis), 0) for axis in attrs["axes"]]

    def moved(end: Any) -> ShapeStructInfo:
        return replace(end, values=tuple(map(dims.add, end.values, by)))

    return replace(node, children=(source, *map(moved, ends)))

"""Sequences and optionals.

A sequence of known length is a tuple, others are objects of the machine; an optional is its value,
or null.
"""

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.elements import MOST
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.block_builder import call, call_packed
from relax_egraph.ir.expr import Expr, PrimValue, Tuple, TupleGetItem, const
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    StructInfo,
    TupleStructInfo,
    tensor,
)


@converts("SequenceConstruct")
def construct(node: Node) -> Expr:
    """A sequence of the operands."""
    return Tuple(tuple(node.all()))


@converts("SequenceEmpty")
def empty(node: Node) -> Expr:
    """An empty sequence."""
    return Tuple(())


@converts("SequenceInsert")
def insert(node: Node) -> Expr:
    """The sequence with a value inserted, by default at the end."""
    fields, value = _fields(node[0]), node[1]
    if not node.has(2):
        return (
            _packed(node, "append", node[0], value) if fields is None else Tuple((*fields, value))
        )
    at = _place(node, 2)
    if fields is None or at is None:
        return _packed(node, "insert", node[0], value, node[2])
    return Tuple((*fields[:at], value, *fields[at:]))


@converts("SequenceErase")
def erase(node: Node) -> Expr:
    """The sequence without a value, by default without the last one."""
    fields = _fields(node[0])
    at = _place(node, 1) if node.has(1) else -1
    if fields is None or at is None:
        position = node.get(1)
        return _packed(node, "erase", node[0], const(-1, "int64") if position is None else position)
    remaining = list(fields)
    if not -len(remaining) <= at < len(remaining):
        raise ModelError(f"position {at} of a sequence of {len(remaining)}")
    del remaining[at]
    return Tuple(tuple(remaining))


@converts("SequenceAt")
def at(node: Node) -> Expr:
    """The value at a position."""
    fields, place = _fields(node[0]), _place(node, 1)
    if fields is not None and place is not None:
        if not -len(fields) <= place < len(fields):
            raise ModelError(f"position {place} of a sequence of {len(fields)}")
        return fields[place]
    return node.bind(_call("at", node.item(0), node[0], node[1]))


@converts("SequenceLength")
def length(node: Node) -> Expr:
    """The length of a sequence."""
    fields = _fields(node[0])
    if fields is not None:
        return const(len(fields), "int64")
    return node.bind(_call("length", tensor((), "int64"), node[0]))


@converts("ConcatFromSequence")
def concat(node: Node) -> Expr:
    """The tensors of a sequence, concatenated, or stacked along a new axis."""
    fields, axis = _fields(node[0]), node.attrs.integer("axis")
    stacks = bool(node.attrs.integer("new_axis"))
    if fields:
        return node.emit("stack" if stacks else "concat", Tuple(fields), axis=axis)
    kind = node.item(0)
    if kind.dtype is None or kind.ndim < 0:
        raise ModelError("the tensors of the sequence have no known dtype and rank")
    if not stacks:
        out = tensor(None, kind.dtype, kind.ndim)
        return node.bind(_call("concat", out, node[0], PrimValue(axis)))
    raise ModelError("a sequence whose length is known only at run time is not stacked")


@converts("SplitToSequence")
def split(node: Node) -> Expr:
    """The parts of a tensor along an axis: of explicit extents, of one extent, or single slices."""
    axis = node.axis()
    x, sizes = node[0], node.integers(1)
    extent = node.shape(0)[axis]
    keepdims = bool(node.attrs.integer("keepdims")) or node.has(1)
    info = node.info(1) if node.has(1) else None
    if isinstance(extent, int) and (not node.has(1) or sizes is not None):
        bounds = _bounds(extent, sizes, info is not None and info.ndim == 0)
        pieces = node.emit("split", x, indices_or_sections=bounds, axis=axis)
        parts = node.fields(pieces)
        return Tuple(
            parts if keepdims else tuple(node.emit("squeeze", p, axis=axis) for p in parts)
        )
    part_sizes = const(1, "int64") if not node.has(1) else node[1]
    return node.bind(
        _call("split", ObjectStructInfo(), x, part_sizes, PrimValue(axis), PrimValue(int(keepdims)))
    )


def _bounds(extent: int, sizes: tuple[int, ...] | None, one: bool) -> tuple[int, ...]:
    if sizes is None or one:
        each = 1 if sizes is None else sizes[0]
        if each < 1 or extent > MOST * each:
            raise ModelError(f"parts of {each} of {extent}: needs from 1 to {MOST} parts")
        return tuple(range(each, extent, each))
    if sum(sizes) != extent:
        raise ModelError(f"the parts are {list(sizes)} of {extent}")
    return tuple(sum(sizes[: k + 1]) for k in range(len(sizes) - 1))


@converts("Optional")
def optional(node: Node) -> Expr:
    """The operand, or none."""
    return node[0] if node.has(0) else node.bind(call("null_value"))


@converts("OptionalHasElement")
def has_element(node: Node) -> Expr:
    """Whether there is a value."""
    if not node.has(0):
        return const(False, "bool")
    if not isinstance(node[0].struct_info, ObjectStructInfo):
        return const(True, "bool")
    is_null = call_packed("vm.builtin.is_null", (node[0],), (tensor((), "bool"),), pure=True)
    return node.emit("logical_not", node.bind(is_null))


@converts("OptionalGetElement")
def get_element(node: Node) -> Expr:
    """The value, which must be present."""
    return node[0]


def _fields(sequence: Expr) -> tuple[Expr, ...] | None:
    """The values of a sequence of known length."""
    if isinstance(sequence, Tuple):
        return sequence.fields
    info = sequence.struct_info
    if not isinstance(info, TupleStructInfo):
        return None
    return tuple(TupleGetItem(sequence, k) for k in range(len(info.fields)))


def _place(node: Node, place: int) -> int | None:
    """Operand `place` as a position, if it is constant."""
    known = node.integers(place)
    return None if known is None else known[0]


def _packed(node: Node, name: str, *operands: Expr) -> Expr:
    return node.bind(_call(name, ObjectStructInfo(), *operands))


def _call(name: str, out: StructInfo, *operands: Expr) -> Expr:
    return call_packed(f"vm.builtin.sequence_{name}", operands, (out,), pure=True)

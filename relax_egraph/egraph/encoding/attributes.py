"""Canonical attributes of operators in the e-graph, with a special value for None.

Axes are explicit and count from the front; sets of axes ascend.  A split has indices instead of a
number of sections.  A layout or dtype of the result is None if it is that of the operands.
"""

import math
from collections.abc import Mapping, Sequence

from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import AttrKind, AttrParam, Op, complete_attrs
from relax_egraph.ir.ops.join import split_bounds
from relax_egraph.ir.ops.manipulate import unit_axes
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo, TupleStructInfo

SORT_OF_ATTR: Mapping[AttrKind, str] = {
    "int": "i64",
    "ints": "Axes",
    "int or ints": "Axes",
    "float": "f64",
    "floats": "Floats",
    "bool": "bool",
    "str": "String",
}
"""The sort of each kind of attribute."""

_NOTHING: Mapping[AttrKind, Attr] = {"int": -1, "str": "", "floats": ()}
"""The encodings of None for optional attributes; no canonical value equals one of these."""

_SETS = frozenset(
    ("sum", "max", "min", "mean", "prod", "variance", "std", "median", "squeeze", "expand_dims")
)
"""Operators whose axes are a set."""

_WITH_NEW_AXIS = frozenset(("stack", "one_hot"))
"""Operators whose axis is an axis of the result, which has one more than the operand."""

_WITHOUT_PARTS = frozenset(("dist.all_gather",))
"""Operators whose axis is an axis of the result, which lacks the axis of parts."""

_OPERAND: Mapping[str, int] = {"grad.take_backward": 1}
"""The number of the operand whose axes are meant, if it is not the first one."""

_AXES = ("axis", "axes", "channel_axis", "seq_axis", "batch_axis")


def said(attr: AttrParam, value: Attr) -> Attr:
    """The encoding of `value` in the e-graph."""
    return _NOTHING.get(attr.kind) if value is None else value


def meant(attr: AttrParam, value: Attr) -> Attr:
    """The attribute that `value` encodes: the inverse of `said`."""
    nothing = attr.optional and attr.kind in _NOTHING and value == _NOTHING[attr.kind]
    return None if nothing else value


def canonical_attrs(
    op: Op, attrs: Mapping[str, Attr], operands: Sequence[StructInfo]
) -> tuple[tuple[str, Attr], ...] | None:
    """Complete canonical attributes; ``None`` if an omitted one is known at run time only."""
    complete = complete_attrs(op, attrs)
    first = _first(operands[_OPERAND.get(op.name, 0) :])
    for name in _AXES:
        if name in complete:
            complete[name] = _axes(op, name, complete[name], first)
    match op.name:
        case "split":
            complete["indices_or_sections"] = _indices(complete, first)
        case "strided_slice" if complete["strides"] is None:
            complete["strides"] = (1,) * len(_ints(complete["axes"]))
        case "nn.attention" | "nn.attention_bias" if complete["scale"] is None:
            complete["scale"] = _scale(first)
        case _:
            pass
    layout = complete.get("data_layout", complete.get("layout"))
    if "out_layout" in complete and complete["out_layout"] == layout:
        complete["out_layout"] = None
    if "out_dtype" in complete and complete["out_dtype"] in ("", "void", first.dtype):
        complete["out_dtype"] = None
    for attr in op.attrs:
        if complete[attr.name] is None and attr.kind not in _NOTHING:
            return None
    return tuple(complete.items())


def _first(operands: Sequence[StructInfo]) -> TensorStructInfo:
    """The first operand, or the first of its tensors."""
    first = operands[0] if operands else None
    if isinstance(first, TupleStructInfo) and first.fields:
        first = first.fields[0]
    return first if isinstance(first, TensorStructInfo) else TensorStructInfo()


def _axes(op: Op, name: str, value: Attr, first: TensorStructInfo) -> Attr:
    """Explicit axes, counted from the front, for an operand with the rank of `first`."""
    rank = first.ndim
    if op.name == "expand_dims":
        rank += len(_ints(value))
    elif op.name in _WITH_NEW_AXIS:
        rank += 1
    elif op.name in _WITHOUT_PARTS:
        rank -= 1
    match value:
        case None if op.name == "squeeze":
            return unit_axes(first.dims)
        case None if op.name == "permute_dims":
            return tuple(reversed(range(rank)))
        case None if op.name == "median" and rank == 1:
            return None  # with an explicit axis, the result is a tuple
        case None if op.name in _SETS:
            return tuple(range(rank))
        case None if op.name == "take":
            return 0
        case int() if rank > 0:
            return value % rank
        case tuple():
            places = [int(a) % rank if rank > 0 else int(a) for a in value]
            return tuple(sorted(places) if op.name in _SETS else places)
        case _:
            return value


def _indices(attrs: Mapping[str, Attr], first: TensorStructInfo) -> Attr:
    """The indices of a split; ``None`` if they depend on symbols."""
    sections, axis = attrs["indices_or_sections"], attrs["axis"]
    if isinstance(sections, tuple):
        return sections
    if first.dims is None or not isinstance(sections, int) or not isinstance(axis, int):
        return None
    bounds = split_bounds(first.dims[axis], sections)[1:-1]
    known = tuple(b for b in bounds if isinstance(b, int))
    return known if len(known) == len(bounds) else None


def _scale(query: TensorStructInfo) -> Attr:
    """The default scale of attention: 1 / √(head size), if the size is a number."""
    size = query.dims[-1] if query.dims else None
    return 1 / math.sqrt(size) if isinstance(size, int) and size > 0 else None


def _ints(value: Attr) -> tuple[int, ...]:
    return tuple(int(a) for a in value) if isinstance(value, tuple) else ()

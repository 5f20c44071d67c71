"""Proposals of values for the empty slots of a node."""

from collections.abc import Mapping

from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.expr import PrimValue
from relax_egraph.verify.instances.choices import any_attribute, near_shape
from relax_egraph.verify.instances.contraction import CONTRACTION
from relax_egraph.verify.instances.known import Known
from relax_egraph.verify.instances.movement import MOVEMENT
from relax_egraph.verify.instances.quantization import QUANTIZATION
from relax_egraph.verify.instances.slots import MISSING, Slots

_PROPOSALS = {**MOVEMENT, **CONTRACTION, **QUANTIZATION}
"""By operator, a proposal of operands and attributes that fit together."""

_LATE = 6
"""The attempt after which proposals have unusual dtypes more often."""


def propose(slots: Slots, known: Known, attempt: int) -> None:
    """Fill all slots; raises `Fails` if one would get two values."""
    op = slots.node.op
    assert op is not None
    if op.name in _PROPOSALS:
        _PROPOSALS[op.name](slots)
    _operands(slots, known, attempt)
    shapes = [slots.shape(o.name) for o in op.operands if o.kind == "tensor"]
    rank = len(shapes[0]) if shapes and shapes[0] is not None else 2
    for attr in op.attrs:
        arg = slots.arg(attr.name)
        if slots.get(arg) is not MISSING:
            continue
        near = known.beside(arg)
        value = any_attribute(attr, rank, slots.palette)
        if isinstance(value, tuple):
            value = slots.hinted(arg, value)
        use_near = near and slots.palette.chance(0.5)
        slots.put(arg, slots.random.choice(near) if use_near else value)


def _operands(slots: Slots, known: Known, attempt: int) -> None:
    node, palette = slots.node, slots.palette
    assert node.op is not None
    known_or_none = (slots.shape(o.name) for o in node.op.operands if o.kind == "tensor")
    shapes = [s for s in known_or_none if s is not None]
    for operand, arg in zip(node.op.operands, node.args, strict=False):
        match operand.kind:
            case "tensor" if not known.none(str(arg)):
                if slots.shape(operand.name) is None:
                    slots.give(operand.name, near_shape(shapes, palette))
                _dtype(slots, str(arg), operand.name, attempt)
            case "tensors":
                for t in slots.tensors(operand.name):
                    if slots.get(slots.problem.shapes[t]) is MISSING:
                        slots.put(slots.problem.shapes[t], near_shape(shapes, palette))
                    _dtype(slots, t, operand.name, attempt)
            case "shape" if slots.get(arg) is MISSING:
                slots.put(arg, slots.hinted(arg, near_shape(shapes, palette), True))
            case "prim" if slots.get(arg) is MISSING:
                optional = None if operand.optional else PrimValue(1)
                choices = [PrimValue(0), PrimValue(1), PrimValue(palette.static(1)), optional]
                slots.put(arg, palette.random.choice(choices))
            case _:
                pass


def _dtype(slots: Slots, variable: str, operand: str, attempt: int) -> None:
    """Fill the dtype of a leaf, mostly with the dtype of the instance."""
    arg = slots.problem.dtypes[variable]
    if variable in slots.problem.producers or slots.get(arg) is not MISSING:
        return
    usual = _DTYPE_OF.get(operand, (slots.palette.dtype,))
    odd = slots.palette.chance(0.5 if attempt > _LATE else 0.04)
    slots.put(arg, slots.random.choice(DTYPES if odd else usual))


_DTYPE_OF: Mapping[str, tuple[str, ...]] = {
    "indices": ("int64", "int32"),
    "condition": ("bool",),
    "mask": ("bool",),
    "seq_lengths": ("int64",),
    "labels": ("int64",),
    "targets": ("int64",),
}
"""Dtypes of operands that usually differ from the other operands."""

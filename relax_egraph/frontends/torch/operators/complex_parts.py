"""Operators of complex numbers that do the same to real and imaginary parts."""

from collections.abc import Mapping
from typing import Any

from relax_egraph.frontends.building.complex_parts import Parts, each
from relax_egraph.frontends.torch.complex_numbers import of_part, operand
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.creation import filled
from relax_egraph.frontends.torch.registry import Result, converter_of, converts_complex
from relax_egraph.ir.expr import Expr

_OVERLOADS: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("self",): (
        *("aten.view.default", "aten.reshape.default", "aten._unsafe_view.default"),
        *("aten.alias.default", "aten.clone.default", "aten.contiguous.default"),
        *("aten.detach.default", "aten.lift_fresh.default", "aten.lift_fresh_copy.default"),
        *("aten.permute.default", "aten.expand.default", "aten.squeeze.dim", "aten.squeeze.dims"),
        *("aten.unsqueeze.default", "aten.flip.default", "aten.roll.default"),
        *("aten.repeat.default", "aten.unfold.default", "aten.slice.Tensor", "aten.select.int"),
        *("aten.index_select.default", "aten.index.Tensor", "aten._unsafe_index.Tensor"),
        *("aten.gather.default", "aten.as_strided.default", "aten.diagonal.default"),
        *("aten.tril.default", "aten.triu.default", "aten.constant_pad_nd.default"),
        *("aten.neg.default", "aten.sum.default", "aten.sum.dim_IntList", "aten.cumsum.default"),
        *("aten.mean.default", "aten.mean.dim", "aten.split_with_sizes.default"),
    ),
    ("self", "other"): (
        *("aten.where.self", "aten.where.ScalarOther"),
        *("aten.where.ScalarSelf", "aten.where.Scalar"),
    ),
    ("self", "src"): (
        *("aten.copy.default", "aten.slice_scatter.default", "aten.select_scatter.default"),
        *("aten.diagonal_scatter.default", "aten.as_strided_scatter.default"),
        *("aten.scatter.src", "aten.scatter_add.default"),
    ),
    ("self", "value"): ("aten.scatter.value",),
    ("self", "values"): ("aten.index_put.default", "aten._unsafe_index_put.default"),
    ("tensors",): ("aten.cat.default",),
    ("a", "self"): ("aten._assert_tensor_metadata.default",),
}
"""The overloads that treat parts alike, by their arguments that have parts."""

_PARTED = {name: arguments for arguments, names in _OVERLOADS.items() for name in names}


@converts_complex(*_PARTED)
def by_parts(node: Node) -> Result:
    """The same operator on real parts and on imaginary parts."""
    converter = converter_of(node.op)
    assert converter is not None
    made: list[Any] = [
        converter(of_part(node, _PARTED[node.op], which)) for which in ("real", "imag")
    ]
    if isinstance(made[0], Expr):
        return Parts(*made)
    return [Parts(*pair) for pair in zip(*made, strict=True)]


_WHOLE: Mapping[str, str] = {
    "aten.full.default": "fill_value",
    "aten.full_like.default": "fill_value",
    "aten.new_full.default": "fill_value",
    "aten.fill.Scalar": "value",
    "aten.fill.Tensor": "value",
    "aten.scalar_tensor.default": "s",
}
"""Overloads that make tensors of one number, with its name."""


@converts_complex(*_WHOLE)
def full(node: Node) -> Parts:
    """One number everywhere."""
    value = operand(node, _WHOLE[node.op])
    zero = node.scalar(0, node.out_dtype)
    return each(Parts(value.real, value.imag or zero), lambda part: filled(node, part))


@converts_complex("aten._to_copy.default", "prims.convert_element_type.default")
def converted(node: Node) -> Result:
    """The operand with parts of another dtype; as real numbers, its real part."""
    value = operand(node, "a" if node.op.startswith("prims.") else "self")
    out = node.metas["out"]
    return value if out.is_complex() else value.real

"""Fourier transforms along some axes."""

import math
from collections.abc import Callable

from relax_egraph.frontends.building import fourier
from relax_egraph.frontends.building.complex_parts import Parts, each
from relax_egraph.frontends.building.dim_tensors import number_of
from relax_egraph.frontends.torch.complex_numbers import operand
from relax_egraph.frontends.torch.node import Node, normalized
from relax_egraph.frontends.torch.registry import converts_complex
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr


@converts_complex("aten._fft_r2c.default")
def of_reals(node: Node) -> Parts:
    """The transform of real numbers; along the last of the axes, half of it if it is one-sided."""
    x, axes = Parts(node["self"]), _axes(node)
    lengths = [node.shape("self")[axis] for axis in axes]
    last, count = lengths[-1], lengths[-1]
    if node.flag("onesided"):
        count = dims.add(dims.floordiv(last, 2), 1)
    x = _along(node, x, axes[-1], lambda y: fourier.transformed(node, y, last, count=count))
    x = _each_axis(node, x, axes[:-1], lengths[:-1], inverse=False)
    return _scaled(node, x, lengths)


@converts_complex("aten._fft_c2c.default")
def of_complex(node: Node) -> Parts:
    """The transform, or its inverse."""
    x, axes = operand(node, "self"), _axes(node)
    lengths = [node.out_shape[axis] for axis in axes]
    return _scaled(node, _each_axis(node, x, axes, lengths, not node.flag("forward")), lengths)


@converts_complex("aten._fft_c2r.default")
def into_reals(node: Node) -> Expr:
    """The inverse transform into real numbers, from half of it along the last of the axes."""
    x, axes = operand(node, "self"), _axes(node)
    lengths = [node.out_shape[axis] for axis in axes]
    x = _each_axis(node, x, axes[:-1], lengths[:-1], inverse=True)
    last = lengths[-1]
    made = _along(node, x, axes[-1], lambda y: Parts(fourier.real_of_half(node, y, last)))
    return _scaled(node, made, lengths).real


def _axes(node: Node) -> list[int]:
    rank = len(node.out_shape)
    return [normalized(axis, rank) for axis in node.integers("dim")]


def _each_axis(node: Node, x: Parts, axes: list[int], lengths: list[Dim], inverse: bool) -> Parts:
    for axis, length in zip(axes, lengths, strict=True):
        x = _along(node, x, axis, _whole(node, length, inverse))
    return x


def _whole(node: Node, length: Dim, inverse: bool) -> Callable[[Parts], Parts]:
    return lambda x: fourier.transformed(node, x, length, inverse=inverse)


def _along(node: Node, x: Parts, axis: int, transform: Callable[[Parts], Parts]) -> Parts:
    """`transform`, which is along the last axis, along `axis`."""
    rank = len(node.out_shape)
    order = (*(k for k in range(rank) if k != axis), axis)
    if axis == rank - 1:
        return transform(x)
    back = tuple(order.index(k) for k in range(rank))
    made = transform(each(x, lambda part: node.emit("permute_dims", part, axes=order)))
    return each(made, lambda part: node.emit("permute_dims", part, axes=back))


_BY_ROOT, _BY_COUNT = 1, 2
"""How torch scales transforms: by the root of the count of numbers, or by the count."""


def _scaled(node: Node, x: Parts, lengths: list[Dim]) -> Parts:
    kind, dtype = node.integer("normalization"), node.out_dtype
    if kind not in (_BY_ROOT, _BY_COUNT):
        return x
    count = dims.product(lengths)
    if isinstance(count, int):
        scale: Expr = node.scalar(math.sqrt(count) if kind == _BY_ROOT else count, dtype)
    else:
        scale = number_of(node, count, dtype)
        scale = node.emit("sqrt", scale) if kind == _BY_ROOT else scale
    return each(x, lambda part: node.emit("divide", part, scale))

"""Values of terms in worlds, and their fingerprints."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeAlias, cast

import numpy as np

from relax_egraph.discover.terms import Apply, Number, Term, Variable, Vector, is_of_matrices
from relax_egraph.discover.worlds import WORLDS, Array, World
from relax_egraph.egraph.encoding.constructors import constructors
from relax_egraph.egraph.node import Node
from relax_egraph.errors import RelaxEgraphError
from relax_egraph.ir import dims
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.operators import named
from relax_egraph.ir.struct_info import ShapeStructInfo, TensorStructInfo, tensor

DTYPE = "float32"
"""The dtype that terms have in rules; values are computed in float64."""

_BITS, _ZERO = 30, 1e-9
"""The bits of a number that a fingerprint has, and the magnitude of numbers that it has as 0."""


_MATRIX = 2
"""The rank of a matrix, the highest of all worlds."""


@dataclass(frozen=True, slots=True)
class Value:
    """The struct info and the elements of a term in one world."""

    info: TensorStructInfo
    elements: Array


Values: TypeAlias = tuple[Value | None, ...]
"""The values of a term by world; ``None`` where an operator refuses its operands."""

Fingerprint: TypeAlias = tuple[bytes | None, ...]
"""A digest of the value in each world: equal for values that differ by rounding in float64."""


def leaf_values(term: Variable | Number) -> Values:
    """The values of a variable, or of a number."""
    return tuple(Value(tensor(w.shape, DTYPE), w.tensor(term)) for w in WORLDS)


def values_of(term: Apply, values: Callable[[Term], Values]) -> Values:
    """The values of `term`, where `values` has those of its operands."""
    ranks = (_MATRIX,) if is_of_matrices(term) else range(_MATRIX + 1)
    return tuple(
        _value(term, w, k, values) if len(w.shape) in ranks else None for k, w in enumerate(WORLDS)
    )


def node_of(term: Apply, world: World, operand: Callable[[Term], Any]) -> Node[Any]:
    """`term` in `world` as a node over the results of `operand`."""
    constructor = constructors()[term.head]

    def argument(sort: str, arg: Term) -> Any:
        if sort == "Tensors" and isinstance(arg, Vector):
            return tuple(map(operand, arg.items))
        return operand(arg) if sort == "Tensor" else world.attribute(arg)

    pairs = zip(constructor.params, term.args, strict=True)
    return constructor.node([argument(param.sort, arg) for param, arg in pairs])


def _value(term: Apply, world: World, k: int, values: Callable[[Term], Values]) -> Value | None:
    node = node_of(term, world, lambda arg: values(arg)[k])
    if None in node.children or None in node.operands:
        return None
    op = named(node.op)
    attrs = dict(node.attrs)
    try:
        info = op.rule(*node.infos(lambda value: value.info), **attrs)
        if not isinstance(info, TensorStructInfo) or info.dims is None:
            return None
        if op.elementwise and any(v.info.dims != info.dims for v in node.operands):
            return None  # rules write broadcasts out
        result = apply_op(op, [_argument(c, world.sizes) for c in node.children], attrs)
    except RelaxEgraphError:
        return None
    elements = np.asarray(result)
    if elements.size and not np.isfinite(elements).any():
        return None  # x / 0: equations of infinities are no rules
    return Value(info, elements)


def _argument(child: Any, sizes: Mapping[str, int]) -> Any:
    """A child of a node as an argument of the reference."""
    if isinstance(child, tuple):
        return tuple(_argument(each, sizes) for each in cast(tuple[Any, ...], child))
    if isinstance(child, ShapeStructInfo):
        return tuple(dims.evaluate(d, sizes) for d in child.values or ())
    return child.elements


def fingerprint_of(values: Values) -> Fingerprint:
    """The fingerprint of a term."""
    return tuple(None if value is None else _digest(value.elements) for value in values)


def _digest(elements: Array) -> bytes:
    """A digest of `elements`, rounded; zeros of both signs, and all NaN, are alike."""
    mantissa, exponent = np.frexp(np.where(np.abs(elements) < _ZERO, 0.0, elements))
    rounded = np.ldexp(np.round(np.ldexp(mantissa, _BITS)), exponent - _BITS) + 0.0
    rounded = np.where(np.isnan(rounded), np.nan, rounded)
    shape = np.array(elements.shape, np.int64)
    return blake2b(shape.tobytes() + rounded.tobytes(), digest_size=12).digest()

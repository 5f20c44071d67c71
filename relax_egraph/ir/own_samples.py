"""Agreement of the numpy function of a user's operator with its struct-info rule."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

import numpy as np

from relax_egraph.errors import IllTyped, OperatorError, RunError
from relax_egraph.ir.attributes import REQUIRED
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.matching import Value, as_result, check, describe, info_of
from relax_egraph.ir.op import Op, Operand
from relax_egraph.ir.struct_info import StructInfo

_SAMPLES = 16
"""The samples on which a definition is tried, of those that its rule accepts."""

_TRIED = 2000
"""The most samples that its rule is asked for."""

_EXTENTS = ((3, 2, 4, 5), (2, 2, 2, 2))

_ATTRS: Mapping[str, Any] = {
    **{"int": 1, "ints": (0,), "int or ints": (0,), "float": 1.0, "floats": ()},
    **{"bool": False, "str": "float32"},
}
"""A value of each kind of attribute, where there is no default."""


def check_samples(op: Op) -> None:
    """Raise `OperatorError` if numpy's result on samples is not what the rule of `op` says.

    A sample for which the function fails decides nothing, as it may need other values.
    """
    assert op.own
    for operands, attrs, info in islice(_accepted(op), _SAMPLES):
        try:
            with np.errstate(all="ignore"):
                result = op.own.reference(*operands, **attrs)
        except Exception:
            continue
        check_result(op, operands, result, info)


def check_own(op: Op, operands: Sequence[Value], attrs: Mapping[str, Attr], result: Any) -> None:
    """Raise `OperatorError` unless the `result` of numpy is what the rule says of `operands`."""
    infos = [o if o is None else info_of(o) for o in operands]
    infos += [None] * (len(op.operands) - len(infos))
    check_result(op, operands, result, op.rule(*infos, **attrs))


def check_result(op: Op, operands: Sequence[Value], result: Any, info: StructInfo) -> None:
    """Raise `OperatorError` unless the `result` of numpy has the struct info that the rule says."""
    value = as_result(result)
    try:
        check([("", info, value)], {})
    except RunError:
        given = ", ".join(str(info_of(o)) for o in operands if o is not None)
        raise OperatorError(
            f"{op} of {given}: its numpy function returns {describe(value)}, "
            f"and its rule says {info}: they must agree"
        ) from None


def _accepted(op: Op) -> Iterator[tuple[tuple[Value, ...], dict[str, Attr], StructInfo]]:
    """Operands and attributes that the rule of `op` accepts, with the struct info of the result."""
    attrs = {a.name: _ATTRS[a.kind] if a.default is REQUIRED else a.default for a in op.attrs}
    for operands in islice(_samples(op.operands), _TRIED):
        try:
            yield (
                operands,
                attrs,
                op.rule(*(o if o is None else info_of(o) for o in operands), **attrs),
            )
        except IllTyped:
            continue


def _samples(operands: Sequence[Operand]) -> Iterator[tuple[Value, ...]]:
    """Operands of ones: first all of one rank and dtype, then of any."""
    count = len(operands)
    alike = (((r, d),) * count for r in (2, 1, 3, 0) for d in ("float32", "float64", "int64"))
    mixed = product(product((2, 1, 3, 0), ("float32", "int64", "bool")), repeat=count)
    for kinds in (*alike, *mixed) if count < 3 else (*alike,):
        for extents in _EXTENTS:
            pairs = zip(operands, kinds, strict=True)
            yield tuple(_sample(o, extents[:rank], dtype) for o, (rank, dtype) in pairs)


def _sample(operand: Operand, shape: tuple[int, ...], dtype: str) -> Value:
    if operand.optional:
        return None
    match operand.kind:
        case "shape":
            return shape
        case "prim":
            return 1
        case "tensors":
            return (np.ones(shape, dtype), np.ones(shape, dtype))
        case _:
            return np.ones(shape, dtype)

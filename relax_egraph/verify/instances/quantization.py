"""Proposals for quantization: scale and zero point are numbers, or vectors along one axis."""

from collections.abc import Mapping

from relax_egraph.verify.instances.movement import Propose
from relax_egraph.verify.instances.slots import MISSING, Slots


def _quantize(s: Slots) -> None:
    data = s.fresh("data")
    axis = s.choose("axis", *(range(len(data)) or (0,)))
    along = (data[axis],) if 0 <= axis < len(data) else (1,)
    for name in ("scale", "zero_point"):
        if s.shape(name) is None:
            s.give(name, s.random.choice(((), along)))
    _integer(s, "zero_point")


def _dequantize(s: Slots) -> None:
    _quantize(s)
    _integer(s, "data")


def _integer(s: Slots, operand: str) -> None:
    """Fill the dtype of `operand` with int8 or uint8, unless it is known."""
    tensor = str(s.arg(operand))
    dtype = s.problem.dtypes[tensor]
    if tensor not in s.problem.producers and s.get(dtype) is MISSING:
        s.put(dtype, s.random.choice(("int8", "uint8")))


QUANTIZATION: Mapping[str, Propose] = {"quantize": _quantize, "dequantize": _dequantize}

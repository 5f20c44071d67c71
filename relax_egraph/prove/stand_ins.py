"""Floats that stand for symbolic numbers in the definitions of operators, which take floats."""

import math
from typing import NoReturn

from relax_egraph.prove import functions
from relax_egraph.prove.sums import Sum, add, scale

_EXPONENT = 78
"""That of `math.frexp` of all floats that stand for numbers."""


class StandIns:
    """The symbolic numbers of one proof; `known` are their values, by the floats for them."""

    def __init__(self) -> None:
        self.known: dict[float, Sum] = {}

    def of(self, value: Sum) -> float:
        """A float that stands for a number."""
        known = next((f for f, v in self.known.items() if v.key == value.key), None)
        made = StandIn(_made(len(self.known)) if known is None else known)
        made.all = self
        self.known.setdefault(made, value)
        return made

    def constant(self, value: float) -> float:
        """A number of a rule: `value`, or what stands for it if that may stand for another one."""
        if math.isfinite(value) and math.frexp(value)[1] == _EXPONENT:
            return self.of(functions.real(value))
        return value


class StandIn(float):
    """A float that stands for any number; of it Python computes no more than ``1 - x``."""

    all: StandIns

    def __rsub__(self, other: float) -> float:
        return self.all.of(add(functions.real(other), scale(self.all.known[self], -1)))

    def _refused(self, *_: object) -> NoReturn:
        raise TypeError("the definition of an operator computes with an attribute")

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = _refused
    __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = __abs__ = _refused
    __lt__ = __le__ = __gt__ = __ge__ = __bool__ = _refused


def _made(count: int) -> float:
    """A float that no definition has, exact in all dtypes of 32 and 64 bits."""
    return math.ldexp(1 + (2 * count + 1) / 8192, _EXPONENT - 1)

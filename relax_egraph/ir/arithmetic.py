"""Operators of Python on tensors of a program: ``x + 1`` is the call ``R.add(x, R.const(1, …))``.

A call is a value that no variable has yet: a builder binds it, ``bb.emit(x + 1)``.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from relax_egraph.errors import IllTyped
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.struct_info import TensorStructInfo

if TYPE_CHECKING:
    from relax_egraph.ir.expr import Call


class Arithmetic:
    """A tensor of a program, of which Python's arithmetic makes calls.

    Numbers and arrays become constants, numbers of the dtype of the tensor.  Comparisons are
    no operators: Python would take a call for true.
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy leaves ``array + x`` to `__radd__`

    def __add__(self, other: Any) -> "Call":
        return _call("add", self, self, other)

    def __radd__(self, other: Any) -> "Call":
        return _call("add", self, other, self)

    def __sub__(self, other: Any) -> "Call":
        return _call("subtract", self, self, other)

    def __rsub__(self, other: Any) -> "Call":
        return _call("subtract", self, other, self)

    def __mul__(self, other: Any) -> "Call":
        return _call("multiply", self, self, other)

    def __rmul__(self, other: Any) -> "Call":
        return _call("multiply", self, other, self)

    def __truediv__(self, other: Any) -> "Call":
        return _call("divide", self, self, other)

    def __rtruediv__(self, other: Any) -> "Call":
        return _call("divide", self, other, self)

    def __floordiv__(self, other: Any) -> "Call":
        return _call("floor_divide", self, self, other)

    def __rfloordiv__(self, other: Any) -> "Call":
        return _call("floor_divide", self, other, self)

    def __mod__(self, other: Any) -> "Call":
        return _call("mod", self, self, other)

    def __rmod__(self, other: Any) -> "Call":
        return _call("mod", self, other, self)

    def __pow__(self, other: Any) -> "Call":
        return _call("power", self, self, other)

    def __rpow__(self, other: Any) -> "Call":
        return _call("power", self, other, self)

    def __matmul__(self, other: Any) -> "Call":
        return _call("matmul", self, self, other)

    def __rmatmul__(self, other: Any) -> "Call":
        return _call("matmul", self, other, self)

    def __neg__(self) -> "Call":
        return _call("negative", self, self)

    def __lt__(self, other: Any) -> "Call":
        raise _comparison("less")

    def __le__(self, other: Any) -> "Call":
        raise _comparison("less_equal")

    def __gt__(self, other: Any) -> "Call":
        raise _comparison("greater")

    def __ge__(self, other: Any) -> "Call":
        raise _comparison("greater_equal")


def _call(name: str, tensor: Any, *operands: Any) -> Any:
    """The call of an operator; ``NotImplemented`` if an operand is no tensor and no number."""
    from relax_egraph.ir.expr import Call
    from relax_egraph.ir.op import OPS, infer

    read = [_operand(name, tensor, operand) for operand in operands]
    if None in read:
        return NotImplemented
    unresolved = Call(OPS[name], tuple(read))
    return replace(unresolved, struct_info=infer(unresolved))


def _operand(name: str, tensor: Any, operand: Any) -> Any:
    from relax_egraph.ir.expr import Constant, const

    if isinstance(operand, Arithmetic):
        return operand
    if isinstance(operand, np.ndarray | np.generic):
        return Constant(np.asarray(operand))
    if not isinstance(operand, bool | int | float):
        return None
    info = tensor.struct_info
    dtype = info.dtype if isinstance(info, TensorStructInfo) else None
    if dtype is None:
        raise IllTyped(
            f"R.{name} of {info} and {operand}: a number takes the dtype of the tensor, which is "
            "unknown; use const(number, dtype)"
        )
    if isinstance(operand, float) and not is_float(dtype):
        raise IllTyped(f"R.{name} of {info} and {operand}: {operand} is no {dtype}")
    return const(operand, dtype)


def _comparison(name: str) -> TypeError:
    return TypeError(f'Python takes what < compares for true: write call("{name}", x, y)')

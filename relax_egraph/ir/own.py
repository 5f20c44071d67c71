"""The record that an operator of a user has in place of entries in the tables of built-in ones."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

Reference: TypeAlias = Callable[..., Any]
Loops: TypeAlias = Callable[..., Any]
Work: TypeAlias = float | Callable[..., float]


@dataclass(frozen=True, slots=True)
class Packed:
    """A packed function that computes an operator.

    It returns the result, or writes tensors that follow its operands, if `into_results`.
    """

    name: str
    into_results: bool = False


@dataclass(frozen=True, slots=True)
class Own:
    """The meaning of an operator in numpy, its implementation, and its arithmetic.

    The implementation is `loops`, a function of tensor expressions, or a `packed` function; without
    one the machine runs `reference`.  `work` are flops for each element of the result, or a
    function of the extents of operands and result.
    """

    reference: Reference
    loops: Loops | None = None
    packed: Packed | None = None
    work: Work = 1.0

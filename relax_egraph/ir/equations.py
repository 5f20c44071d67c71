"""Equations between extents that the operands of an operator must satisfy.

They are the requirements of struct-info rules that only the run decides and without which the
operator refuses its operands: behind the call they hold.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.braces import braced
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Call
from relax_egraph.ir.op import Op, infer
from relax_egraph.ir.requirements import Requirement, denying, recording


@dataclass(frozen=True, slots=True)
class Equation:
    """``left == right``, or an extent of `repeated` is 1: an axis that is broadcast.

    `refusal` is the operator's message where the equation does not hold: see `ir.templates`.  If it
    `is_bound`, `left` is the maximum of `right` and a lower bound of it.
    """

    left: Dim
    right: Dim
    repeated: tuple[Dim, ...]
    refusal: str
    is_bound: bool = False


def equations_of(call: Call) -> Iterator[Equation]:
    """The equations that are needed for the operands of `call` and not proven.

    They come in the order in which the operator would refuse the operands.
    """
    if not isinstance(call.op, Op):
        return
    with recording() as undecided:
        infer(call)
    for requirement in dict.fromkeys(undecided):
        repeated = _repeated(requirement)
        refusal = None if repeated is None else _refusal_without(requirement, call)
        if repeated is not None and refusal is not None:
            left, is_bound = _left(requirement), requirement.kind == "window"
            yield Equation(left, requirement.b, repeated, refusal, is_bound)


def refusal_of(call: Call) -> str | None:
    """The operator's message if operands of known extents violate an equation."""
    with recording(false=True) as broken:
        try:
            infer(call)
        except IllTyped as refusal:
            last = broken[-1] if broken else None
            return str(refusal) if last and _repeated(last) is not None else None
    return None


def _repeated(requirement: Requirement) -> tuple[Dim, ...] | None:
    """The extents that may be 1 instead; ``None`` for a requirement that is no equation."""
    match requirement:
        case Requirement("==" | "window"):
            return ()
        case Requirement("stretch", a, _):
            return (a,)
        case Requirement("broadcast", a, b):
            return (a, b)
        case _:
            return None


def _left(requirement: Requirement) -> Dim:
    """The left side of the equation: ``max(a, b)`` for a window that needs `a` elements."""
    a, b = requirement.a, requirement.b
    return dims.maximum(a, b) if requirement.kind == "window" else a


def _refusal_without(requirement: Requirement, call: Call) -> str | None:
    """The rule's message where `requirement` is false; ``None`` if it does not refuse that."""
    with denying(requirement), braced():
        try:
            infer(call)
        except IllTyped as refusal:
            return str(refusal)
    return None

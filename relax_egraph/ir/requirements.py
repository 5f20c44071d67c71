"""Requirements of struct-info rules on extents: refused if false, recorded if undecided.

with recording() as undecided:
infer(call)              # raises `IllTyped` if a requirement is proven false
undecided                    # what `call` needs at run time, and may refuse there
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim

Kind: TypeAlias = Literal["==", "<=", "stretch", "broadcast", "window"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """``a == b``; ``a <= b``; `a` stretches to `b`: it is `b` or 1; one of both stretches.

    A ``"window"`` needs a length `a` of an axis of length `b`: ``a <= b``.
    """

    kind: Kind
    a: Dim
    b: Dim


_DENIED: ContextVar[Requirement | None] = ContextVar("denied", default=None)
_RECORD: ContextVar[tuple[list[Requirement] | None, bool]] = ContextVar(
    "requirements", default=(None, False)
)


@contextmanager
def recording(*, false: bool = False) -> Generator[list[Requirement]]:
    """Record undecided requirements in the list, or those that are proven `false`."""
    record: list[Requirement] = []
    token = _RECORD.set((record, false))
    try:
        yield record
    finally:
        _RECORD.reset(token)


@contextmanager
def denying(requirement: Requirement) -> Generator[None]:
    """Treat `requirement` as proven false, so that the rule refuses with its message."""
    token = _DENIED.set(requirement)
    try:
        yield
    finally:
        _DENIED.reset(token)


def differ(a: Dim, b: Dim) -> bool:
    """Require ``a == b``; whether that is proven false."""
    if dims.equal(a, b):
        return False
    return record("==", a, b, dims.distinct(a, b))


def misfits(a: Dim, b: Dim) -> bool:
    """Require that `a` is `b` or 1; whether that is proven false."""
    if a == 1 or dims.equal(a, b):
        return False
    return record("stretch", a, b, dims.distinct(a, 1) and dims.distinct(a, b))


def exceeds(a: Dim, b: Dim) -> bool:
    """Require ``a <= b``; whether that is proven false."""
    if dims.prove_ge(dims.sub(a, 1), b):
        return True
    expect(a, b)
    return False


def expect(a: Dim, b: Dim) -> None:
    """Record ``a <= b`` unless it is proven; a program that violates it may have a result."""
    if not dims.prove_ge(b, a):
        record("<=", a, b)


def overhangs(length: Dim, extent: Dim) -> bool:
    """Require that a window that needs `length` elements fits into `extent`; whether that is false.

    A window that needs at most one element always fits: an empty axis has no positions for it.
    """
    if dims.prove_ge(1, length) or dims.prove_ge(extent, length):
        return False
    return record("window", length, extent, dims.prove_ge(dims.sub(length, 1), extent))


def record(kind: Kind, a: Dim, b: Dim, is_false: bool = False) -> bool:
    """Record a requirement that is not proven; whether it is false or denied."""
    requirement, (record, wants_false) = Requirement(kind, a, b), _RECORD.get()
    if record is not None and is_false == wants_false:
        record.append(requirement)
    return is_false or requirement == _DENIED.get()

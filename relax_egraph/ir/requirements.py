"""What struct-info rules require of extents: refused if proven false, recorded if not decided.

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

Kind: TypeAlias = Literal["==", "<=", "stretch", "broadcast"]


@dataclass(frozen=True, slots=True)
class Requirement:
    """``a == b``; ``a <= b``; `a` stretches to `b`: it is `b` or 1; one of both stretches."""

    kind: Kind
    a: Dim
    b: Dim


_RECORD: ContextVar[list[Requirement] | None] = ContextVar("requirements", default=None)


@contextmanager
def recording() -> Generator[list[Requirement]]:
    """Within the ``with``, requirements that are not decided are put into the list."""
    record: list[Requirement] = []
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def differ(a: Dim, b: Dim) -> bool:
    """Whether ``a == b``, which a rule requires, is proven false."""
    if dims.equal(a, b):
        return False
    if dims.distinct(a, b):
        return True
    record("==", a, b)
    return False


def misfits(a: Dim, b: Dim) -> bool:
    """Whether it is proven false that `a` is `b` or 1, which a rule requires."""
    if a == 1 or dims.equal(a, b):
        return False
    if dims.distinct(a, 1) and dims.distinct(a, b):
        return True
    record("stretch", a, b)
    return False


def exceeds(a: Dim, b: Dim) -> bool:
    """Whether ``a <= b``, which a rule requires, is proven false."""
    if dims.prove_ge(dims.sub(a, 1), b):
        return True
    expect(a, b)
    return False


def expect(a: Dim, b: Dim) -> None:
    """Record ``a <= b`` unless it is proven; where it is false, not every program is refused."""
    if not dims.prove_ge(b, a):
        record("<=", a, b)


def record(kind: Kind, a: Dim, b: Dim) -> None:
    """Record a requirement that is not decided."""
    undecided = _RECORD.get()
    if undecided is not None:
        undecided.append(Requirement(kind, a, b))

"""Outputs of a loop function that may share the memory of an input, proven from its loops.

They may if each element of the input is read before its place is written, or by the statement that
writes it.  A read and a write have common loops.  In each iteration of these the read comes first,
and different iterations touch different places.  The latter is proven from the offsets: the common
loops contribute the digits of a number in a mixed radix, and the inner loops less than its least
step.  So the order of iterations does not matter: they may be lanes of a vector, or run on other
threads.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from relax_egraph.ir.dtypes import TABLE
from relax_egraph.ir.polynomial import Polynomial, atom, number, polynomial
from relax_egraph.tir.affine import (
    Loop,
    Term,
    affine,
    bounds_of,
    mentions,
    split,
    whole_loops,
)
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

MOST_PAIRS = 500
"""The most pairs of a read and a write that are compared for one input and output."""

MOST_BOUNDS = 4
"""The most bounds of offsets within an iteration that are tried."""

_LARGE = 1009
"""A sample value of dimensions, to guess which of two steps is larger."""


@lru_cache(1 << 12)
def in_place_pairs(function: PrimFunc) -> frozenset[tuple[int, int]]:
    """Pairs of an input and an output, by number, that may share memory.

    Their elements have one size.  It holds if both tensors have the same number of elements and no
    other operand lies in this memory, except inputs that have a pair with the same output.
    """
    accesses = _Accesses()
    accesses.stmt(function.body, (), {})
    collected = accesses.collected
    return frozenset(
        (i, j)
        for i, read in enumerate(function.inputs)
        for j, written in enumerate(function.outputs)
        if TABLE[read.dtype].bits == TABLE[written.dtype].bits
        and _is_in_place(
            [a for a in collected if a.buffer is read],
            [a for a in collected if a.buffer is written],
        )
    )


@dataclass(frozen=True, slots=True)
class _Access:
    """A read or write in statement number `at`; `offset` counts elements, ``None`` if unknown."""

    buffer: Buffer
    at: int
    loops: tuple[Loop, ...]
    offset: Polynomial | None
    writes: bool


class _Accesses:
    """Collects the accesses of a function in textual order; each statement has a number."""

    def __init__(self) -> None:
        self.collected: list[_Access] = []
        self._at = 0
        self._loops = 0

    def stmt(
        self, stmt: Stmt, loops: tuple[Loop, ...], known: Mapping[TirVar, Polynomial | None]
    ) -> None:
        self._at += 1
        match stmt:
            case Store(buffer=buffer, indices=indices, value=value):
                self._read((*indices, value), loops, known)
                offset = _offset(buffer, indices, known)
                self.collected.append(_Access(buffer, self._at, loops, offset, True))
            case For(var=var, extent=extent, body=body):
                self._read((extent,), loops, known)
                self._loops += 1
                loop = Loop(f"{var.name}@{self._loops}", bounds_of(extent, known))
                self.stmt(body, (*loops, loop), {**known, var: atom(loop.atom)})
            case IfThenElse(condition=condition, then_case=then_case, else_case=else_case):
                self._read((condition,), loops, known)
                self.stmt(then_case, loops, known)
                if else_case is not None:
                    self.stmt(else_case, loops, known)
            case Seq(body=parts):
                for part in parts:
                    self.stmt(part, loops, known)
            case TirBlock(axes=axes, init=init, body=body):
                for axis in axes:
                    self._read((axis.extent, axis.binding), loops, known)
                    known = {**known, axis.var: affine(axis.binding, known)}
                if init is not None:
                    self.stmt(init, loops, known)
                self.stmt(body, loops, known)
            case TensorIntrinsic(buffers=buffers, scalars=scalars):
                self._read((*(i for _, at in buffers for i in at), *scalars), loops, known)
                for buffer, _ in buffers:
                    for writes in (False, True):
                        self.collected.append(_Access(buffer, self._at, loops, None, writes))

    def _read(
        self,
        exprs: Sequence[TirExpr],
        loops: tuple[Loop, ...],
        known: Mapping[TirVar, Polynomial | None],
    ) -> None:
        reads = {read: None for e in exprs for read in loads(e)}
        for read in reads:
            offset = _offset(read.buffer, read.indices, known)
            self.collected.append(_Access(read.buffer, self._at, loops, offset, False))


def _offset(
    buffer: Buffer, indices: Sequence[TirExpr], known: Mapping[TirVar, Polynomial | None]
) -> Polynomial | None:
    """The offset of an element, in row-major order."""
    total, stride = Polynomial(), number(1)
    for extent, index in zip(reversed(buffer.shape), reversed(indices), strict=True):
        place = affine(index, known)
        if place is None:
            return None
        total += place * stride
        stride *= polynomial(extent)
    return total


def _is_in_place(of_input: Sequence[_Access], of_output: Sequence[_Access]) -> bool:
    reads = [a for a in of_input if not a.writes]
    writes = [a for a in of_output if a.writes]
    if not reads or len(reads) < len(of_input) or len(reads) * len(writes) > MOST_PAIRS:
        return False
    return all(read.at <= write.at and _apart(read, write) for read in reads for write in writes)


def _apart(read: _Access, write: _Access) -> bool:
    """Whether different iterations of the common loops touch different places."""
    if read.offset is None or write.offset is None:
        return False
    common = [a for a, b in zip(read.loops, write.loops, strict=False) if a is b]
    terms: list[Term] = []
    within, others = read.offset, write.offset
    for loop in common:
        one, other = split(within, loop.atom), split(others, loop.atom)
        if one is None or other is None or one[0] != other[0]:
            return False
        terms.append(Term(loop.atom, one[0], loop.bounds))
        within, others = one[1], other[1]
    loops = {loop.atom for a in (read, write) for loop in a.loops}
    terms = [t for t in whole_loops(terms) if number(1) not in t.bounds]
    terms.sort(key=lambda t: _guess(t.step))
    first = list(_spans(within, read.loops[len(common) :], loops))
    second = list(_spans(others, write.loops[len(common) :], loops))
    pairs = [(a, b) for a in first for b in second]
    return any(_is_radix(a[1] - b[0], terms, loops) for a, b in pairs) and any(
        _is_radix(b[1] - a[0], terms, loops) for a, b in pairs
    )


def _spans(
    offset: Polynomial, inner: Sequence[Loop], loops: set[str]
) -> Iterator[tuple[Polynomial, Polynomial]]:
    """Lower and upper bounds of `offset` over the `inner` loops."""
    terms: list[Term] = []
    for loop in inner:
        parts = split(offset, loop.atom)
        if parts is None or mentions(parts[0], loops) or not parts[0].is_nonnegative:
            return
        if parts[0].terms:
            terms.append(Term(loop.atom, parts[0], loop.bounds))
        offset = parts[1]
    if mentions(offset, loops):
        return
    for reach in _reaches(whole_loops(terms), loops):
        yield offset, offset + reach


def _reaches(terms: Sequence[Term], loops: set[str]) -> Iterator[Polynomial]:
    """Upper bounds of the contribution of `terms` to an offset, one for each choice of bounds."""
    ways = [[b for b in t.bounds if not mentions(b, loops)][:MOST_BOUNDS] for t in terms]
    for bounds in product(*ways):
        total = Polynomial()
        for term, bound in zip(terms, bounds, strict=True):
            total += term.step * (bound - number(1))
        yield total


def _is_radix(reach: Polynomial, terms: Sequence[Term], loops: set[str]) -> bool:
    """Whether each step of `terms`, which ascend, exceeds `reach` and the sum of all below."""
    reaches = [reach]
    for term in terms:
        if mentions(term.step, loops) or not any(
            (term.step - below - number(1)).is_nonnegative for below in reaches
        ):
            return False
        reaches = [below + r for below in reaches for r in _reaches([term], loops)][:MOST_BOUNDS]
    return True


def _guess(step: Polynomial) -> int:
    return sum(c * _LARGE ** len(monomial) for monomial, c in step.terms)

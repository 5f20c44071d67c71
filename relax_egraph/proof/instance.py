"""Random instances of a trace: extents of symbols, and values of leaves."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, MatchCast, PrimValue
from relax_egraph.ir.struct_info import (
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.symbol_ranges import Range
from relax_egraph.proof.term import Term, post_order
from relax_egraph.proof.trace import Trace
from relax_egraph.verify.values.applied import Result, exact
from relax_egraph.verify.values.inputs import Kind, random_array
from relax_egraph.verify.values.tolerance import Computed

_STEPS = ((2, 3, 5), (1, 2, 3, 4, 5, 7, 8), tuple(range(17)))
"""Candidate extents, above the least one: for the first, the middle and the last attempts."""

_ATTEMPTS = 60
_ALIKE = 4
"""One in this number of attempts has equal extents, as some operators require."""

_GUESSES = 5
"""The factor of attempts if there are unknown shapes."""

Indices: TypeAlias = int | None
"""An exclusive bound of integers, so that they are valid indices; ``None`` for any integers."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Extents of the symbols, and values of `leaves` and of `opaque` bindings by key.

    A binding in `casts` has the value that is cast, or is refused if `opaque` has another shape
    or dtype for it.
    """

    extents: Mapping[str, int]
    leaves: Mapping[int, Result]
    opaque: Mapping[int, Result]
    casts: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Sizes:
    """Extents of the symbols of a trace, and the bound of its integers.

    `leaves` and `opaque` have shapes, by key, for values of unknown shape.
    """

    extents: Mapping[str, int]
    indices: Indices
    leaves: Mapping[int, tuple[int, ...]]
    opaque: Mapping[int, tuple[int, ...]]

    def instance(self, trace: Trace, kind: Kind, rng: np.random.Generator) -> Instance:
        """Random values of `kind`; constants keep their values."""

        def drawn(info: StructInfo, shape: tuple[int, ...] = (), kind: Kind = kind) -> Result:
            if isinstance(info, TupleStructInfo):
                return tuple(v for f in info.fields if isinstance(v := drawn(f), Computed))
            known = info if isinstance(info, TensorStructInfo) else TensorStructInfo()
            if known.dims is not None:
                shape = tuple(dims.evaluate(d, self.extents) for d in known.dims)
            value = random_array(rng, shape, known.dtype or "float32", kind)
            if self.indices is not None and value.dtype.kind in "iu":
                value = rng.integers(0, self.indices, shape).astype(value.dtype)
            return exact(value)

        leaves = {
            key: exact(leaf.data)
            if isinstance(leaf, Constant)
            else drawn(
                leaf.struct_info,
                self.leaves.get(key, ()),
                "ordinary" if key in trace.finite else kind,
            )
            for key, leaf in sorted(trace.leaves.items())
        }
        opaque = {
            key: drawn(binding.var.struct_info, self.opaque.get(key, ()))
            for key, binding in sorted(trace.opaque.items())
        }
        casts = (key for key, binding in trace.opaque.items() if isinstance(binding, MatchCast))
        return Instance(self.extents, leaves, opaque, frozenset(casts))


def sizes_of(
    trace: Trace, rng: np.random.Generator, fixed: Mapping[str, int] | None = None
) -> Iterator[Sizes]:
    """Candidate sizes, without negative extents; symbols in `fixed` keep their sizes.

    Raises ``ValueError`` for a symbol that is not in the trace, and for a size that contradicts the
    assumptions.
    """
    known, shapes, others = dict(fixed or {}), set(_of_values(trace)), set(_of_terms(trace))
    names = sorted(frozenset[str]().union(*map(dims.symbols, shapes | others)))
    if unknown := sorted(known.keys() - set(names)):
        raise ValueError(
            f"no symbol is named {unknown[0]}; there are: {', '.join(names) or 'none'}"
        )
    ranges = dict(trace.assumed.ranges) if trace.assumed else {}
    for name, extent in known.items():
        if not _within(extent, ranges.get(name, Range())):
            raise ValueError(f"{name} is {extent}, which contradicts what is assumed of it")
    leaves = _ranks({key: leaf.struct_info for key, leaf in trace.leaves.items()})
    opaque = _ranks({key: binding.var.struct_info for key, binding in trace.opaque.items()})
    attempts = _ATTEMPTS * (_GUESSES if any(leaves.values()) or any(opaque.values()) else 1)
    for attempt in range(attempts):
        steps = _STEPS[attempt * len(_STEPS) // attempts]
        if attempt % _ALIKE == _ALIKE - 1:
            steps = (int(rng.choice(steps)),)
        extents = {n: _extent(ranges.get(n, Range()), steps, rng) for n in names} | known
        try:
            for name, value in trace.assumed.values if trace.assumed else ():
                if name in names and name not in known:
                    extents[name] = dims.evaluate(value, extents)
            possible = all(dims.evaluate(d, extents) >= 0 for d in shapes)
        except (RunError, KeyError):
            continue
        if possible:
            guessed = (
                {key: tuple(map(int, rng.integers(0, 6, rank))) for key, rank in of.items()}
                for of in (leaves, opaque)
            )
            yield Sizes(extents, (None, 2, 1)[attempt % 3], *guessed)


def _extent(known: Range, steps: tuple[int, ...], rng: np.random.Generator) -> int:
    possible = [known.least + known.step * k for k in steps] if known != Range() else list(steps)
    within = [e for e in possible if _within(e, known)]
    return int(rng.choice(within or [known.least]))


def _within(extent: int, known: Range) -> bool:
    multiple = (extent - known.least) % known.step == 0
    return multiple and extent >= known.least and (known.most is None or extent <= known.most)


def _ranks(infos: Mapping[int, StructInfo]) -> dict[int, int]:
    """The ranks of tensors of unknown shape; 0 for tensors of unknown rank."""
    return {
        key: max(info.ndim, 0)
        for key, info in infos.items()
        if isinstance(info, TensorStructInfo) and info.dims is None
    }


def _of_values(trace: Trace) -> Iterator[Dim]:
    """The extents of leaves and of opaque bindings."""
    for expr in (*trace.leaves.values(), *(b.var for b in trace.opaque.values())):
        yield from _of_info(expr.struct_info)


def _of_terms(trace: Trace) -> Iterator[Dim]:
    """The dimensions among the operands of terms."""
    seen = set[Term]()
    sides = (side for step in trace.steps for side in (step.before, step.after))
    for root in (trace.source, trace.result, *sides):
        for term in post_order(root, seen):
            seen.add(term)
            yield from _of_operands(term.children)


def _of_operands(children: tuple[object, ...]) -> Iterator[Dim]:
    for child in children:
        if isinstance(child, ShapeStructInfo):
            yield from child.values or ()
        elif isinstance(child, PrimValue) and not isinstance(child.value, float):
            yield child.value


def _of_info(info: StructInfo) -> Iterator[Dim]:
    if isinstance(info, TensorStructInfo):
        yield from info.dims or ()
    elif isinstance(info, TupleStructInfo):
        for inner in info.fields:
            yield from _of_info(inner)

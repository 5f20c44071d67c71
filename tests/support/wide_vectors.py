"""Tests as on a processor with AVX-512: ``pytest -p tests.support.wide_vectors``.

Loops are scheduled for 32 registers of 512 bits, with masks.  LLVM splits the vectors where this
processor has no such registers: results are those of the schedules, times say nothing.

Masks are hidden from LLVM.  Where it splits two loads under one constant mask, half of which is
off, it reads the whole half of the second one (LLVM 22).  Loads that are no wider than a register,
which are all that there are otherwise, are right.
"""

import pytest

from relax_egraph.lower.emit import target, vector
from relax_egraph.lower.emit.instructions import Instructions, Operand, Value
from relax_egraph.lower.emit.module_text import I64

with pytest.MonkeyPatch.context() as patch:
    patch.setattr(target, "AVX512", target.AVX2)
    assert target.host().vector_bits == 512, "this needs AVX2 at least"  # is kept

_first_lanes = vector.first_lanes


def _hidden(f: Instructions, count: Operand, lanes: int) -> Value:
    """The mask of the first `count` lanes, which LLVM takes for unknown."""
    return _first_lanes(f, f.emit(I64, f'call i64 asm "", "=r,0"({f.index(count)})'), lanes)


vector.first_lanes = _hidden

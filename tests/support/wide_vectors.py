"""Tests as on a processor with AVX-512: ``pytest -p tests.support.wide_vectors``.

Loops are scheduled for 32 registers of 512 bits, with masks.  LLVM splits the vectors where this
processor has no such registers: results are those of the schedules, times say nothing.
"""

import pytest

from relax_egraph.lower.emit import target

with pytest.MonkeyPatch.context() as patch:
    patch.setattr(target, "AVX512", target.AVX2)
    assert target.host().vector_bits == 512, "this needs AVX2 at least"  # is kept

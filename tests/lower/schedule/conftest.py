"""The machine that loops are scheduled for, whichever runs the tests."""

from collections.abc import Iterator

import pytest

from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.jit.processors import processor


@pytest.fixture
def avx512() -> Iterator[None]:
    with scheduling_for(processor("x86_64:x86-64-v4")):
        yield

"""Scheduled functions, compiled, compute what the unscheduled ones do, and write nothing else."""

import numpy as np
import pytest

from relax_egraph.ir import dims
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc
from tests.lower.schedule.test_elementwise import FUNCTIONS as ELEMENTWISE
from tests.lower.schedule.test_generic import FUNCTIONS as GENERIC
from tests.lower.schedule.test_matmul import FUNCTIONS as MATMUL
from tests.lower.schedule.test_rows import FUNCTIONS as ROWS
from tests.support.scheduled import Array, arrays

FUNCTIONS: dict[str, PrimFunc] = {
    f"{anchor}: {name}": function
    for anchor, functions in {
        "elementwise": ELEMENTWISE,
        "rows": ROWS,
        "matmul": MATMUL,
        "generic": GENERIC,
    }.items()
    for name, function in functions.items()
}

SIZES = [(0, 3, 2), (3, 0, 2), (1, 1, 1), (2, 7, 5), (5, 16, 2), (3, 65, 4)]

GUARD = 16
"""How many elements after each output must stay as they are."""


def guarded(shape: list[int], dtype: str) -> tuple[Array, Array]:
    """An output, and the elements that lie after it."""
    count = int(np.prod(shape))
    memory = np.full(count + GUARD, 7, dtype)
    return memory[:count].reshape(shape), memory[count:]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_compiled_schedule_computes_the_same(name: str) -> None:
    function = FUNCTIONS[name]
    scheduled = schedule(function)
    kernel = link(compile_kernels({"kernel": scheduled}, None, INTRINSICS))["kernel"]
    for n, m, k in SIZES:
        symbols = {"n": n, "m": m, "k": k}
        given = arrays(function.inputs, symbols)
        expected = interpret(function, given, symbols)
        made = [
            guarded([dims.evaluate(d, symbols) for d in b.shape], b.dtype) for b in function.outputs
        ]

        kernel(*given, *(out for out, _ in made), *(symbols[s] for s in scheduled.symbols))

        for (out, beyond), wanted in zip(made, expected, strict=True):
            np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-5)
            assert (beyond == 7).all()

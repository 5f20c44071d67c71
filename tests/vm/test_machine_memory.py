"""How much memory a model takes: its weights and what lives at once, and little more."""

import numpy as np
import pytest

import relax_egraph as rx
from bench.footprint import AT_MOST
from bench.transformer import Sizes, encoder
from relax_egraph.lower.runtime.driver_link import memory_of
from relax_egraph.passes.analyses.estimate_memory import estimate_memory

CHAIN = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64), "float32"), w: R.Tensor((64, 64), "float32")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.matmul(a, w)
            c = R.matmul(b, w)
            d = R.matmul(c, w)
            e = R.matmul(d, w)
            R.output(e)
        return e
"""


@pytest.mark.parametrize("optimized", [False, True])
def test_twelve_layers_take_little_more_than_they_must(optimized: bool) -> None:
    module = encoder(Sizes(12, hidden=32, heads=2, inner=64))
    module = rx.optimize(module) if optimized else module
    exe = rx.build(module)
    weights = sum(c.nbytes for c in exe.constants if isinstance(c, np.ndarray))
    use = estimate_memory(rx.lower_module(module))["main"]

    for length in (1, 7, 64):
        main = rx.VirtualMachine(exe, engine="native", num_threads=1)["main"]
        result = main(np.zeros((2, length, 32), np.float32), np.ones((2, length), np.int64))

        records, arena = memory_of(main)
        live = use.peak({"batch": 2, "length": length})
        assert records == 1
        assert weights + arena + result.nbytes <= AT_MOST * (weights + live)


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_a_chain_lives_in_two_tensors(n: int) -> None:
    module = rx.parse(CHAIN)
    main = rx.VirtualMachine(rx.build(module), engine="native", num_threads=1)["main"]

    result = main(np.zeros((n, 64), np.float32), np.zeros((64, 64), np.float32))

    _, arena = memory_of(main)
    assert arena + result.nbytes <= 3 * result.nbytes
    assert estimate_memory(rx.lower_module(module))["main"].peak({"n": n}) == 2 * result.nbytes


def test_memory_grows_with_what_lives_and_not_with_depth() -> None:
    arenas: list[int] = []
    for layers in (2, 4):
        sizes = Sizes(layers, hidden=32, heads=2, inner=64)
        exe = rx.build(rx.optimize(encoder(sizes)))
        main = rx.VirtualMachine(exe, engine="native", num_threads=1)["main"]
        main(np.zeros((2, 16, 32), np.float32), np.ones((2, 16), np.int64))
        arenas.append(memory_of(main)[1])

    assert arenas[0] == arenas[1] > 0

"""The example that writes tokens: a loop, caches that grow in place, random draws."""

import numpy as np
import pytest

import relax_egraph as rx
from examples.decoder import demo
from examples.decoder.model import build_model, generate, weights
from relax_egraph.vm.machine import Engine


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("engine", ["auto", "interpreter"])
def test_tokens_are_numpys(engine: Engine, optimized: bool) -> None:
    drawn = weights(seed=1)
    module = build_model(drawn)
    vm = rx.VirtualMachine(rx.build(rx.optimize(module) if optimized else module), engine=engine)

    for count, seed in ((20, 1), (0, 2), (3, 2), (20, 1)):
        tokens = vm["generate"](np.array([7]), np.array(count), seed)
        assert tokens.tolist() == generate(drawn, 7, count, seed)


def test_the_demo_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main() == 0
    assert "the same as numpy's" in capsys.readouterr().out

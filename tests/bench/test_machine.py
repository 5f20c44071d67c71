"""The measurements of the virtual machine: they run what they say, and show it beside its bar."""

from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from bench import chains, dispatch, footprint
from bench.direct_calls import direct_calls
from bench.figure import Figure
from bench.tables import figures_table
from bench.transformer import Sizes
from relax_egraph.ir.module import IRModule
from relax_egraph.vm import VirtualMachine
from tests.bench.test_tables import rows_of

X = np.arange(chains.WIDTH, dtype=np.float32)


@pytest.mark.parametrize(
    ("module", "args", "added"),
    [
        (chains.chain(5, symbolic=False), (), 5),
        (chains.chain(5, symbolic=True), (), 5),
        (chains.additions(5), (), 5),
        (chains.branches(5), (np.array(True),), 5),
        (chains.branches(5), (np.array(False),), 10),
        (chains.packed_between(5), (), 5),
        (chains.loop(5), (), 5),
    ],
)
def test_each_step_adds_one(module: IRModule, args: tuple[object, ...], added: int) -> None:
    vm = VirtualMachine(rx.build(module), {chains.PACKED: np.positive})

    np.testing.assert_array_equal(vm["main"](X, *args), X + added)


@pytest.mark.parametrize("symbolic", [False, True])
def test_kernels_of_a_chain_are_not_fused(symbolic: bool) -> None:
    listing = rx.build(chains.chain(5, symbolic=symbolic)).as_text()

    assert listing.count("call  one  ") == 5


def test_a_kernel_is_called_directly_as_often_as_asked() -> None:
    exe = rx.build(chains.chain(1, symbolic=True))
    assert exe.linker is not None
    x, y = X.copy(), np.empty_like(X)

    direct_calls(exe.linker(exe, 1)["one"], x, y, 6)()

    np.testing.assert_array_equal(x, X + 6)
    np.testing.assert_array_equal(y, X + 5)


def test_there_is_a_figure_for_each_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "COUNT", 4)
    monkeypatch.setattr(dispatch.peers, "installed", dict)

    figures = [*dispatch.dispatch_figures(0), *dispatch.entry_figures(0)]

    names = [f.name.rpartition(": ") for f in figures]
    assert [engine for _, _, engine in names] == ["native", "interpreter"] * (len(figures) // 2)
    assert [f.wanted for f in figures[:4]] == [10, 2000, 20, 2000]
    assert all(f.value > 0 for f in figures)


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux says it")
def test_memory_is_that_of_weights_and_tensors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footprint, "LENGTH", 16)
    model, _ = footprint.save_model(Sizes(2), tmp_path / "model.rxe")

    _, (planned, *_) = footprint.load_model(model)

    assert planned.beside["weights"] * 1e6 == model.weights > 0
    assert 0 < model.live < model.made
    assert planned.wanted == footprint.AT_MOST * (model.weights + model.live) / 1e6
    assert planned.value * 1e6 >= model.weights + model.live


def test_figures_stand_beside_what_is_wanted_and_what_others_take() -> None:
    figures = [Figure("fast", 3.14159, 10, {"numpy": 1234.5}), Figure("slow", 0.5, 0.25)]

    assert [f.falls_short for f in figures] == [False, True]
    assert rows_of(figures_table("title", figures)) == [
        ["fast", "3.14", "≤ 10.0", "1,234"],
        ["slow", "0.50", "≤ 0.25", ""],
    ]

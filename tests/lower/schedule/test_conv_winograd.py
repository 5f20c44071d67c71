"""Convolutions by minimal filters err no more than they say, and by no more than is allowed."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, load_module, optimize, save_module
from relax_egraph.ir import call, const, tensor
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.expr import Var
from relax_egraph.ir.module import IRModule
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.lower.schedule import schedule
from relax_egraph.lower.schedule.conv.minimal_filters import F2, F4
from relax_egraph.reasons.accuracy import Approximation, approximations, relative_errors
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import For, PrimFunc
from tests.lower.schedule.test_conv import LAST, Array, computed, convolution, defined

TOLERANT = 1e-4


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def spread(*shape: int) -> Array:
    decades = np.random.default_rng(2).uniform(-3, 3, shape)
    return (normal(*shape) * 10**decades).astype(np.float32)


def weights(channels: int, features: int) -> Array:
    return (normal(3, 3, channels, features, seed=1) / np.sqrt(9 * channels)).astype(np.float32)


def function(data: Array, weight: Array, tolerance: float, **attrs: Any) -> PrimFunc:
    plain = convolution("conv2d", data.shape, weight.shape, **attrs)
    return replace(plain, attrs={**plain.attrs, "tolerance": tolerance})


def errors(data: Array, weight: Array, tolerance: float) -> Array:
    attrs = {"padding": (1,), **LAST}
    expected = defined("conv2d", data, weight, **attrs)
    actual = computed(function(data, weight, tolerance, **attrs), (data, weight), expected.shape)
    return np.abs(actual - expected) / np.sqrt(np.mean(expected**2))


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("extents", [(19, 23), (16, 24), (20, 27), (5, 96)])
@pytest.mark.parametrize("padding", [(0,), (1,), (2, 0, 1, 1)])
def test_large_tiles(extents: tuple[int, int], padding: tuple[int, ...], *, last: bool) -> None:
    x, w = normal(2, 16, *extents), normal(20, 16, 3, 3, seed=1)
    if last:
        x = np.ascontiguousarray(x.transpose(0, 2, 3, 1))
        w = np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    attrs = {"padding": padding, **(LAST if last else {})}
    expected = defined("conv2d", x, w, **attrs)

    actual = computed(function(x, w, TOLERANT, **attrs), (x, w), expected.shape)

    assert 36 in products(schedule(function(x, w, TOLERANT, **attrs)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=F4.error * 12)


@pytest.mark.parametrize("data", [normal(1, 24, 24, 128), spread(1, 24, 24, 128)])
@pytest.mark.parametrize("tolerance", [0.0, TOLERANT])
def test_errors_are_as_they_say(data: Array, tolerance: float) -> None:
    filter = F4 if tolerance else F2

    worst = errors(data, weights(128, 64), tolerance).max()

    assert filter.error / 20 < worst < filter.error


@pytest.mark.parametrize("tolerance", [0.0, TOLERANT])
def test_a_huge_number_disturbs_its_tiles_by_little_of_it(tolerance: float) -> None:
    data = normal(1, 24, 24, 32)
    data[0, 10, 10, 0] = 1e6
    attrs = {"padding": (1,), **LAST}
    weight = weights(32, 32)
    expected = defined("conv2d", data, weight, **attrs)

    actual = computed(function(data, weight, tolerance, **attrs), (data, weight), expected.shape)

    assert np.abs(actual - expected).max() < 1e-6 * 1e6


def products(scheduled: PrimFunc) -> set[int]:
    """The constant extents of loops: the number of products of a tile is among them."""
    loops = (s for s in statements(scheduled.body) if isinstance(s, For))
    return {getattr(loop.extent, "value", 0) for loop in loops}


@pytest.mark.parametrize(
    ("extent", "tolerance", "filter"),
    [(28, 0.0, F2), (28, F4.error / 2, F2), (28, F4.error, F4), (28, 1.0, F4), (14, 1.0, F2)],
)
def test_the_filter_is_chosen_by_tolerance_and_size(
    extent: int, tolerance: float, filter: Any
) -> None:
    data, weight = normal(1, extent, extent, 32), weights(32, 32)

    found = products(schedule(function(data, weight, tolerance, padding=(1,), **LAST)))

    assert {16, 36} & found == {filter.products}


def module() -> IRModule:
    x, bb = Var("x", tensor((1, 28, 28, 32), "float32")), BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            y = bb.emit(call("nn.conv2d", x, const(weights(32, 32)), padding=(1,), **LAST))
            gv = bb.emit_output(y)
        bb.emit_func_output(gv)
    return bb.get()


def filters(module: IRModule) -> set[Any]:
    """By which filters the kernels of `module` say that they compute."""
    return {f.attrs.get("filter") for f in lower_module(module).functions.values()} - {None}


def test_what_the_optimizer_is_allowed_a_build_obeys() -> None:
    data, best = normal(1, 28, 28, 32), optimize(module(), tolerance=TOLERANT)

    actual = VirtualMachine(build(best))["main"](data)

    assert filters(best) == {"F(4, 3)"}
    expected = defined("conv2d", data, weights(32, 32), padding=(1,), **LAST)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=F4.error)


def test_a_saved_program_keeps_what_it_is_allowed(tmp_path: Path) -> None:
    save_module(optimize(module(), tolerance=TOLERANT), tmp_path / "best.py")

    again = load_module(tmp_path / "best.py")

    assert '"tolerance": 0.0001' in again.script()
    assert filters(again) == {"F(4, 3)"}


@pytest.mark.parametrize("tolerance", [None, 0.0, F4.error / 2])
def test_by_default_convolutions_err_no_more_than_the_definition(tolerance: float | None) -> None:
    best = optimize(module(), tolerance=tolerance)

    assert filters(best) == {"F(2, 3)"}
    assert approximations(best) == ()


def test_what_errs_is_reported() -> None:
    best = optimize(module(), tolerance=TOLERANT)

    (found,) = approximations(best)
    (measured,) = relative_errors(best, module(), normal(1, 28, 28, 32))

    assert found == Approximation(found.kernel, "F(4, 3)", F4.error)
    assert str(found) == "by F(4, 3), off by at most 3e-05 of the results' mean magnitude"
    assert 0 < measured < F4.error

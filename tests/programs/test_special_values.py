"""Zeros, subnormal numbers, limits, infinities, NaN: reference, machine code, e-graph agree."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.dtypes import DTYPES, is_float, is_stored, limits
from relax_egraph.ir.evaluate import evaluate
from tests.support.random_specials import MANY, OPERATORS, special_chains
from tests.support.rounding import VANISHING, Bounds, assert_within, bounds, leaves
from tests.support.special_values import program_of

Array = np.ndarray[Any, Any]

SUITE = ("float16", "float32", "int32")
"""Dtypes that are tried in every run."""

CANCELLING = ("nn.gelu", "nn.gelu_tanh", "log_add_exp")
"""Operators that are as accurate as their operands are large, where their result is small."""

ROUNDS = 40
"""So many times each operator begins a chain."""


def kind(x: Array) -> Array:
    """0 of finite numbers, and other numbers for NaN and the infinities."""
    return np.where(np.isnan(x), 2, np.where(np.isinf(x), np.sign(x), 0))


def differing(name: str, want: Array, have: Array, operands: list[Array]) -> Array:
    """Where the elements of a result are others than they should be."""
    assert (have.dtype, have.shape) == (want.dtype, want.shape)
    if not is_float(want.dtype.name):
        return np.asarray(have != want)
    info = limits(want.dtype.name)
    exact, found = want.astype(np.float64), have.astype(np.float64)
    units = 2 if is_stored(want.dtype.name) else 32 if want.dtype == np.float32 else 128
    with np.errstate(all="ignore"):
        size = np.abs(exact)
        if name in CANCELLING:
            size = np.maximum.reduce([size, *(np.abs(x.astype(np.float64)) for x in operands)])
        off = np.abs(exact - found) > units * float(info.eps) * size + VANISHING * float(info.tiny)
    return (kind(exact) != kind(found)) | (np.isfinite(exact) & off)


@pytest.mark.parametrize(
    "dtype", [*SUITE, *(pytest.param(d, marks=pytest.mark.fuzz) for d in DTYPES if d not in SUITE)]
)
def test_elementwise_operators_agree_on_all_combinations(dtype: str) -> None:
    program = program_of(dtype)

    expected = leaves(evaluate(program.module, "main", *program.inputs))

    best = rx.optimize(program.module)
    results = {
        "as written": rx.VirtualMachine(rx.build(program.module))["main"](*program.inputs),
        "optimized": rx.VirtualMachine(rx.build(best))["main"](*program.inputs),
        "evaluated": evaluate(best, "main", *program.inputs),
    }
    wrong: list[str] = []
    for way, result in results.items():
        fields = zip(program.names, expected, leaves(result), program.arguments, strict=True)
        for name, want, have, places in fields:
            operands = [program.inputs[k] for k in places]
            for (at,) in np.argwhere(differing(name.split()[0], want, have, operands))[:2]:
                shown = ", ".join(str(x[at]) for x in operands)
                wrong.append(f"{way}: {name} of {shown}: {have[at]}, not {want[at]}")
    assert wrong == []


def check_chains(seed: int) -> None:
    """Hold machine code and e-graph to what the reference computes, as far as it is held."""
    program = special_chains(seed)
    expected = bounds(program.module, program.inputs, {})
    assert expected is not None
    expected = list(map(_fused, expected))

    best = rx.optimize(program.module)

    ways = {
        "as written": rx.VirtualMachine(rx.build(program.module))["main"](*program.inputs),
        "optimized": rx.VirtualMachine(rx.build(best))["main"](*program.inputs),
        "evaluated": evaluate(best, "main", *program.inputs),
    }
    for way, result in ways.items():
        fields = zip(program.names, leaves(result), expected, strict=True)
        for name, have, want in fields:
            assert_within(have, [want], f"{seed}: {way}: {name}: ")


def _fused(bounds: Bounds) -> Bounds:
    """Between operators that are fused a half does not overflow, and is no infinity then."""
    if not is_stored(bounds.exact.dtype.name):
        return bounds
    return replace(bounds, checked=bounds.checked & np.isfinite(bounds.exact))


@pytest.mark.parametrize("seed", [0, 1])
def test_chains_agree(seed: int) -> None:
    check_chains(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(2, ROUNDS * len(OPERATORS) // MANY, 20))
def test_more_chains_agree(first: int) -> None:
    for seed in range(first, first + 20):
        check_chains(seed)

"""Random programs compute the same in every way that there is to run them."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.egraph.saturation.report import StopReason
from relax_egraph.errors import RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.optimize.explanation import Explanation
from relax_egraph.passes import (
    Pass,
    canonicalize_bindings,
    convert_to_dataflow,
    dead_code_elimination,
    eliminate_common_subexpr,
    fold_constant,
    normalize,
)
from relax_egraph.passes.refine_shapes import refine_shapes
from relax_egraph.script import print_module
from tests.support.random_loop_calls import by_numpy
from tests.support.random_programs import RandomProgram, random_program
from tests.support.random_writer import PACKED, SAMPLE
from tests.support.rounding import assert_same, assert_within, bounds, leaves

SIZES = (0, 1, 2, 3, 7, 17)

FEW = 5
MANY = 1050
FEW_FAST = 5
MANY_FAST = 300
SLICE = 50

PASSES: tuple[Pass, ...] = (
    normalize,
    dead_code_elimination(),
    eliminate_common_subexpr,
    canonicalize_bindings,
    convert_to_dataflow(),
    fold_constant,
    refine_shapes,
)

AGAIN = 4
"""Every so many programs are optimized twice."""

STATUS = re.compile(r"optimal|gap \d+(\.\d+)? %, time limit|greedy: .+")


def points(program: RandomProgram) -> list[Mapping[str, int]]:
    """Values of the symbols: those it was written for; then each symbol has each size once."""
    names = program.symbols
    shifts = {name: (program.seed + 2 * k) % len(SIZES) for k, name in enumerate(names)}
    count = len(SIZES) if names else 0
    written_for = {s: SAMPLE[s] for s in names}
    others = [{s: SIZES[(i + shifts[s]) % len(SIZES)] for s in names} for i in range(count)]
    return [written_for, *others]


def check(program: RandomProgram, folder: Path, *, fast_math: bool = False) -> None:
    """Hold the optimizer, the compiler and the machine to what `program` means.

    With `fast_math` it means that within the tolerance of class ``fast``, for moderate inputs.
    """
    module = program.module
    explain = partial(rx.explain, module, fast_math=fast_math, time_limit=2)
    report = explain()
    best = report.module
    assert_well_formed(best)
    assert report.cost <= report.cost_before * (1 + 1e-9)
    for region in report.regions:
        assert STATUS.fullmatch(region.extraction.status)
    for m in (module, best):
        assert_structural_equal(rx.parse(print_module(m, show_meta=True)), m)
    if program.seed % AGAIN == 0 and not cut_by_time(report):
        assert_structural_equal(explain().module, best)
    if not fast_math:
        check_passes(program)

    plain, fast = (rx.build(m, target=program.target) for m in (module, best))
    fast.save(folder / "program.rxe")
    machines = {
        "unoptimized": rx.VirtualMachine(plain, PACKED),
        "optimized": rx.VirtualMachine(fast, PACKED),
        "loaded": rx.VirtualMachine(rx.load(folder / "program.rxe"), PACKED),
    }
    kept: list[tuple[Any, Any]] = []
    for values in points(program):
        inputs = program.inputs(values)
        before = [x.copy() for x in inputs]
        expected = None
        with suppress(RunError):
            expected = bounds(module, inputs, PACKED, fast=fast_math, prim_func=by_numpy)
        if expected is None:  # it refuses these sizes, for a claim that may be unread, or rounding
            for machine in machines.values():  # decides whether it does, in a condition
                with suppress(RunError):
                    machine["main"](*inputs)
            continue
        results = {name: machine["main"](*inputs) for name, machine in machines.items()}
        results["evaluated"] = evaluate(best, "main", *inputs, packed=PACKED, prim_func=by_numpy)
        for x, y in zip(inputs, before, strict=True):
            assert_same(x, y)
        for name, result in results.items():
            assert_within(result, expected, f"{name} at {values}")
        kept += [(r, np.copy(r)) for r in leaves(results["optimized"])]
        for a, b in zip(leaves(results["optimized"]), leaves(results["loaded"]), strict=True):
            assert_same(a, b)
    for result, copy in kept:
        assert_same(result, copy)


def cut_by_time(report: Explanation) -> bool:
    """Whether another run of the optimizer may stop elsewhere."""
    return any(
        "time limit" in region.extraction.status
        or any(phase.stop is StopReason.TIME for phase in region.saturation.phases)
        for region in report.regions
    )


def check_passes(program: RandomProgram) -> None:
    """Hold each pass alone to the program's values: to the last bit, for none reorders sums."""
    inputs = program.inputs(points(program)[0])
    try:
        expected = leaves(
            evaluate(program.module, "main", *inputs, packed=PACKED, prim_func=by_numpy)
        )
    except RunError:
        return
    for transform in PASSES:
        after = transform(program.module)
        assert_well_formed(after)
        found = leaves(evaluate(after, "main", *inputs, packed=PACKED, prim_func=by_numpy))
        for number, (have, want) in enumerate(zip(found, expected, strict=True)):
            what = f"{transform.name}: result {number}"
            assert_same(have, want, what)


def check_all(seeds: range, folder: Path, *, fast_math: bool = False) -> None:
    for seed in seeds:
        program = random_program(seed)
        if fast_math:
            program = replace(program, extreme=False)
        try:
            check(program, folder, fast_math=fast_math)
        except Exception as error:
            error.add_note(
                f"random_program({seed}) for {program.target}:\n{program.module.script()}"
            )
            raise


def test_the_same_seed_writes_the_same_program() -> None:
    first, second = random_program(7), random_program(7)

    assert_structural_equal(first.module, second.module)
    assert first.takes == second.takes


@pytest.mark.parametrize("start", range(0, FEW, 5))
def test_some_programs_mean_the_same_everywhere(start: int, tmp_path: Path) -> None:
    check_all(range(start, start + 5), tmp_path)


@pytest.mark.parametrize("start", range(FEW, FEW + FEW_FAST, 5))
def test_some_programs_mean_nearly_the_same_with_fast_math(start: int, tmp_path: Path) -> None:
    check_all(range(start, start + 5), tmp_path, fast_math=True)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(FEW, FEW + MANY, SLICE))
def test_many_programs_mean_the_same_everywhere(start: int, tmp_path: Path) -> None:
    check_all(range(start, start + SLICE), tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(FEW + MANY, FEW + MANY + MANY_FAST, SLICE))
def test_many_programs_mean_nearly_the_same_with_fast_math(start: int, tmp_path: Path) -> None:
    check_all(range(start, start + SLICE), tmp_path, fast_math=True)

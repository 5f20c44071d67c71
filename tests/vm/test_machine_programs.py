"""Random programs: each engine, any number of threads, saved and loaded, from call to call."""

from pathlib import Path
from typing import Any

import pytest

import relax_egraph as rx
from relax_egraph.errors import RelaxEgraphError
from tests.programs.test_random_programs import points
from tests.support.native import plain
from tests.support.random_programs import random_program
from tests.support.random_writer import PACKED

FEW, MANY, SLICE = 8, 300, 20


def outcome(vm: rx.VirtualMachine, args: list[Any]) -> Any:
    """What ``main`` returns or raises, and what has become of its arguments."""
    try:
        return plain(vm["main"](*args)), plain(args)
    except RelaxEgraphError as error:
        return type(error), str(error), error.__notes__, plain(args)


def check(seed: int, folder: Path) -> None:
    """Run the program of `seed` in every way; sizes come, go, and come again."""
    program = random_program(seed)
    exe = rx.build(program.module, target=program.target)
    exe.save(folder / "program.rxe")
    loaded = rx.load(folder / "program.rxe")
    machines = {
        "interpreter": rx.VirtualMachine(exe, PACKED, engine="interpreter", num_threads=1),
        "native": rx.VirtualMachine(exe, PACKED, num_threads=1),
        "native, 2 threads": rx.VirtualMachine(exe, PACKED, num_threads=2),
        "loaded": rx.VirtualMachine(loaded, PACKED, num_threads=2),
        "loaded, interpreter": rx.VirtualMachine(loaded, PACKED, engine="interpreter"),
    }
    for values in (*points(program), *points(program)[::-1]):
        inputs = program.inputs(values)
        expected, *others = (
            (name, outcome(vm, [x.copy() for x in inputs])) for name, vm in machines.items()
        )
        for name, found in others:
            assert found == expected[1], f"{name} at {values}"
    values = points(program)[0]
    inputs = program.inputs(values)
    for vm in machines.values():
        if len(outcome(vm, inputs)) == 2:
            assert vm.profile("main", *inputs).seconds > 0


def check_all(seeds: range, folder: Path) -> None:
    for seed in seeds:
        try:
            check(seed, folder)
        except Exception as error:
            error.add_note(f"random_program({seed})")
            raise


@pytest.mark.parametrize("start", range(0, FEW, 4))
def test_some_programs_run_alike(start: int, tmp_path: Path) -> None:
    check_all(range(start, start + 4), tmp_path)


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(FEW, FEW + MANY, SLICE))
def test_many_programs_run_alike(start: int, tmp_path: Path) -> None:
    check_all(range(start, start + SLICE), tmp_path)

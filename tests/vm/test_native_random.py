"""Both engines do the same: results, errors, what becomes of the arguments."""

from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest

from relax_egraph import VirtualMachine, build
from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.vm import Executable
from relax_egraph.vm.binary import from_bytes, to_bytes
from relax_egraph.vm.machine import Engine
from tests.support.native import machines, outcome, with_kernels
from tests.support.random_bytecode import ROWS, Program, inputs
from tests.support.random_programs import random_program
from tests.support.random_writer import PACKED, SAMPLE

SIZES = (ROWS, 0, 1, 2, 17)

FEW, MANY = 40, 2400
"""Programs of bytecode in every run, and in the long ones."""

FEW_BUILT, MANY_BUILT = 4, 20
"""Of programs of the script, which are compiled."""


def ask(x: object) -> object:
    return x


@pytest.mark.parametrize("first", range(0, FEW, 20))
def test_bytecode(first: int) -> None:
    for seed in range(first, first + 20):
        agree(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(FEW, MANY, 80))
def test_more_bytecode(first: int) -> None:
    for seed in range(first, first + 80):
        agree(seed)


def agree(seed: int) -> None:
    """Run a program in both engines, for several sizes."""
    vms = machines(with_kernels(Program(seed).write()), {"test.ask": ask})
    for rows in SIZES:
        expected, found = (outcome(vm, *inputs(rows)) for vm in vms.values())
        assert found == expected, (seed, rows)


@pytest.mark.parametrize("first", range(0, FEW_BUILT, 4))
def test_programs(first: int) -> None:
    for seed in range(first, first + 4):
        agree_built(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(FEW_BUILT, MANY_BUILT, 4))
def test_more_programs(first: int) -> None:
    for seed in range(first, first + 4):
        agree_built(seed)


def agree_built(seed: int) -> None:
    """Run a program of the script in both engines, for its own sizes and for 0 and 1."""
    program = random_program(seed)
    vms = machines(build(program.module, target=program.target), PACKED, num_threads=1)
    none, one = (dict.fromkeys(program.symbols, size) for size in (0, 1))
    for values in (SAMPLE, none, one):
        expected, found = (outcome(vm, *program.inputs(values)) for vm in vms.values())
        assert found == expected, (seed, values)


@pytest.mark.parametrize("first", [0, pytest.param(6, marks=pytest.mark.fuzz)])
def test_damaged_bytecode_is_refused_alike(first: int) -> None:
    random = Random(first)
    for seed in range(first, first + 6):
        executable = with_kernels(Program(seed).write())
        for _ in range(20):
            damaged = replace(executable, code=executable.code.copy())
            place = random.randrange(len(damaged.code))
            damaged.code[place] += random.choice([-8, -1, 1, 8, 80])
            with suppress(ExecutableError):
                obeys_the_laws(damaged)
                messages = [loading(damaged, engine) for engine in ("interpreter", "auto")]
                assert messages[0] == messages[1], (seed, place)


def obeys_the_laws(executable: Executable) -> None:
    """Raise `ExecutableError` unless a loader lets the code of `executable` pass."""
    from_bytes(to_bytes(executable))


def loading(executable: Executable, engine: Engine) -> str:
    """What a machine says of `executable` when it is made."""
    try:
        VirtualMachine(executable, {"test.ask": ask}, engine=engine)
    except (ExecutableError, RunError) as error:
        return str(error)
    return ""

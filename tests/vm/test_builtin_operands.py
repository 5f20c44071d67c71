"""Whatever operands bytecode gives a builtin, there is a result, or an error that says why not."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.vm import ExecBuilder, VirtualMachine
from relax_egraph.vm.builtins import BUILTINS, Builtin
from relax_egraph.vm.bytecode import Operand
from relax_egraph.vm.exec_builder import Value

HUGE = 1 << 70


def number_of_arguments(*args: Any) -> int:
    return len(args)


def read_only(x: Any) -> Any:
    x.flags.writeable = False
    return x


def made(name: str, *values: Any, dtype: str | None = None) -> Any:
    """What ``vm.builtin.<name>`` makes of `values`."""
    constants = () if dtype is None else (dtype,)
    return BUILTINS[f"vm.builtin.{name}"].bind(*constants)(*values)


VALUES: Sequence[Callable[[], Any]] = (
    *(lambda v=v: v for v in (None, True, 0, 3, -1, HUGE, -HUGE, 2.5, "", "x", "{} {0.real}", b"")),
    *(lambda v=v: v for v in ((), (2, 3), (0,), (-1,), (HUGE, HUGE), ("a",), (1.5,), ((1,), None))),
    lambda: (1,) * 70,
    lambda: np.arange(6.0),
    lambda: np.arange(6, dtype=np.float32).reshape(2, 3),
    lambda: read_only(np.zeros((2, 3), np.float32)),
    lambda: np.array(True),
    lambda: np.array([2, 3]),
    lambda: np.array([None, {}]),
    lambda: np.array(["text"]),
    lambda: np.zeros(64, np.uint8),
    lambda: number_of_arguments,
    lambda: made("rng_state", 1),
    lambda: made("kv_cache_create", (1, 3), dtype="float32"),
    lambda: made("make_tagged", 1, "field"),
    object,
)
CONSTANTS: Sequence[Value] = (
    *(0, 1, -1, 3, HUGE, 2.5, "", "float32", "object", "@0", "@1 * 4", "@9 // 0", "n -> @0", "_"),
    *("n == @1", "7", "{}", (), (2, 3), np.zeros(3), np.dtype("int64")),
)


@pytest.mark.parametrize("name", BUILTINS)
def test_whatever_the_operands_there_is_a_result_or_an_error_of_ours(name: str) -> None:
    random, builtin = Random(name), BUILTINS[name]
    messages = set[str]()

    for _ in range(60):
        given = [random.choice(VALUES)() for _ in range(len(builtin.values) + random.randint(0, 2))]
        constants = plausible(random, builtin)
        try:
            call(random, name, given, constants)
        except RelaxEgraphError as error:
            messages.add(str(error))

    harmless = ("null_value", "is_null", "kill", "copy", "make_tuple", "print", "fatal")
    assert messages or builtin.name in harmless


def plausible(random: Random, builtin: Builtin) -> list[Value]:
    """Constants of any kind, more often of the kinds that `builtin` takes."""
    count = len(builtin.constants) + random.choice((0, 0, 0, 1, 2)) * bool(builtin.constants)
    kinds = [kind for _, kind in builtin.constants] * 3
    return [
        random.choice([c for c in CONSTANTS if random.random() < 0.1 or type(c) is k] or [0])
        for k in kinds[:count]
    ]


def call(random: Random, name: str, given: Sequence[Any], constants: Sequence[Value]) -> Any:
    """``main(*given)``, of bytecode that calls the builtin `name`."""
    ib = ExecBuilder()
    with ib.function("main", len(given), allow_unused=True):
        ib.emit_call("vm.builtin.alloc_shape_heap", [2], dst=ib.r(90))
        args: list[Operand] = [ib.r(i) for i in range(len(given))]
        for place in range(len(args)):
            if random.random() < 0.25:
                args[place] = random.choice([ib.r(90), ib.vm_state(), ib.void_arg(), ib.imm(1)])
        dynamic = min(BUILTINS[name].dynamic, len(args))
        operands = [*args[:dynamic], *map(ib.convert_constant, constants)]
        ib.emit_call(name, operands, dst=ib.r(91))
        ib.emit_ret(ib.r(91))
    return VirtualMachine(ib.get())["main"](*given)


def test_the_error_names_builtin_operand_and_what_is_needed() -> None:
    ib = ExecBuilder()
    with ib.function("main", 1):
        ib.emit_call("vm.builtin.get_tag", [ib.r(0)], dst=ib.r(1))
        ib.emit_ret(ib.r(1))

    with pytest.raises(RunError) as error:
        VirtualMachine(ib.get())["main"]((2, 3))

    assert str(error.value) == (
        "vm.builtin.get_tag: operand value is R.Shape((2, 3)), needs a tagged value"
    )
    assert "main, instruction 0: call  vm.builtin.get_tag  in: %0" in error.value.__notes__[0]

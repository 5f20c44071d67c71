"""The example of bytecode by hand says what it promises."""

import re

import numpy as np
import pytest

import relax_egraph as rx
from examples import calls
from relax_egraph.vm.machine import Engine

LISTING = """\
@power(x, n):
    0  if    %1  else: 5
    1  call  calls.minus_one  in: %1  dst: %2
    2  call  power  in: %0, %2  dst: %3
    3  call  calls.multiply  in: %0, %3  dst: %3
    4  ret   %3
    5  ret   c[0]=float32[3]
result: [ 1. 16. 81.]
"""

PAUSES = """\
depth 1: power, instruction 3: call  calls.multiply  in: %0, %3  dst: %3
  %0 x = R.Tensor((3,), "float32")
  %1 n = 1
  %2 = 0
  %3 = R.Tensor((3,), "float32")
depth 0: power, instruction 3: call  calls.multiply  in: %0, %3  dst: %3
  %0 x = R.Tensor((3,), "float32")
  %1 n = 2
  %2 = 1
  %3 = R.Tensor((3,), "float32")
"""

ERROR = """\
ValueError: cannot multiply (2,) and (3,)
virtual machine stack, innermost last:
  power, instruction 2: call  power  in: %0, %2  dst: %3
  power, instruction 3: call  calls.multiply  in: %0, %3  dst: %3
"""


@pytest.mark.parametrize("engine", ["auto", "interpreter"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_a_function_that_calls_itself(engine: Engine, n: int) -> None:
    x = np.array([-1, 0.5, 3], np.float32)

    result = rx.VirtualMachine(calls.power(), engine=engine)["power"](x, n)

    np.testing.assert_array_equal(result, x**n)


def test_the_example_prints_bytecode_pauses_a_profile_and_the_stack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls.main()

    printed = capsys.readouterr().out
    profile = printed.removeprefix(LISTING + PAUSES).removesuffix(ERROR)
    assert printed == LISTING + PAUSES + profile + ERROR
    assert sorted(re.findall(r"^ +(\d) × +(\S+)", profile, re.MULTILINE)) == [
        ("0", "builtins"),
        ("4", "calls.minus_one"),
        ("4", "calls.multiply"),
    ]

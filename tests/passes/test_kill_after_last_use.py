"""What is needed no more is let go, where something asks for memory afterwards."""

import gc
import weakref
from typing import Any

import numpy as np

import relax_egraph as rx
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.well_formed import find_ill_formed
from relax_egraph.passes.kill_after_last_use import kill_after_last_use
from tests.support.lowered import text

PACKED = """
@R.function(pure=False)
def main(x: R.Tensor((4,), "float32"), c: R.Tensor((), "bool")):
    a = R.call_packed("test.grow", x, sinfo_args=(R.Object,))
    again = a
    b = R.call_packed("test.grow", again, sinfo_args=(R.Object,))
    if c:
        d = R.call_packed("test.grow", b, sinfo_args=(R.Object,))
        e = R.call_packed("test.grow", d, sinfo_args=(R.Object,))
    else:
        e = b
    both = (e, x)
    f = R.call_packed("test.grow", both[0], sinfo_args=(R.Object,))
    return f
"""


def killed(module: IRModule) -> list[str]:
    after = kill_after_last_use(module)
    assert not find_ill_formed(after)
    return [
        line.split(": R.")[0].strip() if "kill" not in line else line.split("= ")[1]
        for line in text(after).splitlines()[2:]
    ]


def test_values_are_let_go_after_the_last_binding_that_uses_them() -> None:
    assert killed(rx.parse(PACKED)) == [
        "a",
        "again",
        "b",
        "R.vm.kill_object(a)",
        "e",
        "block",
        "d",
        "e",
        "R.vm.kill_object(d)",
        "return e",
        "else",
        "return b",
        "R.vm.kill_object(b)",
        "both",
        "gv",
        "f",
        "return f",
    ]


def test_nothing_is_let_go_where_nothing_asks_for_memory() -> None:
    module = rx.parse("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    a = R.exp(x)
    b = R.tanh(a)
    return b
""")

    assert kill_after_last_use(module)["main"] is module["main"]


def test_a_machine_holds_no_value_that_was_let_go() -> None:
    made: list[weakref.ref[Any]] = []
    alive: list[int] = []

    def grow(x: Any) -> Any:
        gc.collect()
        alive.append(sum(ref() is not None for ref in made))
        result = np.ones(8, np.float32)
        made.append(weakref.ref(result))
        return result

    executable = rx.build(rx.parse(PACKED))
    machine = rx.VirtualMachine(executable, {"test.grow": grow}, engine="interpreter")

    machine["main"](np.ones(4, np.float32), np.asarray(False))

    assert alive == [0, 1, 1]

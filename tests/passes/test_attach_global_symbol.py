"""Functions that are seen from outside have the name by which they are."""

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import IllFormed
from relax_egraph.passes.attach_global_symbol import attach_global_symbol

MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def double(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                v = T.axis.spatial(4, i)
                y[v] = x[v] + x[v]

    @R.function(private=True)
    def twice(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.call_tir(cls.double, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return y

    @R.function
    def inner(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"global_symbol": "%s"})
        cls = Module
        y = cls.twice(x)
        return y

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = cls.inner(x)
        return y
"""


def test_public_functions_get_their_names_or_have_others_and_are_called_so() -> None:
    before = parse(MODULE % "forward")

    after = attach_global_symbol(before)

    assert {name: f.attrs.get("global_symbol") for name, f in after.functions.items()} == {
        "double": "double",
        "twice": None,
        "forward": "forward",
        "main": "main",
    }
    assert 'y: R.Tensor((4,), "float32") = cls.forward(x)' in after.script()
    assert parse(after.script()).script() == after.script()
    assert attach_global_symbol(after).script() == after.script()


def test_an_executable_has_them_by_their_symbols() -> None:
    executable = build(parse(MODULE % "forward"))

    public = [f.name for f in executable.functions if not f.private]

    assert public == ["forward", "main"]
    result = VirtualMachine(executable)["forward"](np.ones(4, np.float32))
    np.testing.assert_array_equal(result, np.full(4, 2))


def test_two_functions_of_one_symbol_are_refused() -> None:
    with pytest.raises(IllFormed) as error:
        attach_global_symbol(parse(MODULE % "main"))

    assert str(error.value) == "the functions inner and main have one global_symbol: main"

"""Functions whose decorators do not say whether they have side effects."""

import pytest

from relax_egraph import parse
from relax_egraph.ir.expr import Function
from relax_egraph.ir.well_formed import find_ill_formed

MODULE = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fill(x: T.Buffer((4,), "float32")):
        for i in range(4):
            x[i] = T.float32(1)

    @R.function
    def quiet(x: R.Tensor((4,), "float32")):
        with R.dataflow():
            y = R.call_pure_packed("f", x, sinfo_args=R.Tensor((4,), "float32"))
            R.output(y)
        return y

    @R.function
    def loud(x: R.Tensor((4,), "float32")):
        _ = R.call_packed("print", x)
        return x

    @R.function
    def writes(x: R.Tensor((4,), "float32")):
        cls = Module
        cls.fill(x)
        return x

    @R.function
    def calls(x: R.Tensor((4,), "float32")):
        cls = Module
        y = cls.quiet(x)
        z = cls.again(y)
        return z

    @R.function
    def again(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = cls.loud(x)
        return y

    @R.function
    def makes(x: R.Tensor((4,), "float32")):
        @R.function
        def inner(y: R.Tensor((4,), "float32")):
            _ = R.call_packed("print", y)
            return y
        return x

    @R.function
    def makes_and_calls(x: R.Tensor((4,), "float32")):
        @R.function
        def inner(y: R.Tensor((4,), "float32")):
            _ = R.call_packed("print", y)
            return y
        z = inner(x)
        return z
"""


def test_a_function_has_the_effects_of_what_it_calls() -> None:
    module = parse(MODULE)

    functions = {n: f for n, f in module.functions.items() if isinstance(f, Function)}

    assert {name for name, f in functions.items() if not f.is_pure} == {
        "loud",
        "writes",
        "calls",
        "again",
        "makes_and_calls",
    }
    assert find_ill_formed(module) == []


@pytest.mark.parametrize("mark", ["True", "False"])
def test_what_the_decorator_says_is_kept(mark: str) -> None:
    module = parse(
        f"""
@R.function(pure={mark})
def main(x: R.Tensor((4,), "float32")):
    _ = R.call_packed("print", x)
    return x
"""
    )
    function = module["main"]

    assert isinstance(function, Function)
    assert function.is_pure is (mark == "True")
    assert bool(find_ill_formed(module)) is (mark == "True")

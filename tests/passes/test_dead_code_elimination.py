"""Dead code elimination: bindings, outputs of blocks, functions."""

import numpy as np
import pytest

from relax_egraph.errors import IllFormed
from relax_egraph.passes import dead_code_elimination
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays

HEAD = """
@R.function
def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
"""


def function(body: str) -> str:
    return HEAD + "\n".join(f"    {line}" for line in body.strip().splitlines())


def test_unused_bindings_go_and_outputs_that_only_their_block_reads_are_local() -> None:
    before = """
with R.dataflow():
    a = R.exp(x)
    b = R.log(a)
    d = R.add(a, a)
    e = R.negative(d)
    R.output(a, b, d, e)
g = R.exp(b)
return d
"""
    after = """
with R.dataflow():
    a = R.exp(x)
    d = R.add(a, a)
    R.output(d)
return d
"""

    changed = becomes(dead_code_elimination(), function(before), function(after))

    same_value(parse(function(before)), changed, floats(2), np.bool_(True))


def test_an_output_that_a_branch_or_a_function_or_a_shape_reads_stays_one() -> None:
    stays(
        dead_code_elimination(),
        """
@R.function
def main(x: R.Tensor((2,), "float32"), c: R.Tensor((), "bool")):
    with R.dataflow():
        a = R.exp(x)
        b = R.log(a)
        s = R.shape_of(b)
        R.output(a, b, s)
    @R.function
    def f(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        z = R.add(y, a)
        return z
    if c:
        r = f(b)
    else:
        r = x
    k = R.call_pure_packed("f", r, sinfo_args=(R.Tensor(s, "float32"),))
    return k
""",
    )


FUNCTIONS = """
@I.ir_module
class Module:
    @R.function(private=True)
    def used(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y
    @R.function(private=True)
    def value(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y
    @R.function(private=True)
    def once(x: R.Tensor((2,), "float32")):
        y = R.exp(x)
        return y
    @R.function
    def public(x: R.Tensor((2,), "float32")):
        cls = Module
        y = cls.used(x)
        unread = cls.once(x)
        return (y, cls.value)
    @R.function
    def main(x: R.Tensor((2,), "float32")):
        cls = Module
        y = cls.used(x)
        return y
"""


def test_functions_that_nothing_public_needs_are_dropped() -> None:
    after = dead_code_elimination()(parse(FUNCTIONS))

    assert list(after.functions) == ["used", "value", "public", "main"]


def test_only_what_the_entries_need_is_kept() -> None:
    module = parse(FUNCTIONS)

    assert list(dead_code_elimination(["main"])(module).functions) == ["used", "main"]
    assert list(dead_code_elimination(["value"])(module).functions) == ["value"]
    with pytest.raises(IllFormed) as error:
        dead_code_elimination(["f"])(module)
    assert str(error.value) == (
        "dead_code_elimination: no function 'f'; there are: main, once, public, used, value"
    )


def test_effects_and_checks_stay() -> None:
    stays(
        dead_code_elimination(),
        """
@R.function(pure=False)
def main(x: R.Tensor("float32", ndim=1), f: R.Callable((R.Object,), R.Object, False)):
    m = T.int64()
    a = R.exp(x)
    b = R.call_packed("f", a, sinfo_args=(R.Tensor,))
    d = R.match_cast(x, R.Tensor((m,), "float32"))
    e = f(x)
    return x
""",
    )


def test_a_recursive_local_function_that_nothing_calls_goes() -> None:
    becomes(
        dead_code_elimination(),
        function(
            """
@R.function
def f(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    z = f(y)
    return z
return x
"""
        ),
        function("return x"),
    )

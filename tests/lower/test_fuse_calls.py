"""A fused function that calls loop functions becomes one: they run one after the other."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import NotLowerable
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.tir.stmt import PrimFunc
from tests.support.transformed import floats

DOUBLE = """
    @T.prim_func(private=True)
    def double(a: T.Buffer(("k", 4), "float32"), b: T.Buffer(("k", 4), "float32")):
        k = T.int64()
        for i, j in T.grid(k, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = a[vi, vj] + a[vi, vj]
"""

BOTH = """
    @T.prim_func(private=True)
    def both(a: T.Buffer(("k", 4), "float32"), low: T.Buffer(("k", 4), "float32"),
             high: T.Buffer(("k", 4), "float32")):
        T.func_attr({"num_outputs": 2})
        k = T.int64()
        for i, j in T.grid(k, 4):
            with T.block("low"):
                vi, vj = T.axis.remap("SS", [i, j])
                low[vi, vj] = a[vi, vj] - T.float32(1.0)
        for i, j in T.grid(k, 4):
            with T.block("high"):
                vi, vj = T.axis.remap("SS", [i, j])
                high[vi, vj] = low[vi, vj] + T.float32(2.0)
"""

ROWS = """
    @T.prim_func(private=True)
    def rows(a: T.Buffer(("m * 4",), "float32"), b: T.Buffer(("m * 4",), "float32"), m: T.int64):
        for i in T.serial(m * 4):
            b[i] = a[i] * T.cast(m, "float32")
"""

PRIMITIVE = 'R.func_attr({"primitive": True})'
INFO = 'R.Tensor(("n", 4), "float32")'


def module(loops: str, fused: str, result: str = INFO, call: str = "cls.fused(x)") -> str:
    """The script of a module whose ``main`` calls the primitive function of body `fused`."""
    body = "".join(f"            {line}\n" for line in fused.strip().splitlines())
    return f"""
@I.ir_module
class Module:{loops}
    @R.function(private=True)
    def fused(x: R.Tensor(("n", 4), "float32")) -> {result}:
        n = T.int64()
        cls = Module
        {PRIMITIVE}
        with R.dataflow():
{body}            R.output(gv)
        return gv

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> {result}:
        n = T.int64()
        cls = Module
        r: {result.replace('("n"', "(n")} = {call}
        return r
"""


def fused(text: str) -> IRModule:
    """Assert that fusion leaves no other loop function, and computes what the calls do."""
    before = parse(text)
    assert_well_formed(before)

    after = fuse_tir(before)

    assert_well_formed(after)
    assert list(after.functions) == ["fused", "main"]
    apart, together = (
        VirtualMachine(build(m)) for m in (parse(text.replace(PRIMITIVE, "")), after)
    )
    for rows in (0, 1, 3):
        x = floats(rows, 4)
        equal(together["main"](x), apart["main"](x))
    return after


def equal(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for f, e in zip(found, expected, strict=True):
            equal(f, e)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, strict=True)


CALL_DOUBLE = 'R.call_tir(cls.double, ({},), out_sinfo=R.Tensor((n, 4), "float32"))'


def test_a_function_that_is_called_twice_has_variables_and_blocks_of_its_own_each_time() -> None:
    text = module(DOUBLE, f"a = {CALL_DOUBLE.format('x')}\ngv = {CALL_DOUBLE.format('a')}")

    after = fused(text)

    assert (
        after.script()
        == """\
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fused(x: T.Buffer(("n", 4), "float32"), b_1: T.Buffer(("n", 4), "float32")):
        n = T.int64()
        b = T.alloc_buffer((n, 4), "float32")
        for i, j in T.grid(n, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                b[vi, vj] = x[vi, vj] + x[vi, vj]
        for i, j in T.grid(n, 4):
            with T.block("b_1"):
                vi, vj = T.axis.remap("SS", [i, j])
                b_1[vi, vj] = b[vi, vj] + b[vi, vj]

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = Module
        r: R.Tensor((n, 4), "float32") = R.call_tir(
            cls.fused, (x,), out_sinfo=R.Tensor((n, 4), "float32")
        )
        return r
"""
    )


def test_a_parameter_that_is_called_as_a_loop_variable_keeps_its_value() -> None:
    text = module(
        DOUBLE.replace("for i, j", "for x, j").replace("[i, j]", "[x, j]"),
        f"a = {CALL_DOUBLE.format('x')}\ngv = {CALL_DOUBLE.format('a')}",
    )

    after = fused(text)

    assert parse(after.script()).script() == after.script()
    assert_structural_equal(parse(after.script()), after)


def test_several_results_are_used_and_returned() -> None:
    infos = 'R.Tensor((n, 4), "float32"), R.Tensor((n, 4), "float32")'
    result = f"R.Tuple({INFO}, {INFO})"
    text = module(
        DOUBLE + BOTH,
        f"""
t = R.call_tir(cls.both, (x,), out_sinfo=[{infos}])
low = t[0]
a = {CALL_DOUBLE.format("low")}
gv = (a, t[1])
""",
        result,
    )

    function = fused(text)["fused"]

    assert isinstance(function, PrimFunc)
    assert [b.name for b in function.outputs] == ["b", "high"]
    assert [b.name for b in function.allocs] == ["low"]


def test_what_is_given_back_twice_or_was_a_parameter_is_copied() -> None:
    text = module(
        DOUBLE,
        f"a = {CALL_DOUBLE.format('x')}\ngv = (a, a, x)",
        f"R.Tuple({INFO}, {INFO}, {INFO})",
    )

    function = fused(text)["fused"]

    assert isinstance(function, PrimFunc)
    assert [b.name for b in function.outputs] == ["b", "copy", "copy_1"]


def test_an_operator_and_a_constant_between_the_calls_become_loops() -> None:
    text = module(
        DOUBLE,
        f"""
a = {CALL_DOUBLE.format("x")}
b = R.nn.softmax(R.multiply(a, R.const(0.5, "float32")))
gv = {CALL_DOUBLE.format("b")}
""",
    )

    fused(text)


def test_an_operator_takes_the_shape_that_a_variable_holds() -> None:
    flat = 'R.Tensor(("n * 4",), "float32")'
    text = module(
        DOUBLE,
        f"""
a = {CALL_DOUBLE.format("x")}
s = R.shape([n * 4])
gv = R.reshape(a, s)
""",
        flat,
    ).replace('r: R.Tensor(("n * 4",)', "r: R.Tensor((n * 4,)")

    fused(text)


def test_a_scalar_constant_is_an_operand() -> None:
    loops = """
    @T.prim_func(private=True)
    def fill(a: T.Buffer((), "float32"), b: T.Buffer(("k", 4), "float32")):
        k = T.int64()
        for i, j in T.grid(k, 4):
            b[i, j] = a[()]
"""
    call = 'R.call_tir(cls.fill, (R.const(7.0, "float32"),), out_sinfo=R.Tensor((n, 4), "float32"))'

    fused(module(loops, f"a = {call}\ngv = R.add(a, x)"))


def test_a_symbol_that_no_shape_has_alone_is_handed_over() -> None:
    flat = 'R.Tensor((n * 4,), "float32")'
    text = module(
        ROWS,
        f"""
a = R.flatten(x)
gv = R.call_tir(cls.rows, (a,), out_sinfo={flat}, tir_vars=R.shape([n]))
""",
        'R.Tensor(("n * 4",), "float32")',
    ).replace('r: R.Tensor(("n * 4",)', "r: R.Tensor((n * 4,)")

    fused(text)


def test_a_function_that_others_call_or_that_is_public_is_kept() -> None:
    text = module(DOUBLE, f"gv = {CALL_DOUBLE.format('x')}", call=CALL_DOUBLE.format("x"))
    public = module(DOUBLE.replace("(private=True)", ""), f"gv = {CALL_DOUBLE.format('x')}")

    assert list(fuse_tir(parse(text)).functions) == ["double", "fused", "main"]
    assert list(fuse_tir(parse(public)).functions) == ["double", "fused", "main"]


def test_the_other_spelling_of_the_attribute_is_read() -> None:
    text = module(DOUBLE, f"gv = {CALL_DOUBLE.format('x')}")
    older = text.replace('"primitive": True', '"Primitive": 1')

    assert parse(older).script() == parse(text).script()
    unfused = fuse_tir(parse(older.replace(": 1}", ": 0}")))
    assert [name for name, _ in unfused.relax_functions()] == ["fused", "main"]


REFUSED = {
    "a packed function": (
        'a = R.call_pure_packed("f", x, sinfo_args=R.Tensor((n, 4), "float32"))\n'
        f"gv = {CALL_DOUBLE.format('a')}",
        "fused: a call of R.call_pure_packed cannot be fused",
    ),
    "a check": (
        f'a = R.match_cast(x, R.Tensor((n, 4), "float32"))\ngv = {CALL_DOUBLE.format("a")}',
        "fused: a is checked at run time",
    ),
    "a large constant": (
        f'a = {CALL_DOUBLE.format("x")}\ngv = (a, R.const([1.0, 2.0], "float32"))',
        'fused: a constant R.Tensor((2,), "float32"), needs a scalar or a parameter',
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_part_of_a_loop_function_is_refused(case: str) -> None:
    statements, message = REFUSED[case]
    result = f'R.Tuple({INFO}, R.Tensor((2,), "float32"))' if case == "a large constant" else INFO

    with pytest.raises(NotLowerable) as refused:
        fuse_tir(parse(module(DOUBLE, statements, result)))

    assert str(refused.value) == message

"""Operators that tell, fail, or write into operands: from script to bytecode, and evaluated."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.errors import IllTyped, RunError, ScriptError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.module import IRModule
from relax_egraph.vm.builtins import BUILTINS

PACKED = {name: b.bind() for name, b in BUILTINS.items() if not b.constants}
"""The builtins that a reference evaluation calls."""


def run(how: str, module: IRModule, *args: Any, **packed: Callable[..., Any]) -> Any:
    if how == "built":
        return VirtualMachine(build(module), packed)["main"](*args)
    return evaluate(module, "main", *args, packed={**PACKED, **packed})


both = pytest.mark.parametrize("how", ["evaluated", "built"])

TELLING = parse("""
@R.function(pure=False)
def main(x: R.Tensor(("n", 2), "float32"), fits: R.Tensor((), "bool")):
    n = T.int64()
    R.print(x, R.shape([n, 2]), format="x is {} of {}")
    R.print(R.prim_value(n))
    R.assert_op(fits, R.prim_value(n), format="n is {}, that is too many")
    R.assert_op(R.const(True, "bool"))
    return x
""")


@both
def test_messages_are_printed_and_conditions_hold(
    how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    x = np.zeros((1, 2), np.float32)

    result = run(how, TELLING, x, np.array(True))

    np.testing.assert_array_equal(result, x)
    assert capsys.readouterr().out == "x is [[0. 0.]] of (1, 2)\n1\n"


@both
def test_an_assertion_that_does_not_hold_fails_with_its_message(how: str) -> None:
    with pytest.raises(RunError) as error:
        run(how, TELLING, np.zeros((3, 2), np.float32), np.array(False))

    assert str(error.value) == "assertion failed: n is 3, that is too many"


def test_they_print_as_they_are_read() -> None:
    text = TELLING.script()

    assert parse(text).script() == text
    assert [line.partition(" = ")[2] for line in text.splitlines() if "R.Tuple()" in line] == [
        'R.print(x, R.shape([n, 2]), format="x is {} of {}")',
        'R.print(R.prim_value(n), format="")',
        'R.assert_op(fits, R.prim_value(n), format="n is {}, that is too many")',
        'R.assert_op(R.const(True, "bool"), format="")',
    ]


def test_values_may_be_given_as_a_list() -> None:
    module = parse("""
@R.function(pure=False)
def main(c: R.Tensor((), "bool"), x: R.Object):
    R.assert_op(c, [x, x], format="{} {}")
    R.assert_op(c, format_args=(x,), format="{}")
    return x
""")

    lines = [line.partition(" = ")[2] for line in module.script().splitlines() if "assert" in line]

    assert lines == ['R.assert_op(c, x, x, format="{} {}")', 'R.assert_op(c, x, format="{}")']


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "R.print(x, formats='a')",
            "R.print has no argument 'formats'; it has: format, format_args",
        ),
        ("R.print(x, format=x)", "R.print: the format is no string"),
        (
            "R.assert_op(x)",
            'R.assert_op: the condition is R.Tensor((2,), "float32"), needs R.Tensor((), "bool")',
        ),
        ("R.assert_op()", "R.assert_op: operand 1 is no string: it is the format"),
        ("R.null_value(x)", "R.null_value takes no operands, got 1"),
    ],
)
def test_other_operands_are_refused(line: str, message: str) -> None:
    with pytest.raises(ScriptError) as error:
        parse(f"@R.function\ndef main(x: R.Tensor((2,), 'float32')):\n    {line}\n    return x\n")

    assert error.value.message == message


@both
def test_an_operand_that_is_not_given_is_a_value_too(how: str) -> None:
    module = parse("""
@R.function
def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
    none = R.null_value()
    y = R.call_pure_packed("first_of", none, x, sinfo_args=R.Tensor((2,), "float32"))
    return y
""")
    x = np.ones(2, np.float32)

    def first_of(a: Any, b: Any) -> Any:
        return b if a is None else a

    np.testing.assert_array_equal(run(how, module, x, first_of=first_of), x)


# --- in place -------------------------------------------------------------------------------

WRITING = parse("""
@R.function(pure=False)
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    y = R.call_inplace_packed(
        "test.count", x, inplace_indices=[0, -1],
        sinfo_args=[R.Tensor((n,), "float32"), R.Shape(ndim=1)],
    )
    return y
""")


def count(x: Any) -> Any:
    x += 1
    return None, x.shape


@both
def test_results_in_place_are_the_operands_and_others_what_the_function_gives(how: str) -> None:
    x = np.arange(3, dtype=np.float32)

    written, shape = run(how, WRITING, x, **{"test.count": count})

    np.testing.assert_array_equal(x, [1, 2, 3])
    np.testing.assert_array_equal(written, x)
    assert np.shares_memory(written, x)
    assert shape == (3,)


@both
def test_what_is_read_only_is_copied(how: str) -> None:
    x = np.arange(3, dtype=np.float32)
    x.flags.writeable = False

    written, _ = run(how, WRITING, x, **{"test.count": count})

    np.testing.assert_array_equal(x, [0, 1, 2])
    np.testing.assert_array_equal(written, [1, 2, 3])


def test_calls_in_place_print_as_they_are_read() -> None:
    text = WRITING.script()

    assert parse(text).script() == text
    assert "inplace_indices=[0, -1]," in text


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        ("", "needs sinfo_args: the struct info of its results"),
        (
            ", inplace_indices=[1], sinfo_args=R.Object",
            ": inplace_indices [1], needs -1 or the number of one of 1 operands, each at most once",
        ),
        (
            ", inplace_indices=[0], sinfo_args=R.Tensor((3,), 'int8')",
            ': operand 0 is R.Tensor((2,), "float32"), but sinfo_args says R.Tensor((3,), "int8")',
        ),
        (
            ", inplace_indices=[-1], sinfo_args=R.Object",
            ": no result is in place, use R.call_packed",
        ),
        (
            ", inplace_indices=[0, -1], sinfo_args=R.Object",
            ": inplace_indices [0, -1] name 2 results, sinfo_args has 1",
        ),
    ],
)
def test_calls_in_place_that_cannot_be_are_refused(rest: str, message: str) -> None:
    with pytest.raises((ScriptError, IllTyped)) as error:
        parse(
            "@R.function(pure=False)\n"
            "def main(x: R.Tensor((2,), 'float32')):\n"
            f"    y = R.call_inplace_packed('f', x{rest})\n"
            "    return y\n"
        )

    assert isinstance(error.value, ScriptError)
    assert (
        error.value.message
        == f"R.call_inplace_packed{message if message[0] == ':' else f' {message}'}"
    )


# --- random numbers and caches, from a script -------------------------------------------------

DECODING = parse("""
@R.function(pure=False)
def main(x: R.Tensor(("n", 4), "float32"), cache: R.Object):
    n, m = T.int64(), T.int64()
    state = R.call_packed("vm.builtin.rng_state", R.prim_value(7), sinfo_args=R.Object)
    y = R.add(x, x)
    noise = R.call_inplace_packed(
        "vm.builtin.rng_uniform", state, y, inplace_indices=[1],
        sinfo_args=R.Tensor((n, 4), "float32"),
    )
    longer = R.call_inplace_packed(
        "vm.builtin.kv_cache_append", cache, noise, inplace_indices=[0], sinfo_args=R.Object
    )
    length = R.call_packed("vm.builtin.kv_cache_length", longer, sinfo_args=R.Prim("int64"))
    _ = R.match_cast(length, R.Prim(value="m"))
    all_rows = R.call_packed(
        "vm.builtin.kv_cache_view", longer, R.shape([m, 4]), sinfo_args=R.Tensor((m, 4), "float32")
    )
    total = R.sum(all_rows, axis=[0])
    return total
""")


@both
def test_a_cache_grows_from_call_to_call(how: str) -> None:
    cache = BUILTINS["vm.builtin.kv_cache_create"].bind("float32")((1, 4))
    noise = [np.random.Generator(np.random.Philox(7)).random((k, 4), np.float32) for k in (2, 1, 5)]

    totals = [run(how, DECODING, np.zeros((k, 4), np.float32), cache) for k in (2, 1, 5)]

    rows = np.concatenate(noise)
    for total, end in zip(totals, (2, 3, 8), strict=True):
        np.testing.assert_allclose(total, rows[:end].sum(0), rtol=1e-6)


def test_what_a_builtin_gives_is_checked() -> None:
    cache = BUILTINS["vm.builtin.kv_cache_create"].bind("float64")((1, 4))
    module = parse("""
@R.function(pure=False)
def main(cache: R.Object) -> R.Tensor((0, 4), "float32"):
    rows = R.call_packed(
        "vm.builtin.kv_cache_view", cache, R.shape([0, 4]), sinfo_args=R.Tensor((0, 4), "float32")
    )
    y = R.add(rows, rows)
    return y
""")

    with pytest.raises(RunError) as error:
        run("built", module, cache)

    assert str(error.value) == (
        "main: the result of 'vm.builtin.kv_cache_view': "
        'expected R.Tensor((0, 4), "float32"), got R.Tensor((0, 4), "float64")'
    )

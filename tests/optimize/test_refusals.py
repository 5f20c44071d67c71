"""Whatever a module refuses when it runs, its optimized form refuses, with the same words.

Where a use requires more of a parameter than its declaration says, the optimized form refuses at
the call, in words about the parameter.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, optimize
from relax_egraph.errors import IllTyped, RunError
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.module import IRModule
from relax_egraph.script import parse
from tests.support.random_claims import PACKED, arguments, claiming_module

CALLS = 4
"""How often each random module is called, with other sizes."""

TWO_VECTORS = """
@R.function
def main(a: R.Tensor(("n",), "float32"), w: R.Tensor(("m",), "float32")):
    n, m = T.int64(), T.int64()
    with R.dataflow():
{lines}
        R.output(out)
    return out
"""


def outcome(run: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    """The words of a refusal, or none and the result."""
    try:
        return "", run(*args)
    except RunError as refusal:
        return str(refusal), None


def referred(module: IRModule, *args: Any) -> tuple[str, Any]:
    """The outcome of the reference."""
    return outcome(partial(evaluate, packed=PACKED), module, "main", *args)


def refusal_of_both(before: IRModule, after: IRModule, *args: Any) -> str:
    """The words by which the machine refuses `before`; asserts that all agree on it."""
    both = (before, after)
    words = [outcome(VirtualMachine(build(m), PACKED)["main"], *args)[0] for m in both]
    assert all(referred(m, *args)[0] for m in both)
    assert words[0] == words[1]
    return words[0]


def assert_close(actual: Any, expected: Any) -> None:
    """That both are the same tensors, or tuples of them, but for rounding."""
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            assert_close(a, e)
    else:
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5, strict=True)


def assert_agree(seed: int) -> None:
    """That the module of `seed` refuses and computes the same, before and after."""
    before = parse(claiming_module(seed))
    after = optimize(before)
    machines = [VirtualMachine(build(m), PACKED) for m in (before, after)]
    for k in range(CALLS):
        args = arguments(CALLS * seed + k)

        (said, result), (words, best) = [outcome(m["main"], *args) for m in machines]
        (refused, expected), (also_refused, _) = [referred(m, *args) for m in (before, after)]

        assert said == words or words.startswith("main: parameter"), claiming_module(seed)
        assert bool(said) == bool(refused) == bool(also_refused), claiming_module(seed)
        if not said:
            assert_close(result, expected)
            assert_close(best, expected)


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_modules_agree_in_refusing(first: int) -> None:
    for seed in range(first, first + 10):
        assert_agree(seed)


@pytest.mark.fuzz
@pytest.mark.parametrize("first", range(30, 1030, 50))
def test_a_thousand_random_modules_agree_in_refusing(first: int) -> None:
    for seed in range(first, first + 50):
        assert_agree(seed)


@pytest.mark.parametrize(
    ("lines", "n", "m", "words"),
    [
        (
            ['b: R.Tensor((m,), "float32") = R.exp(a)', "out = R.sum(b)"],
            *(3, 4),
            'main: match_cast b: expected R.Tensor((m,), "float32"), got R.Tensor((3,), "float32"):'
            " dimension 0 is 3, needs m = 4",
        ),
        (
            ['b: R.Tensor((m,), "float32") = R.exp(a)', "out = R.add(b, w)"],
            *(1, 5),
            'main: match_cast b: expected R.Tensor((m,), "float32"), got R.Tensor((1,), "float32"):'
            " dimension 0 is 1, needs m = 5",
        ),
        (
            [
                'b: R.Tensor((5,), "float32") = R.exp(a)',
                'out = R.add(b, R.zeros(R.shape([5]), "float32"))',
            ],
            *(1, 5),
            'main: match_cast b: expected R.Tensor((5,), "float32"), got R.Tensor((1,), "float32"):'
            " dimension 0 is 1, needs 5",
        ),
        (
            ['b: R.Tensor((m,), "float32") = R.exp(a)', "out = R.exp(w)"],
            *(2, 3),
            'main: match_cast b: expected R.Tensor((m,), "float32"), got R.Tensor((2,), "float32"):'
            " dimension 0 is 2, needs m = 3",
        ),
        (
            ["unread = R.add(a, w)", "out = R.exp(w)"],
            *(2, 3),
            'R.add of R.Tensor((2,), "float32"), R.Tensor((3,), "float32"): '
            "the shapes do not broadcast",
        ),
        (
            ["b = R.reshape(a, R.shape([m]))", "out = R.reshape(b, R.shape([n]))"],
            *(2, 3),
            'R.reshape of R.Tensor((2,), "float32") to (3,): 2 elements do not fill 3',
        ),
        (
            [
                'b: R.Tensor((3,), "float32") = R.exp(w)',
                "c = R.reshape(a, R.shape([5]))",
                "out = R.add(c, R.sum(b))",
            ],
            *(2, 2),
            'main: match_cast b: expected R.Tensor((3,), "float32"), got R.Tensor((2,), "float32"):'
            " dimension 0 is 2, needs 3",
        ),
        (
            [
                "squares = R.multiply(w, w)",
                'b: R.Tensor((n,), "float32") = squares',
                "c = R.reshape(a, R.shape([1]))",
                "d = R.multiply(c, R.tanh(w))",
                "out = (b, d)",
            ],
            *(3, 5),
            'main: match_cast b: expected R.Tensor((n,), "float32"), got R.Tensor((5,), "float32"):'
            " dimension 0 is 5, needs n = 3",
        ),
    ],
    ids=["reduced", "broadcast", "constant", "unread", "operator", "reshapes", "order", "kernel"],
)
def test_what_is_written_refuses_in_its_order(lines: list[str], n: int, m: int, words: str) -> None:
    module = parse(TWO_VECTORS.format(lines="\n".join(f"        {line}" for line in lines)))
    a, w = (np.ones(size, np.float32) for size in (n, m))

    assert refusal_of_both(module, optimize(module), a, w) == words


@pytest.mark.parametrize(
    ("dim", "n", "words"),
    [
        (
            "n - 4",
            2,
            "main: match_cast b_shape: expected R.Shape((max(0, n - 4),)), got R.Shape((-2,)): "
            "dimension 0 is -2, needs max(0, n - 4) = 0",
        ),
        ("7 // n", 0, "the dimension 7 // 0 divides by zero"),
    ],
)
def test_an_extent_that_cannot_be_is_refused_where_no_tensor_has_it(
    dim: str, n: int, words: str
) -> None:
    lines = [f"b = R.zeros(R.shape([{dim}]), 'float32')", "out = R.sum(R.cos(b))"]
    module = parse(TWO_VECTORS.format(lines="\n".join(f"        {line}" for line in lines)))
    a, w = (np.ones(size, np.float32) for size in (n, 3))

    assert refusal_of_both(module, optimize(module), a, w) == words


@pytest.mark.parametrize("n", [3, 6])
@pytest.mark.parametrize("taken", [False, True])
def test_a_branch_refuses_where_it_is_taken(n: int, *, taken: bool) -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor((1, 5, 5, 2), "float32"), w: R.Tensor((4, 2, "n", "n"), "float32"),
         c: R.Tensor((), "bool")):
    if c:
        with R.dataflow():
            unread = R.nn.conv2d(x, w, data_layout="NHWC", kernel_layout="OIHW")
            out = R.sum(x)
            R.output(out)
        result = out
    else:
        result = R.max(x)
    return result
"""
    )
    args = np.ones((1, 5, 5, 2), np.float32), np.ones((4, 2, n, n), np.float32), np.asarray(taken)

    after = optimize(module)

    if taken and n > 5:
        assert "5" in refusal_of_both(module, after, *args)
    else:
        for m in (module, after):
            result = VirtualMachine(build(m))["main"](*args)
            assert_close(result, evaluate(module, "main", *args))


def test_a_claim_that_follows_from_assumptions_costs_no_check() -> None:
    lines = ['b: R.Tensor((8,), "float32") = R.exp(a)', "out = R.tanh(b)"]
    module = parse(TWO_VECTORS.format(lines="\n".join(f"        {line}" for line in lines)))

    checked, free = optimize(module).script(), optimize(module, assume=["n == 8"]).script()

    assert 'b: R.Tensor((8,), "float32") = R.match_cast(b1' in checked
    assert "fused_exp_tanh" in free
    assert "b: " not in free


def test_one_extent_has_one_spelling_where_it_is_assumed() -> None:
    """`n` is counted from 1001 on: an extent of the program is written as one of another number."""
    module = parse(
        """
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")):
    with R.dataflow():
        a = R.split(x, 2, axis=0)[0]
        b = R.subtract(a, a)
        out = R.subtract(b, a)
        R.output(out)
    return out
"""
    )
    x = np.ones((1003, 4), np.float32)

    best = VirtualMachine(build(optimize(module, assume=["n >= 1001"])))["main"](x, x)

    np.testing.assert_array_equal(best, evaluate(module, "main", x, x))


def test_extents_that_do_not_broadcast_where_a_symbol_is_known_are_the_programs() -> None:
    lines = ["b = R.split(a, 2, axis=0)[0]", "c = R.split(b, 2, axis=0)[0]", "out = R.add(b, c)"]
    module = parse(TWO_VECTORS.format(lines="\n".join(f"        {line}" for line in lines)))

    with pytest.raises(IllTyped) as error:
        optimize(module, assume=["n == 2000"])

    assert str(error.value) == (
        "main: out is ill-typed where n == 2000: R.add of "
        'R.Tensor(((n + 1) // 2,), "float32"), R.Tensor((((n + 1) // 2 + 1) // 2,), "float32"): '
        "the shapes do not broadcast"
    )


def test_operands_that_do_not_fit_where_assumptions_hold_are_the_programs() -> None:
    module = parse(
        """
@R.function
def main(x: R.Tensor((4, "n"), "float32"), y: R.Tensor((8, 1, "n"), "float32")):
    with R.dataflow():
        out = R.matmul(x, y)
        R.output(out)
    return out
"""
    )

    with pytest.raises(IllTyped) as error:
        optimize(module, assume=["n >= 2"])

    assert str(error.value) == (
        'main: out is ill-typed where n >= 2: R.matmul of R.Tensor((4, n), "float32") and '
        'R.Tensor((8, 1, n), "float32"): needs (…, m, k) and (…, k, n), got k = n and 1'
    )

"""Programs optimized under assumptions on symbols: what rules prove, and what is checked."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError, SaturationError
from relax_egraph.ir.assumptions import parse
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Function, MatchCast
from relax_egraph.ir.walk import bindings_of
from relax_egraph.passes.check_assumptions import check_assumptions

ROUND = rx.parse("""
@R.function
def main(x: R.Tensor(("n", "s"), "float32")):
    with R.dataflow():
        lv0 = R.reshape(x, R.shape([n, s // 8, 8]))
        lv1 = R.exp(lv0)
        gv0 = R.reshape(lv1, R.shape([n, (s // 8) * 8]))
        R.output(gv0)
    return gv0
""")

PAIR = rx.parse("""
@R.function
def pair(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
    with R.dataflow():
        gv0 = R.strided_slice(y, [0], R.shape([0]), R.shape([n * 2]))
        R.output(gv0)
    return gv0

@R.function
def alone(y: R.Tensor(("m",), "float32")):
    with R.dataflow():
        gv0 = R.concat((y, y), axis=0)
        R.output(gv0)
    return gv0
""")

CUT = """
(rewrite (R.exp x) (R.reshape x (vec-of n (DimMul (DimFloorDiv s (DimSym "8")) (DimSym "8"))))
  :when ((= n (vec-get (shape-of x) 0)) (= s (vec-get (shape-of x) 1)))
  :name "exp-is-cut")
"""


def operators(module: rx.IRModule, name: str) -> str:
    """The text of a function of `module`."""
    return rx.IRModule({name: module[name]}).script()


def test_equal_under_an_assumption_is_equal() -> None:
    without = rx.optimize(ROUND)
    under = rx.optimize(ROUND, assume=["s % 8 == 0"])

    assert "R.reshape" in operators(without, "main")
    assert "R.reshape" not in operators(under, "main")


def test_a_value_of_a_symbol_is_used_where_its_symbols_are_known() -> None:
    under = rx.optimize(PAIR, assume=["m == 2*n"])

    assert "R.strided_slice" not in operators(under, "pair")
    assert "n" not in operators(under, "alone").partition("R.concat")[0].split()
    y = np.arange(6, dtype="float32")
    np.testing.assert_array_equal(evaluate(under, "pair", y[:3], y), y)
    np.testing.assert_array_equal(evaluate(under, "alone", y), np.tile(y, 2))


def test_what_is_assumed_is_checked_when_the_program_runs() -> None:
    module = rx.optimize(ROUND, assume=["s % 8 == 0", "1 <= n <= 2"])
    main = rx.VirtualMachine(rx.build(module))["main"]

    x = np.ones((2, 16), "float32")
    np.testing.assert_allclose(main(x), np.exp(x), rtol=1e-6)
    for shape, said in [
        ((2, 9), "the dimension s is 9, needs s % 8 == 0"),
        ((0, 8), "the dimension n is 0, needs 1 or more"),
        ((3, 8), "the dimension n is 3, needs 2 or less"),
    ]:
        with pytest.raises(RunError, match=said):
            main(np.ones(shape, "float32"))


@pytest.mark.parametrize(
    ("texts", "checks", "refusals"),
    [
        (["n >= 1"], ["R.Shape((min(1, n),)) as R.Shape((1,))"], ["n is {n}, needs 1 or more"]),
        (["n <= 8"], ["R.Shape((max(8, n),)) as R.Shape((8,))"], ["n is {n}, needs 8 or less"]),
        (
            ["n == 8"],
            [
                "R.Shape((n,)) as R.Shape((8,))",
                'R.Tensor((n, s), "float32") as R.Tensor((8, s), "float32")',
            ],
            ["n is {n}, needs 8"],
        ),
        (
            ["s % 8 == 3"],
            ["R.Shape((s % 8,)) as R.Shape((3,))"],
            ["s is {s}, needs s % 8 == 3"],
        ),
        (
            ["s == 2*n"],
            [
                "R.Shape((s,)) as R.Shape((n * 2,))",
                'R.Tensor((n, s), "float32") as R.Tensor((n, n * 2), "float32")',
            ],
            ["s is {s}, needs n * 2, which is {n * 2}"],
        ),
        (
            ["s % 8 == 3", "s >= 4"],
            ["R.Shape((s % 8,)) as R.Shape((3,))", "R.Shape((min(11, s),)) as R.Shape((11,))"],
            ["s is {s}, needs s % 8 == 3", "s is {s}, needs 11 or more"],
        ),
        (["q >= 1", "s == q"], [], []),
    ],
)
def test_a_function_begins_with_a_check_of_what_is_assumed_of_its_symbols(
    texts: list[str], checks: list[str], refusals: list[str]
) -> None:
    checked = check_assumptions(parse(texts))(ROUND)

    function = checked["main"]
    assert isinstance(function, Function)
    casts = [b for b in bindings_of(function.body) if isinstance(b, MatchCast)]
    assert [f"{c.value.struct_info} as {c.struct_info}" for c in casts] == checks
    assert [c.refusal for c in casts if c.refusal] == [f"the dimension {r}" for r in refusals]


CHECKED = rx.parse("""
@R.function
def main(x: R.Tensor(("n",), "float32")):
    n = T.int64()
    least = R.match_cast(R.shape([min(4, n)]), R.Shape((4,)), refusal="n is {n}, needs 4 or more")
    with R.dataflow():
        lv0 = R.strided_slice(x, [0], R.shape([0]), R.shape([4]))
        lv1 = R.strided_slice(x, [0], R.shape([4]), R.shape([n]))
        gv0 = R.concat((lv0, lv1))
        R.output(gv0)
    return gv0
""")


def test_bounds_that_a_function_checks_first_are_known() -> None:
    best = rx.optimize(CHECKED)

    assert "R.concat" not in operators(best, "main")
    x = np.arange(6, dtype="float32")
    np.testing.assert_array_equal(evaluate(best, "main", x), x)
    for program in (CHECKED, best):
        with pytest.raises(RunError, match="n is 3, needs 4 or more"):
            evaluate(program, "main", x[:3])


SUM = rx.parse("""
@R.function
def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")):
    with R.dataflow():
        lv0 = R.add(x, y)
        lv1 = R.reshape(lv0, R.shape([2, n * 2]))
        gv0 = R.exp(lv1)
        R.output(gv0)
    return gv0
""")


@pytest.mark.parametrize("assume", [["n == m"], ["n == m", "m == 6"], ["n == 6", "m == 6"]])
def test_what_is_equal_under_an_assumption_is_compiled_as_such(assume: list[str]) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.standard_normal((6, 4)).astype("float32") for _ in "xy")
    expected = np.exp((x + y).reshape(2, 12))

    executable = rx.build(rx.optimize(SUM, assume=assume))

    assert "relax.run" in rx.build(SUM).as_text()
    assert "relax.run" not in executable.as_text()
    main = rx.VirtualMachine(executable)["main"]
    np.testing.assert_allclose(main(x, y), expected, rtol=1e-6)
    with pytest.raises(RunError, match="the dimension n is 4, needs "):
        main(x[:4], y)


def test_shapes_that_only_an_assumption_makes_equal_are_no_conflict() -> None:
    program = rx.parse("""
@R.function
def main(x: R.Tensor(("n", "s"), "float32")):
    with R.dataflow():
        gv0 = R.exp(x)
        R.output(gv0)
    return gv0
""")

    rx.optimize(program, [CUT], assume=["s % 8 == 0"])
    with pytest.raises(SaturationError) as conflict:
        rx.optimize(program, [CUT])

    assert str(conflict.value) == (
        "rule exp-is-cut (<rules>:2:1) is unsound: "
        "it equates values of shapes (n, s) and (n, (s // 8) * 8)"
    )


def test_alike_regions_are_one_under_the_same_assumptions_only() -> None:
    text = """
@R.function
def {name}(x: R.Tensor(("s",), "float32"), y: R.Tensor(({other},), "float32")):
    with R.dataflow():
        gv0 = R.reshape(x, R.shape([(s // 8) * 8]))
        R.output(gv0)
    return gv0
"""
    module = rx.parse(text.format(name="a", other='"n"') + text.format(name="b", other='"m"'))

    def runs(**more: Any) -> int:
        return len(rx.explain(module, **more).regions)

    assert runs() == 1
    assert runs(assume=["s % 8 == 0"]) == 1
    assert runs(assume=["s % 8 == 0", "n >= 1"]) == 2

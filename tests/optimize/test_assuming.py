"""Programs optimized under assumptions on symbols: what rules prove, and what is checked."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError, SaturationError
from relax_egraph.ir.assumptions import parse
from relax_egraph.ir.evaluate import evaluate
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
    for shape, said in [((2, 9), "assumed_s"), ((0, 8), "assumed_n"), ((3, 8), "assumed_n1")]:
        with pytest.raises(RunError, match=f"main: match_cast {said}: expected"):
            main(np.ones(shape, "float32"))


@pytest.mark.parametrize(
    ("texts", "checks"),
    [
        (["n >= 1"], ["R.match_cast(R.shape([min(1, n)]), R.Shape((1,)))"]),
        (["n <= 8"], ["R.match_cast(R.shape([max(8, n)]), R.Shape((8,)))"]),
        (
            ["n == 8"],
            [
                "R.match_cast(R.shape([n]), R.Shape((8,)))",
                'R.match_cast(x, R.Tensor((8, s), "float32"))',
            ],
        ),
        (["s % 8 == 3"], ["R.match_cast(R.shape([s % 8]), R.Shape((3,)))"]),
        (
            ["s == 2*n"],
            [
                "R.match_cast(R.shape([s]), R.Shape((n * 2,)))",
                'R.match_cast(x, R.Tensor((n, n * 2), "float32"))',
            ],
        ),
        (
            ["s % 8 == 3", "s >= 4"],
            [
                "R.match_cast(R.shape([s % 8]), R.Shape((3,)))",
                "R.match_cast(R.shape([min(11, s)]), R.Shape((11,)))",
            ],
        ),
        (["q >= 1", "s == q"], []),
    ],
)
def test_a_function_begins_with_a_check_of_what_is_assumed_of_its_symbols(
    texts: list[str], checks: list[str]
) -> None:
    checked = check_assumptions(parse(texts))(ROUND)

    lines = checked.script().splitlines()
    assert [line.split(" = ")[1] for line in lines if "match_cast" in line] == checks


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
    with pytest.raises(RunError, match=r"main: match_cast assumed_n: expected R\.Shape"):
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

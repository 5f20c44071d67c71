"""Random integer expressions: machine code and the interpreter agree to the bit."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.tir.expr import Binary, Cast, Imm, Not, Select, TirExpr, TirVar
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import For, IfThenElse, PrimFunc, Store, seq
from tests.support.kernels import TARGETS, buffer, compiled, loop, n, sample

i = TirVar("i")
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
INPUTS = {dtype: buffer(f"x_{dtype}", dtype, n) for dtype in [*DTYPES, "bool"]}


def literals(dtype: str) -> st.SearchStrategy[TirExpr]:
    limits = np.iinfo(dtype)
    return st.builds(Imm, st.integers(int(limits.min), int(limits.max)), st.just(dtype))


@st.composite
def expressions(draw: st.DrawFn, dtype: str, depth: int = 4) -> TirExpr:
    """An expression of `dtype` over the elements of `INPUTS` and the position."""
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        leaves: list[st.SearchStrategy[TirExpr]] = [st.just(INPUTS[dtype][i])]
        if dtype != "bool":
            leaves.append(literals(dtype))
        if dtype == "int64":
            leaves.append(st.just(i))
        return draw(st.one_of(leaves))

    def below(of: str) -> TirExpr:
        return draw(expressions(of, depth - 1))

    if dtype == "bool":
        match draw(st.sampled_from(["compare", "logic", "not", "cast"])):
            case "compare":
                kind: Any = draw(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
                of = draw(st.sampled_from(DTYPES))
                return Binary(kind, below(of), below(of))
            case "logic":
                either: Any = draw(st.sampled_from(["and", "or"]))
                return Binary(either, below("bool"), below("bool"))
            case "not":
                return Not(below("bool"))
            case _:
                return Cast("bool", below(draw(st.sampled_from(DTYPES))))
    match draw(st.sampled_from(["arithmetic", "arithmetic", "select", "cast"])):
        case "arithmetic":
            operation: Any = draw(st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]))
            right = below(dtype)
            if operation in ("//", "%"):  # by 0, the interpreter raises
                right = Select(Binary("==", right, Imm(0, dtype)), Imm(3, dtype), right)
            return Binary(operation, below(dtype), right)
        case "select":
            return Select(below("bool"), below(dtype), below(dtype), draw(st.booleans()))
        case _:
            return Cast(dtype, below(draw(st.sampled_from([*DTYPES, "bool"]))))


@st.composite
def functions(draw: st.DrawFn) -> PrimFunc:
    """Two maps in one vectorized loop, one of them in a branch."""
    first, second = draw(st.sampled_from(DTYPES)), draw(st.sampled_from([*DTYPES, "bool"]))
    a, b = buffer("a", first, n), buffer("b", second, n)
    body = seq(
        Store(a, (i,), draw(expressions(first))),
        Store(b, (i,), INPUTS[second][i]),
        IfThenElse(draw(expressions("bool", 2)), Store(b, (i,), draw(expressions(second)))),
    )
    nest: For = loop(i, n, body)
    return PrimFunc((*INPUTS.values(), a, b), nest, num_outputs=2)


@settings(max_examples=60, deadline=None)
@given(functions(), st.integers(0, 70), st.sampled_from(TARGETS))
def test_random_loops_agree_with_the_interpreter(
    function: PrimFunc, size: int, target: Any
) -> None:
    inputs = [sample((size,), dtype, seed) for seed, dtype in enumerate(INPUTS)]
    with np.errstate(all="ignore"):
        expected = interpret(function, inputs, {"n": size})
    outputs = [np.zeros(size, b.dtype) for b in function.outputs]

    compiled(function, target)(*inputs, *outputs, size)

    for result, exact in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(result, exact)

"""Matrices that indices choose: read where they lie by the product that wants them once."""

from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, parse
from relax_egraph.ir.module import IRModule
from relax_egraph.lower.pipeline import TO_STAGES, lower_module
from relax_egraph.tir.stmt import PrimFunc

PARAMS = """
        t: R.Tensor((4, 6, 40), "float32"),
        i: R.Tensor(("n",), "int64"),
        p: R.Tensor(("n", 1), "int32"),
        row: R.Tensor(("n", 1, 6), "float32"),
        rows: R.Tensor(("n", 2, 6), "float32"),
        column: R.Tensor(("n", 40, 1), "float32"),
        vector: R.Tensor((40,), "float32"),
        every: R.Tensor((3, 1, 1, 6), "float32"),
        one: R.Tensor((), "int64"),
"""


def program(*lines: str) -> IRModule:
    body = "\n            ".join(lines)
    return parse(f"""
@I.ir_module
class Module:
    @R.function
    def main({PARAMS}    ):
        with R.dataflow():
            {body}
            R.output(y)
        return y
""")


def arguments(indices: list[int]) -> dict[str, Any]:
    random, n = np.random.default_rng(0), len(indices)
    shapes = {"row": (n, 1, 6), "rows": (n, 2, 6), "column": (n, 40, 1), "vector": (40,)}
    drawn = {k: random.standard_normal(s).astype(np.float32) for k, s in shapes.items()}
    every = random.standard_normal((3, 1, 1, 6)).astype(np.float32)
    t = random.standard_normal((4, 6, 40)).astype(np.float32)
    i = np.array(indices, np.int64)
    return {
        "t": t,
        "i": i,
        "p": i[:, None].astype(np.int32),
        **drawn,
        "every": every,
        "one": np.array(2),
    }


def loops(module: IRModule) -> list[str]:
    return [name for name, f in TO_STAGES(module).functions.items() if isinstance(f, PrimFunc)]


TAKE, GATHER = "w = R.take(t, i, axis=0)", "w = R.gather_nd(t, p)"
READ = {
    "row": "R.matmul(row, w)",
    "column": "R.matmul(w, column)",
    "vector": "R.matmul(w, vector)",
}


@pytest.mark.parametrize("gather", [TAKE, GATHER, "w = R.take(t, i, axis=0, mode='clip')"])
@pytest.mark.parametrize("other", READ)
def test_a_product_with_one_line_reads_the_chosen_matrices_themselves(
    gather: str, other: str
) -> None:
    module = program(gather, f"y = {READ[other]}")
    main = VirtualMachine(build(module))["main"]

    assert loops(module) == [f"{gather[6:].partition('(')[0]}_matmul"]
    for indices in ([2, 0, 3, 2, 1, 1], [0], []):
        given = arguments(indices)
        chosen = given["t"][given["i"]]
        x = given[other]
        expected = x @ chosen if other == "row" else chosen @ x
        np.testing.assert_allclose(main(*given.values()), expected, rtol=1e-4, atol=1e-5)


def test_indices_outside_of_the_table_read_what_the_copy_would_hold() -> None:
    main = VirtualMachine(build(program(TAKE, "y = R.matmul(row, w)")))["main"]
    given = arguments([-1, 9, -9])

    expected = given["row"] @ given["t"][[3, 3, 0]]
    np.testing.assert_allclose(main(*given.values()), expected, rtol=1e-4, atol=1e-5)


def test_one_matrix_is_read_in_its_place() -> None:
    module = program("w = R.take(t, one, axis=0)", "y = R.matmul(w, vector)")
    given = arguments([0])

    assert loops(module) == ["take_matmul"]
    result = VirtualMachine(build(module))["main"](*given.values())
    np.testing.assert_allclose(result, given["t"][2] @ given["vector"], rtol=1e-4, atol=1e-5)


def test_one_row_and_many_columns_are_blocks_of_the_table() -> None:
    module = lower_module(program(TAKE, "y = R.matmul(row, w)"))

    assert module["take_matmul"].attrs["schedule"] == "matmul"


STAY = {
    "read twice": (TAKE, "v = R.matmul(row, w)", "y = R.add(v, R.sum(w, axis=1, keepdims=True))"),
    "several rows": (TAKE, "y = R.matmul(rows, w)"),
    "read again for each of a batch": (TAKE, "y = R.matmul(every, w)"),
    "rows are chosen": ("w = R.take(t, i, axis=1)", "y = R.matmul(w, vector)"),
    "what is outside is NaN": ("w = R.take(t, i, axis=0, mode='nan')", "y = R.matmul(row, w)"),
}


@pytest.mark.parametrize("lines", STAY.values(), ids=STAY)
def test_other_matrices_are_copied(lines: tuple[str, ...]) -> None:
    assert {"take", "matmul"} <= set(loops(program(*lines)))


WRITTEN = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def clear(t: T.Buffer((2, 3, 4), "float32")):
        T.func_attr({"num_outputs": 0})
        for i, j, k in T.grid(2, 3, 4):
            with T.block("clear"):
                a, b, c = T.axis.remap("SSS", [i, j, k])
                t[a, b, c] = T.float32(0)

    @R.function(pure=False)
    def reset(t: R.Tensor((2, 3, 4), "float32")) -> R.Tensor((2, 3, 4), "float32"):
        cls = Module
        u = R.call_tir_inplace(
            cls.clear, (t,), inplace_indices=[0], out_sinfo=R.Tensor((2, 3, 4), "float32")
        )
        return u

    @R.function(pure=False)
    def main(
        t: R.Tensor((2, 3, 4), "float32"),
        i: R.Tensor(("n",), "int64"),
        x: R.Tensor(("n", 1, 3), "float32"),
    ):
        cls = Module
        w = R.take(t, i, axis=0)
        u = cls.reset(t)
        y = R.matmul(x, w)
        return y
"""


def test_a_table_that_a_callee_writes_later_is_read_before() -> None:
    t, x = np.ones((2, 3, 4), np.float32), np.ones((1, 1, 3), np.float32)

    result = VirtualMachine(build(parse(WRITTEN)))["main"](t, np.array([1]), x)

    np.testing.assert_array_equal(result, np.full((1, 1, 4), 3, np.float32))
    np.testing.assert_array_equal(t, np.zeros((2, 3, 4)))

"""What loop functions mean that the loop language has no node for, run on numbers."""

import numpy as np

from relax_egraph.script import parse
from relax_egraph.tir.interpret import interpret
from relax_egraph.tir.stmt import PrimFunc


def loops(text: str) -> PrimFunc:
    function = parse(text)["f"]
    assert isinstance(function, PrimFunc)
    return function


def test_a_scalar_keeps_its_value_when_what_it_was_read_from_is_written() -> None:
    swap = loops("""
    @T.prim_func
    def f(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
        T.func_attr({"num_outputs": 2})
        for i in T.parallel(n):
            v = A[i]
            j = n - 1 - i
            A[i] = B[j]
            B[j] = v
    """)
    a, b = np.arange(3, dtype=np.float32), np.array([7, 8, 9], np.float32)

    first, second = interpret(swap, [a.copy(), b.copy()])

    np.testing.assert_array_equal(first, [9, 8, 7])
    np.testing.assert_array_equal(second, [2, 1, 0])


def test_a_scalar_of_a_block_is_computed_for_each_run_of_it() -> None:
    squares = loops("""
    @T.prim_func
    def f(A: T.Buffer((n, m), "float32"), B: T.Buffer((n,), "float32")):
        for i, k in T.grid(n, m):
            with T.block("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = 0.0
                v = A[vi, vk]
                with T.let(w, v * v):
                    B[vi] = B[vi] + w
    """)

    (sums,) = interpret(squares, [np.arange(6, dtype=np.float32).reshape(2, 3)])

    np.testing.assert_array_equal(sums, [5, 50])


def test_a_block_runs_where_its_condition_holds() -> None:
    tiled = loops("""
    @T.prim_func
    def f(A: T.Buffer((5, 3), "float32"), B: T.Buffer((5,), "float32")):
        for o, i, k in T.grid(2, 4, 3):
            with T.block("sum"):
                vi = T.axis.spatial(5, o * 4 + i)
                vk = T.axis.reduce(3, k)
                T.where(o * 4 + i < 5)
                with T.init():
                    B[vi] = 1.0
                B[vi] = B[vi] + A[vi, vk]
    """)

    (sums,) = interpret(tiled, [np.ones((5, 3), np.float32)])

    np.testing.assert_array_equal(sums, [4, 4, 4, 4, 4])


def test_a_block_with_extents_runs_over_them() -> None:
    product = loops("""
    @T.func
    def f(a, b, c):
        A = T.match_buffer(a, (n, m))
        B = T.match_buffer(b, (m,))
        C = T.match_buffer(c, (n,))
        with T.block([n, T.reduce_axis(0, m)], "product") as [i, k]:
            with T.init():
                C[i] = 0.0
            C[i] = C[i] + A[i, k] * B[k]
    """)
    a, b = np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 10, 100], np.float32)

    (c,) = interpret(product, [a, b])

    np.testing.assert_array_equal(c, a @ b)

"""Constant right operands are packed when a program is built, and products read them so."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from relax_egraph import VirtualMachine, build, ir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, Tuple, Var
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.lower.emit.machine import scheduled_machine
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.intrinsics.tile_sizes import strip
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.pack import pack
from relax_egraph.lower.pipeline import lower_module
from relax_egraph.lower.schedule import schedule_with
from relax_egraph.lower.schedule.packed import Panels
from relax_egraph.tir import te
from relax_egraph.tir.stmt import PrimFunc
from tests.lower.schedule.test_matmul import dense, product, transposed_right
from tests.support.guarded import PAGE, machine, place
from tests.support.kernels import TARGETS
from tests.support.scheduled import N, packed_right

Array = np.ndarray[Any, Any]

SHAPES = [(1, 2), (5, 10), (64, 16), (16, 63), (7, 64), (3, 65), (130, 127), (1030, 80), (768, 100)]
"""Rows and columns of right operands."""

ROWS = (0, 1, 2, 5, 6, 7, 17, 97)


def sample(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def in_strips(matrix: Array, width: int) -> Array:
    """What `Panels` says, one element after the other."""
    depth, columns = matrix.shape
    padded = np.zeros((depth, -(-columns // 16) * 16), np.float32)
    padded[:, :columns] = matrix
    strips = [padded[:, j : j + width] for j in range(0, padded.shape[1], width)]
    return np.concatenate([s.ravel() for s in strips])


@pytest.mark.parametrize(("depth", "columns"), SHAPES)
def test_strips_lie_one_after_the_other(depth: int, columns: int) -> None:
    w, several = sample(depth, columns), sample(3, depth, columns)

    packed = pack(w, Panels(1, depth, columns, 64, is_transposed=False))
    turned = pack(np.ascontiguousarray(w.T), Panels(1, depth, columns, 64, is_transposed=True))
    batch = pack(several, Panels(3, depth, columns, 64, is_transposed=False))

    np.testing.assert_array_equal(packed, in_strips(w, 64))
    np.testing.assert_array_equal(turned, in_strips(w, 64))
    np.testing.assert_array_equal(batch, [in_strips(m, 64) for m in several])
    assert packed.ctypes.data % 64 == 0


# --- products of packed operands ----------------------------------------------------------


def run_packed(function: PrimFunc, given: Sequence[Array], out: Array, target: Target) -> Array:
    """The result for arrays that end where no memory is, one of which is packed."""
    scheduled, panels = packed_right(function)
    arrays = [*given, out]
    arrays[1] = pack(arrays[1], panels)
    places = [place(k, a.nbytes // PAGE + 1) for k, a in enumerate(arrays)]
    held = [p.put(a, at_end=True) for p, a in zip(places, arrays, strict=True)]
    kernel = link(compile_kernels({"kernel": scheduled}, target, INTRINSICS))["kernel"]
    kernel(*held, *([out.shape[-2]] if scheduled.symbols else []))
    assert all(p.is_untouched(a) for p, a in zip(places, held, strict=True))
    return held[-1].copy()


def residual(depth: Dim, columns: Dim) -> PrimFunc:
    """``max(x · w + b, 0) + r``."""
    x, w = te.placeholder((N, depth), name="x"), te.placeholder((depth, columns), name="w")
    b, r = te.placeholder((columns,), name="b"), te.placeholder((N, columns), name="r")
    k = te.reduce_axis(depth)
    c = te.compute((N, columns), lambda i, j: te.sum(x[i, k] * w[k, j], k), "c")
    out = te.compute((N, columns), lambda i, j: te.maximum(c[i, j] + b[j], 0.0) + r[i, j], "out")
    return te.create_prim_func(x, w, b, r, out)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: f"{t.vector_bits} bits")
@pytest.mark.parametrize(("depth", "columns"), SHAPES)
def test_a_packed_product_agrees_with_numpy(target: Target, depth: int, columns: int) -> None:
    w, b = sample(depth, columns), sample(columns)
    for rows in ROWS:
        x, r = sample(rows, depth), sample(rows, columns)
        out = np.full((rows, columns), 7, np.float32)

        plain = run_packed(product((N, depth), (depth, columns)), (x, w), out, target)
        fused = run_packed(residual(depth, columns), (x, w, b, r), out, target)

        np.testing.assert_allclose(plain, x @ w, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(fused, np.maximum(x @ w + b, 0) + r, rtol=1e-3, atol=1e-3)


def test_a_batch_of_packed_matrices_agrees_with_numpy() -> None:
    for shape in ((3, 5, 70), (1, 5, 70), (5, 70)):
        x, w = sample(3, 9, 5), sample(*shape)
        out = np.empty((3, 9, 70), np.float32)

        result = run_packed(product((3, N, 5), shape), (x, w), out, TARGETS[0])

        np.testing.assert_allclose(result, x @ w, rtol=1e-4, atol=1e-4)


def test_a_transposed_operand_is_packed_as_it_is_read() -> None:
    x = sample(9, 70)
    w = te.placeholder((130, 70), name="w")
    given = te.placeholder((N, 70), name="x")
    k = te.reduce_axis(70)
    c = te.compute((N, 130), lambda i, j: te.sum(given[i, k] * w[j, k], k), "c")
    weights, out = sample(130, 70), np.empty((9, 130), np.float32)

    result = run_packed(te.create_prim_func(given, w, c), (x, weights), out, TARGETS[0])

    np.testing.assert_allclose(result, x @ weights.T, rtol=1e-4, atol=1e-4)


def test_what_is_no_whole_matrix_is_not_packed() -> None:
    x, w = te.placeholder((N, 4), name="x"), te.placeholder((6, 32), name="w")
    k = te.reduce_axis(4)
    below = te.compute((N, 32), lambda i, j: te.sum(x[i, k] * w[k + 2, j], k), "below")
    left = te.compute((N, 20), lambda i, j: te.sum(x[i, k] * w[k, j], k), "left")

    assert schedule_with(te.create_prim_func(x, w, below), {1}).prepared == ()
    assert schedule_with(te.create_prim_func(x, w, left), {1}).prepared == ()
    assert schedule_with(dense(), {1}).prepared == ()
    assert schedule_with(transposed_right(16, 4), {1}).prepared == ()


def test_an_operand_that_is_read_twice_is_not_packed() -> None:
    w, x = te.placeholder((32, 32), name="w"), te.placeholder((32, 32), name="x")
    k = te.reduce_axis(32)
    c = te.compute((32, 32), lambda i, j: te.sum(x[i, k] * w[k, j], k), "c")
    out = te.compute((32, 32), lambda i, j: c[i, j] + w[i, j], "out")

    assert schedule_with(te.create_prim_func(x, w, out), {1}).prepared == ()


# --- the pass -----------------------------------------------------------------------------


def module_of(params: Sequence[Var], *results: Expr) -> IRModule:
    bb = ir.BlockBuilder()
    with bb.function("main", list(params)):
        with bb.dataflow():
            outs = [bb.emit_output(r) for r in results]
        bb.emit_func_output(outs[0] if len(outs) == 1 else Tuple(tuple(outs)))
    return bb.get()


def constants_of(module: IRModule) -> list[Array]:
    """The arrays that are passed in `module`, each once."""
    found: dict[int, Array] = {}

    def note(expr: Expr) -> None:
        if isinstance(expr, Constant):
            found[id(expr.data)] = expr.data

    for _, function in module.relax_functions():
        post_order_visit(function, note)
    return list(found.values())


def tensor(name: str, *shape: Dim) -> Var:
    return ir.Var(name, ir.tensor(shape, "float32"))


def test_a_constant_of_several_products_is_packed_once() -> None:
    x, y, w = tensor("x", N, 30), tensor("y", 8, 30), sample(30, 100)
    module = module_of(
        (x, y),
        ir.call("matmul", x, ir.const(w)),
        ir.call("nn.relu", ir.call("matmul", y, ir.const(w.copy()))),
    )

    (packed,) = constants_of(lower_module(module))
    first, second = VirtualMachine(build(module))["main"](sample(5, 30), sample(8, 30))

    np.testing.assert_array_equal(packed, in_strips(w, strip(scheduled_machine())))
    np.testing.assert_allclose(first, sample(5, 30) @ w, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second, np.maximum(sample(8, 30) @ w, 0), rtol=1e-4, atol=1e-4)


def test_the_function_says_how_its_operand_is_packed() -> None:
    x = tensor("x", N, 30)

    lowered = lower_module(module_of((x,), ir.call("matmul", x, ir.const(sample(30, 100)))))

    function, width = lowered["matmul"], strip(scheduled_machine())
    assert isinstance(function, PrimFunc)
    assert function.attrs == {"packed": (1, 30, 100, width), "schedule": "matmul"}
    assert [b.shape for b in function.params] == [(N, 30), (30 * 112,), (N, 100)]


def test_a_product_of_parameters_beside_one_of_a_constant_stays() -> None:
    x, v, w = tensor("x", 9, 30), tensor("v", 30, 40), sample(30, 40)
    module = module_of((x, v), ir.call("matmul", x, v), ir.call("matmul", x, ir.const(w)))

    lowered = lower_module(module)
    first, second = machine(build(module))["main"](sample(9, 30), sample(30, 40))

    packed = {n: "packed" in f.attrs for n, f in lowered.functions.items() if n != "main"}
    assert packed == {"matmul": False, "matmul_packed": True}
    np.testing.assert_allclose(first, sample(9, 30) @ sample(30, 40), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(second, sample(9, 30) @ w, rtol=1e-4, atol=1e-4)


def test_a_constant_that_is_also_used_otherwise_stays_too() -> None:
    x, w = tensor("x", 30, 30), sample(30, 30)
    constant = ir.const(w)
    module = module_of((x,), ir.call("add", ir.call("matmul", x, constant), constant))

    shapes = sorted(c.shape for c in constants_of(lower_module(module)))
    result = VirtualMachine(build(module))["main"](sample(30, 30))

    assert shapes == [(30, 30), (30 * 32,)]
    np.testing.assert_allclose(result, sample(30, 30) @ w + w, rtol=1e-4, atol=1e-4)


def test_a_left_operand_is_not_packed() -> None:
    x = tensor("x", 30, 40)
    module = module_of((x,), ir.call("matmul", ir.const(sample(20, 30)), x))

    assert [c.shape for c in constants_of(lower_module(module))] == [(20, 30)]


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_products_of_other_dtypes_agree_with_numpy(dtype: str, constant: bool) -> None:
    """On one thread and on two; sums of small integers are exact."""
    random = np.random.default_rng(0)
    for n, k, m in ((1, 300, 70), (7, 5, 65), (100, 530, 130)):
        x, w = (random.integers(-99, 99, s).astype(dtype) for s in ((n, k), (k, m)))
        params = [ir.Var("x", ir.tensor((n, k), dtype)), ir.Var("w", ir.tensor((k, m), dtype))]
        given = (x,) if constant else (x, w)
        right = ir.const(w) if constant else params[1]
        module = module_of(params[: len(given)], ir.call("matmul", params[0], right))
        executable = build(module)
        for threads in (1, 2):
            run = VirtualMachine(executable, num_threads=threads)["main"]
            np.testing.assert_array_equal(run(*given), x @ w)

"""Weights stored in fewer bits, where the caller states a tolerance."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph import ir
from relax_egraph.egraph.encoding.narrowing import error, stored
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Constant, Expr, Tuple, Var
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.optimize.explanation import StoredWeights
from relax_egraph.reasons.accuracy import relative_errors
from tests.support.scheduled import N

Array = np.ndarray[Any, Any]

ONE_ROW = {"n": 1}


def sample(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def module_of(shape: Sequence[Dim], body: Callable[[ir.BlockBuilder, Var], Expr]) -> rx.IRModule:
    """A function of one tensor, of what `body` emits."""
    x = ir.Var("x", ir.tensor(tuple(shape), "float32"))
    bb = ir.BlockBuilder()
    with bb.function("main", [x]):
        with bb.dataflow():
            out = bb.emit_output(body(bb, x))
        bb.emit_func_output(out)
    return bb.get()


def dense(w: Array, *shape: Dim) -> rx.IRModule:
    """``x @ w``."""
    return module_of(shape or (N, w.shape[-2]), lambda _, x: ir.call("matmul", x, ir.const(w)))


def linear(w: Array) -> rx.IRModule:
    """``x @ wᵀ``, as exporters write it."""

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        return ir.call("matmul", x, bb.emit(ir.call("permute_dims", ir.const(w))))

    return module_of((N, w.shape[1]), body)


def dtypes_of(module: rx.IRModule) -> dict[str, int]:
    """How many elements are in constants of each dtype."""
    arrays: dict[int, Array] = {}

    def visit(expr: Expr) -> None:
        if isinstance(expr, Constant):
            arrays[id(expr.data)] = expr.data

    for _, function in module.relax_functions():
        post_order_visit(function, visit)
    found: dict[str, int] = {}
    for array in arrays.values():
        found[array.dtype.name] = found.get(array.dtype.name, 0) + array.size
    return found


def run(module: rx.IRModule, x: Array, threads: int = 1) -> Array:
    return rx.VirtualMachine(rx.build(module), num_threads=threads)["main"](x)


def assert_near(actual: Array, x: Array, w: Array) -> None:
    """``x @ w``, within the rounding of a sum of so many products."""
    exact = x.astype(np.float64) @ w.astype(np.float64)
    size = np.abs(x).astype(np.float64) @ np.abs(w).astype(np.float64)
    assert (np.abs(actual - exact) <= 2e-6 * size + 1e-30).all()


def test_by_default_every_bit_is_kept() -> None:
    w = sample(64, 128)

    report = rx.explain(dense(w), hints=ONE_ROW)

    assert dtypes_of(report.module) == {"float32": w.size}
    assert report.weights == ()


def test_a_tolerance_of_bfloat16_halves_the_weights() -> None:
    w = sample(64, 128)

    report = rx.explain(dense(w), tolerance=0.004)

    assert dtypes_of(report.module) == {"bfloat16": w.size}
    assert report.weights == (StoredWeights("bfloat16", 1, 2 * w.size, error(w, "bfloat16", 0)),)
    assert_near(run(report.module, sample(5, 64)), sample(5, 64), stored(w, "bfloat16", 0))


def test_a_larger_tolerance_quarters_them() -> None:
    w = sample(64, 128)

    report = rx.explain(dense(w), tolerance=0.02, hints=ONE_ROW)

    assert dtypes_of(report.module) == {"int8": w.size, "float32": 128}
    assert report.weights == (StoredWeights("int8", 1, w.size, error(w, "int8", 0)),)
    assert "fused_astype_matmul_multiply" in report.module.script()


@pytest.mark.parametrize("rows", [1, 16, 128, N])
@pytest.mark.parametrize(("tolerance", "dtype"), [(0.02, "int8"), (0.004, "bfloat16")])
def test_without_hints_the_smallest_that_is_as_fast_is_chosen(
    rows: Dim, tolerance: float, dtype: str
) -> None:
    w = sample(256, 256)

    found = dtypes_of(rx.optimize(dense(w, rows, 256), tolerance=tolerance))

    assert found[dtype] == w.size


@pytest.mark.parametrize("tolerance", [0.004, 0.03])
@pytest.mark.parametrize(("depth", "columns"), [(64, 128), (100, 30), (33, 257), (50, 60)])
def test_results_are_those_of_the_stored_weights(
    tolerance: float, depth: int, columns: int
) -> None:
    w = sample(depth, columns)
    module = rx.optimize(dense(w), tolerance=tolerance, hints=ONE_ROW)
    dtype = "int8" if tolerance > 0.01 else "bfloat16"
    assert dtypes_of(module)[dtype] == w.size

    for n in (0, 1, 2, 7, 100):
        x = sample(n, depth)
        one, two = (run(module, x, threads) for threads in (1, 2))
        assert_near(one, x, stored(w, dtype, 0))
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("rows", [1, 3, 64])
def test_static_sizes(rows: int) -> None:
    w, x = sample(64, 130), sample(rows, 64)

    module = rx.optimize(dense(w, rows, 64), tolerance=0.02, without=["weight-in-bfloat16"])

    expected = stored(w, "int8", 0) if "int8" in dtypes_of(module) else w
    assert_near(run(module, x), x, expected)


def test_transposed_weights_have_a_scale_for_each_row() -> None:
    w, x = sample(130, 64), sample(3, 64)
    w[5] *= 1000  # would be all that another scale can tell

    module = rx.optimize(linear(w), tolerance=0.02, hints=ONE_ROW)

    assert dtypes_of(module) == {"int8": w.size, "float32": 130}
    assert_near(run(module, x), x, stored(w, "int8", 1).T)


def test_batches_of_rows_and_of_matrices() -> None:
    w, x = sample(64, 48), sample(2, 3, 64)
    several = sample(2, 64, 48)

    shared = rx.optimize(dense(w, 2, N, 64), tolerance=0.02, hints=ONE_ROW)
    each = rx.optimize(dense(several, 2, N, 64), tolerance=0.02, hints=ONE_ROW)

    assert "int8" in dtypes_of(shared)
    assert "int8" in dtypes_of(each)
    assert_near(run(shared, x), x, stored(w, "int8", 0))
    assert_near(run(each, x), x, stored(several, "int8", 1))


def test_a_vector_is_no_row_to_scale() -> None:
    w, x = sample(64, 48), sample(64)

    module = rx.optimize(dense(w, 64), tolerance=0.02)

    assert "int8" not in dtypes_of(module)
    assert_near(run(module, x)[None], x[None], stored(w, "bfloat16", 0))


def test_products_of_one_input_are_merged_first() -> None:
    weights = [sample(64, c) for c in (64, 16, 17)]

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        products = [bb.emit(ir.call("matmul", x, ir.const(w))) for w in weights]
        parts = tuple(bb.emit(ir.call("nn.relu", p)) for p in products)
        return ir.call("concat", Tuple(parts), axis=1)

    module = rx.optimize(module_of((N, 64), body), tolerance=0.02, hints=ONE_ROW)

    assert dtypes_of(module) == {"int8": 64 * 97, "float32": 97}
    x = sample(3, 64)
    expected = np.concatenate([x @ stored(w, "int8", 0) for w in weights], axis=1)
    np.testing.assert_allclose(run(module, x), np.maximum(expected, 0), rtol=1e-4, atol=1e-4)


def test_weights_that_rules_compute_are_stored_too() -> None:
    """The scales before and after are folded into the weight, which no constant held before."""
    w, before, after = sample(64, 128), np.abs(sample(64)) + 0.5, np.abs(sample(128)) + 0.5

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        scaled = bb.emit(ir.call("multiply", x, ir.const(before)))
        product = bb.emit(ir.call("matmul", scaled, ir.const(w)))
        return ir.call("multiply", product, ir.const(after))

    report = rx.explain(module_of((N, 64), body), tolerance=0.02, hints=ONE_ROW)

    folded = before[:, None] * w * after
    assert dtypes_of(report.module) == {"int8": w.size, "float32": 128}
    (weights,) = report.weights
    assert weights.error == pytest.approx(error(folded, "int8", 0), rel=1e-3)
    x = sample(3, 64)
    assert_near(run(report.module, x), x, stored(folded, "int8", 0))


def test_a_weight_that_a_scale_spoils_is_not_stored_as_int8() -> None:
    """What is multiplied with is measured: beside one large row int8 tells less of the others."""
    w, scale = sample(512, 64), np.ones(512, np.float32)
    scale[7] = 30

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        scaled = bb.emit(ir.call("multiply", x, ir.const(scale)))
        return ir.call("matmul", scaled, ir.const(w))

    module = rx.optimize(module_of((N, 512), body), tolerance=0.02, hints=ONE_ROW)

    assert error(w, "int8", 0) < 0.02 < error(scale[:, None] * w, "int8", 0)
    assert dtypes_of(module) == {"bfloat16": w.size}


def test_merged_weights_that_rules_compute_are_stored_too() -> None:
    """One of three products of one input is scaled, as queries are."""
    weights = [sample(64, 64), sample(64, 16), sample(64, 17)]

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        first, *others = (bb.emit(ir.call("matmul", x, ir.const(w))) for w in weights)
        scaled = bb.emit(ir.call("multiply", first, ir.const(np.float32(0.125))))
        parts = tuple(bb.emit(ir.call("nn.relu", p)) for p in (scaled, *others))
        return ir.call("concat", Tuple(parts), axis=1)

    module = rx.optimize(module_of((N, 64), body), tolerance=0.02, hints=ONE_ROW)

    found = dtypes_of(module)
    assert found.pop("float32") <= 97
    assert sum(found.values()) == 64 * 97


def test_tables_that_rows_are_taken_from_are_left_alone() -> None:
    table, w = sample(50, 64), sample(64, 128)

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        rows = bb.emit(
            ir.call("take", ir.const(table), bb.emit(ir.call("astype", x, dtype="int64")), axis=0)
        )
        return ir.call("matmul", rows, ir.const(w))

    module = rx.optimize(module_of((N,), body), tolerance=0.02, hints=ONE_ROW)

    assert dtypes_of(module) == {"int8": w.size, "float32": table.size + 128}


def spoiled(value: float) -> Array:
    w = sample(512, 64)
    w[3, 5] = value
    return w


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_stay(value: float) -> None:
    module = rx.optimize(dense(spoiled(value)), tolerance=0.02, hints=ONE_ROW)

    assert dtypes_of(module) == {"float32": 512 * 64}


def test_a_weight_that_int8_cannot_tell_is_stored_as_bfloat16() -> None:
    """Beside one large number the others of its column are 0."""
    module = rx.optimize(dense(spoiled(300.0)), tolerance=0.02, hints=ONE_ROW)

    assert dtypes_of(module) == {"bfloat16": 512 * 64}


def test_columns_of_zeros_stay_zero() -> None:
    w, x = sample(64, 128), sample(3, 64)
    w[:, 7] = 0

    module = rx.optimize(dense(w), tolerance=0.02, hints=ONE_ROW)

    assert "int8" in dtypes_of(module)
    assert (run(module, x)[:, 7] == 0).all()


def test_layers_that_are_alike_may_be_stored_differently() -> None:
    down, up = (sample(512, 64), spoiled(300.0), sample(512, 64) + 1), sample(64, 512)

    def body(bb: ir.BlockBuilder, x: Var) -> Expr:
        y = x
        for w in down:
            narrow = bb.emit(ir.call("nn.relu", bb.emit(ir.call("matmul", y, ir.const(w)))))
            y = bb.emit(ir.call("exp", bb.emit(ir.call("matmul", narrow, ir.const(up)))))
        return y

    module = rx.optimize(module_of((N, 512), body), tolerance=0.02, hints=ONE_ROW)

    found = dtypes_of(module)
    assert (found["int8"], found["bfloat16"]) == (3 * 512 * 64, 512 * 64)


def test_a_rule_can_be_left_out() -> None:
    module = rx.optimize(
        dense(sample(64, 128)), tolerance=0.02, hints=ONE_ROW, without=["weight-in-int8"]
    )

    assert dtypes_of(module) == {"bfloat16": 64 * 128}


def test_saturation_in_a_process_of_its_own_knows_the_tolerance() -> None:
    module = rx.optimize(dense(sample(64, 128)), tolerance=0.02, hints=ONE_ROW, isolate=True)

    assert "int8" in dtypes_of(module)


# --- errors -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bfloat16", "int8"])
@pytest.mark.parametrize("axis", [0, 1])
def test_no_result_is_off_by_more_than_the_error_says(dtype: str, axis: int) -> None:
    w, x = sample(64, 48).astype(np.float64), sample(200, 64 if axis == 0 else 48)
    lost, columns = w - stored(w.astype(np.float32), dtype, axis), np.linalg.norm(w, axis=axis)
    off = np.abs(x @ (lost if axis == 0 else lost.T))

    bound = error(w.astype(np.float32), dtype, axis)

    parts = off / (np.linalg.norm(x, axis=1)[:, None] * columns)
    assert 0 < parts.max() <= bound < 0.02


def test_of_nothing_nothing_is_lost() -> None:
    assert error(np.zeros((0, 4), np.float32), "int8", 0) == 0
    assert error(np.zeros((4, 0), np.float32), "int8", 0) == 0
    assert error(np.zeros((4, 4), np.float32), "int8", 0) == 0


def test_the_error_of_outputs_is_measured() -> None:
    w, x = sample(256, 128), sample(16, 256)
    module = dense(w)
    best = rx.optimize(module, tolerance=0.02, hints=ONE_ROW)

    (measured,) = relative_errors(best, module, x)
    (none,) = relative_errors(module, module, x)

    assert none == 0
    assert error(w, "int8", 0) / 4 < measured < error(w, "int8", 0)


def test_the_report_says_what_is_stored() -> None:
    report = rx.explain(dense(sample(64, 128)), tolerance=0.02, hints=ONE_ROW)
    (weights,) = report.weights

    assert str(weights) == f"1, 0.0 MB, off by at most {weights.error:.2%}"
    assert report.as_dict()["weights"] == [
        {"dtype": "int8", "count": 1, "nbytes": 64 * 128, "error": weights.error}
    ]
    assert "weights in int8" in [*report.table().columns[0].cells]

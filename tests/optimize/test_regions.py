"""Repeated layers are optimized once, over the weights and the names of each."""

from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph.errors import AssumptionError
from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, symbol, tensor
from relax_egraph.ir.block_builder import call_packed
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Constant, Expr, Function
from relax_egraph.ir.reference.array import Array
from relax_egraph.ir.walk import bindings_of
from relax_egraph.ir.well_formed import assert_well_formed

WIDTH = 4


def twice(x: Array) -> Array:
    return x + x


PACKED = {"twice": twice}


def network(layers: int, *, packed: bool = False) -> IRModule:
    """Layers of 12 bindings, each of weights of its own."""
    rng = np.random.default_rng(0)
    bb = BlockBuilder()
    x = Var("x", tensor((symbol("n"), WIDTH), "float32"))

    def weight(*extents: int) -> Constant:
        return const(rng.normal(size=extents).astype(np.float32))

    def op(name: str, *args: Expr, **attrs: Any) -> Var:
        return bb.emit(call(name, *args, **attrs))

    with bb.function("main", [x]):
        with bb.dataflow():
            value = x
            for _ in range(layers):
                up = op("add", op("matmul", value, weight(WIDTH, 8)), weight(8))
                half = op("multiply", up, const(0.5))
                erf = op("erf", op("divide", up, const(2**0.5)))
                active = op("multiply", half, op("add", erf, const(1.0)))
                if packed:
                    active = bb.emit(
                        call_packed("twice", [active], [active.struct_info], pure=True)
                    )
                down = op("add", op("matmul", active, weight(8, WIDTH)), weight(WIDTH))
                value = op("nn.softmax", op("add", down, value), axis=-1)
            out = bb.emit_output(value)
        bb.emit_func_output(out)
    return bb.get()


def assert_same_results(before: IRModule, after: IRModule) -> None:
    for n in (0, 1, 5):
        x = np.random.default_rng(n).normal(size=(n, WIDTH)).astype(np.float32)
        expected, found = (evaluate(m, "main", x, packed=PACKED) for m in (before, after))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("packed", [False, True])
def test_layers_are_optimized_once(packed: bool) -> None:
    module = network(40, packed=packed)

    report = rx.explain(module)

    assert_well_formed(report.module)
    assert_same_results(module, report.module)
    assert len(report.regions) <= 3
    assert max(r.uses for r in report.regions) >= 3


def test_each_layer_has_its_own_weights() -> None:
    module = network(40)

    main = rx.optimize(module)["main"]

    assert isinstance(main, Function)
    calls = [b.value for b in bindings_of(main.body)]
    weights = {id(a.data) for c in calls for a in getattr(c, "args", ()) if isinstance(a, Constant)}
    assert len(weights) >= 80


def test_names_are_unique() -> None:
    main = rx.optimize(network(40))["main"]

    assert isinstance(main, Function)
    names = [b.var.name for b in bindings_of(main.body)]
    assert len(set(names)) == len(names)


def test_totals_count_each_layer() -> None:
    report = rx.explain(network(40))

    assert sum(r.uses for r in report.regions) > len(report.regions)
    assert report.cost == sum(r.extraction.cost * r.uses for r in report.regions)
    assert report.as_dict()["uses"] == [r.uses for r in report.regions]


def test_the_depth_of_an_encoder_makes_no_new_region() -> None:
    few, many = rx.explain(encoder(Sizes(4))), rx.explain(encoder(Sizes(12)))

    assert len(many.regions) == len(few.regions) == 2
    first, layer = many.regions
    assert (first.uses, layer.uses) == (1, 12)
    assert list(many.module.functions) == list(few.module.functions)
    assert many.cost == pytest.approx(first.extraction.cost + 12 * layer.extraction.cost)
    for rule, count in layer.saturation.matches.items():
        assert many.rules[rule] == first.saturation.matches.get(rule, 0) + 12 * count


@pytest.mark.parametrize("computed_shapes", [False, True])
def test_a_deep_encoder_computes_the_same(computed_shapes: bool) -> None:
    module = encoder(Sizes(3, computed_shapes=computed_shapes))
    x = np.random.default_rng(0).normal(size=(2, 3, 64)).astype(np.float32)
    mask = np.array([[1, 1, 0], [1, 1, 1]])

    best = rx.optimize(module)

    assert_well_formed(best)
    expected, found = (evaluate(m, "main", x, mask) for m in (module, best))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


EXPORTED = """
@R.function
def main(x: R.Tensor((n, m, 8), "float32")):
    n, m, rows, columns = T.int64(), T.int64(), T.int64(), T.int64()
    with R.dataflow():
        t = R.shape_to_tensor(R.shape_of(x))
        k = R.expand_dims(R.multiply(R.take(t, R.const(0)), R.take(t, R.const(1))), axis=[0])
        to = R.tensor_to_shape(R.concat((k, R.const([8], "int64"))))
        cast = R.match_cast(to, R.Shape((rows, columns)))
        y = R.reshape(x, R.shape([rows, columns]))
        z = R.nn.relu(R.add(y, R.zeros(to, dtype="float32")))
        out = R.reshape(z, R.tensor_to_shape(t))
        R.output(out)
    return out
"""


def test_no_arithmetic_of_shapes_is_left() -> None:
    module = rx.parse(EXPORTED)

    best = rx.optimize(module)

    script = best.script()
    assert not [name for name in ("shape_of", "to_shape", "match_cast", "concat") if name in script]
    x = np.random.default_rng(0).normal(size=(2, 3, 8)).astype(np.float32)
    np.testing.assert_array_equal(evaluate(best, "main", x), evaluate(module, "main", x))


def test_assumptions_are_read_before_anything_runs() -> None:
    with pytest.raises(AssumptionError, match="n <= 2"):
        rx.optimize(network(1), assume=["n >= 3", "n <= 2"])

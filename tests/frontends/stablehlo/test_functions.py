"""Functions of jax: what is imported, optimized and built agrees with jax, at each size."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError

jax = pytest.importorskip("jax")
jnp, lax, export = jax.numpy, jax.lax, pytest.importorskip("jax.export")


def agrees(function: Callable[..., Any], shapes: dict[str, Any], *sizes: dict[str, int]) -> None:
    """Check `function` for inputs of float32 of `shapes`, whose symbols have `sizes` in turns."""
    names = sorted({n for shape in shapes.values() for n in shape if isinstance(n, str)})
    symbols = (
        dict(zip(names, export.symbolic_shape(", ".join(names)), strict=True)) if names else {}
    )
    specs = [
        jax.ShapeDtypeStruct(tuple(symbols.get(n, n) for n in shape), jnp.float32)
        for shape in shapes.values()
    ]
    module = rx.from_jax(function, *specs)
    main = rx.VirtualMachine(rx.build(rx.optimize(module)))["main"]
    for number, bound in enumerate(sizes or ({},)):
        rng = np.random.default_rng(number)
        arrays = [
            rng.standard_normal([bound[n] if isinstance(n, str) else n for n in shape]).astype(
                "float32"
            )
            for shape in shapes.values()
        ]
        results = main(*arrays)
        own = results if isinstance(results, tuple) else (results,)
        want = [np.asarray(leaf) for leaf in jax.tree.leaves(jax.jit(function)(*arrays))]
        assert [o.dtype for o in own] == [w.dtype for w in want]
        for got, expected in zip(own, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


def test_a_network_and_its_gradient() -> None:
    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jax.nn.log_softmax(jax.nn.relu(x @ w)) ** 2)

    def step(x: Any, w: Any) -> Any:
        return jax.value_and_grad(loss)(w, x)

    agrees(step, {"x": ("b", 6), "w": (6, 5)}, {"b": 3}, {"b": 1})


def test_a_convolution_with_pools_and_its_gradient() -> None:
    def network(x: Any, w: Any) -> Any:
        axes = ("NHWC", "HWIO", "NHWC")
        y = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=axes)
        y = lax.reduce_window(y, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return lax.reduce_window(y, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")

    def gradient(x: Any, w: Any) -> Any:
        return network(x, w), jax.grad(lambda w: jnp.sum(network(x, w) ** 2))(w)

    agrees(gradient, {"x": ("b", 6, 6, 2), "w": (3, 3, 2, 3)}, {"b": 2}, {"b": 1})


def test_attention_with_a_mask() -> None:
    def attention(q: Any, k: Any) -> Any:
        scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2
        mask = jnp.tril(jnp.ones((q.shape[1], q.shape[1]), bool))
        weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf))
        return jnp.einsum("bhqk,bkhd->bqhd", weights, k)

    shape = ("b", "s", 2, 4)
    agrees(attention, {"q": shape, "k": shape}, {"b": 2, "s": 5}, {"b": 1, "s": 1})


def test_scans_loops_and_branches() -> None:
    def control(x: Any) -> Any:
        last, every = lax.scan(lambda c, t: (c + t, c * t), jnp.zeros(3), x)
        root = lax.while_loop(lambda s: s[1] < 9, lambda s: (s[0] * 1.1, s[1] + 1), (last, 0))[0]
        chosen = lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, last)
        switched = lax.switch(1, [jnp.exp, jnp.tanh, jnp.sin], last)
        return every, root, chosen, switched

    agrees(control, {"x": ("s", 3)}, {"s": 4}, {"s": 1})


def test_reads_and_writes_at_indices() -> None:
    def indexed(x: Any) -> Any:
        at = jnp.argsort(x[:, 0])[:2]
        return (
            x[at],
            x[:, jnp.array([2, 0])],
            x[-1],
            x[::2],
            jnp.take(x, jnp.array([0, 9]), axis=1, mode="fill"),
            x.at[at].add(1.0),
            x.at[99].set(0.0),
            x.at[:, 1].multiply(2.0),
            lax.dynamic_slice(x, (at[0], 1), (1, 2)),
            lax.dynamic_update_slice(x, x[:1], (at[1], 0)),
        )

    agrees(indexed, {"x": ("n", 3)}, {"n": 5}, {"n": 2})


def test_orders_and_running_sums() -> None:
    def ordered(x: Any) -> Any:
        return (
            jnp.sort(x, axis=0),
            jnp.sort(x, descending=True),
            lax.sort((jnp.round(x), x), num_keys=2),
            lax.top_k(x, 2),
            jnp.argmax(x, 1),
            jnp.cumsum(x, 0),
            lax.cumsum(x, 1, reverse=True),
            lax.cummax(x, 1),
        )

    agrees(ordered, {"x": ("n", 4)}, {"n": 5}, {"n": 1})


def test_elementwise_functions() -> None:
    def functions(x: Any) -> Any:
        p = jnp.abs(x) + 0.1
        return (
            jnp.expm1(x) + jnp.log1p(p),
            jnp.cbrt(x),
            jax.nn.gelu(x, approximate=False),
            lax.erf_inv(jnp.tanh(x)),
            lax.lgamma(p),
            jnp.round(x * 3).astype(jnp.int32) // 2,
            jnp.mod(x, 0.7),
            lax.population_count(jnp.round(p * 9).astype(jnp.int32)),
        )

    agrees(functions, {"x": ("n", 4)}, {"n": 5}, {"n": 1})


def test_random_bits_are_those_of_jax() -> None:
    def draws(key: Any) -> Any:
        return jax.random.bits(key, (5,)), jax.random.normal(key, (3, 2)), jax.random.split(key)

    key = np.array([3, 4], np.uint32)
    main = rx.VirtualMachine(rx.build(rx.optimize(rx.from_jax(draws, key))))["main"]

    results = main(key)

    bits, normal, keys = draws(key)
    np.testing.assert_array_equal(results[0], bits)
    np.testing.assert_allclose(results[1], normal, rtol=1e-5)
    np.testing.assert_array_equal(results[2], keys)


def test_sizes_keep_their_names_and_nothing_computes_them() -> None:
    b, s = export.symbolic_shape("b, s")
    spec = jax.ShapeDtypeStruct((b, s, 784), jnp.float32)

    module = rx.from_jax(lambda x: x.reshape(-1, 392)[:, None], spec)

    script = module.script()
    assert 'x: R.Tensor(("b", "s", 784), "float32")' in script
    assert 'R.Tensor((b * s * 2, 1, 392), "float32")' in script
    assert "shape_to_tensor" not in script


def test_a_size_that_is_no_symbol_is_taken_apart_and_checked() -> None:
    spec = jax.ShapeDtypeStruct((2 * export.symbolic_shape("b")[0], 3), jnp.float32)
    module = rx.from_jax(lambda x: x.reshape(2, -1, 3)[0], spec)
    main = rx.VirtualMachine(rx.build(rx.optimize(module)))["main"]
    x = np.arange(12, dtype="float32").reshape(4, 3)

    np.testing.assert_array_equal(main(x), x[:2])
    with pytest.raises(RunError, match="Division had remainder 0"):
        main(x[:3])


def test_trees_of_arguments_have_names_by_their_paths() -> None:
    weights = {"w": np.ones((2, 3), "float32"), "b": np.ones(3, "float32")}

    module = rx.from_jax(
        lambda x, params: x @ params["w"] + params["b"], weights["w"][:, :2], weights
    )

    main = dict(module.relax_functions())["main"]
    assert [p.name for p in main.params] == ["x", "params_b", "params_w"]


def test_a_jitted_function_calls_a_module() -> None:
    b = export.symbolic_shape("b")[0]
    spec = jax.ShapeDtypeStruct((b, 4), jnp.float32)
    call = rx.jax_call(rx.from_jax(lambda x, y: (x + y, x.sum(1)), spec, spec))
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("float32")

    total, rows = jax.jit(lambda v: call(v, v * 2))(x)

    np.testing.assert_allclose(total, x * 3, rtol=1e-6)
    np.testing.assert_allclose(rows, x.sum(1), rtol=1e-5, atol=1e-6)

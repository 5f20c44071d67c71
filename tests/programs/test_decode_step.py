"""A step of decoding over a cache: rows are appended in place, and attention reads what is there.

The cache has room for ``p + 1`` rows and `r` more, so that the part which is read is proven to be
in it; the caller's arrays are the cache.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.census import census

Array = np.ndarray[Any, Any]

STEP = """
@I.ir_module
class Module:
    @T.prim_func(private=True)
    def append(
        cache: T.Buffer((1, "m", 2, 16), "float32"),
        row: T.Buffer((1, 1, 2, 16), "float32"),
        p: T.int64,
    ):
        T.func_attr({"num_outputs": 0})
        for h, d in T.grid(2, 16):
            with T.block("append"):
                vh, vd = T.axis.remap("SS", [h, d])
                cache[0, p, vh, vd] = row[0, 0, vh, vd]

    @R.function
    def main(
        q: R.Tensor((1, 1, 4, 16), "float32"),
        k: R.Tensor((1, 1, 2, 16), "float32"),
        v: R.Tensor((1, 1, 2, 16), "float32"),
        keys: R.Tensor((1, "p + r + 1", 2, 16), "float32"),
        values: R.Tensor((1, "p + r + 1", 2, 16), "float32"),
        at: R.Shape(["p", "r"]),
    ):
        p = T.int64()
        r = T.int64()
        cls = Module
        ks = R.call_tir_inplace(
            cls.append, (keys, k), inplace_indices=[0],
            out_sinfo=R.Tensor((1, p + r + 1, 2, 16), "float32"), tir_vars=R.shape([p]),
        )
        vs = R.call_tir_inplace(
            cls.append, (values, v), inplace_indices=[0],
            out_sinfo=R.Tensor((1, p + r + 1, 2, 16), "float32"), tir_vars=R.shape([p]),
        )
        with R.dataflow():
            seen_keys = R.strided_slice(ks, axes=[1], begin=[0], end=[p + 1])
            seen_values = R.strided_slice(vs, axes=[1], begin=[0], end=[p + 1])
            out = R.nn.attention(q, seen_keys, seen_values)
            R.output(out)
        return out
"""

ROOM = 600


@cache
def modules() -> Mapping[bool, rx.IRModule]:
    """The step as it is written, and optimized."""
    written = rx.parse(STEP)
    return {False: written, True: rx.optimize(written)}


def attended(q: Array, keys: Array, values: Array) -> Array:
    """What each head of the query gets; two share a head of the keys."""
    keys, values = (np.repeat(x.astype(np.float64), 2, axis=2) for x in (keys, values))
    scores = np.einsum("bihd,bjhd->bhij", q, keys) / 4
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("bhij,bjhd->bihd", powers / powers.sum(-1, keepdims=True), values)


@pytest.mark.parametrize("optimized", [False, True])
def test_a_step_writes_one_row_of_the_cache_and_attends_to_all_so_far(optimized: bool) -> None:
    step = rx.VirtualMachine(rx.build(modules()[optimized]))["main"]
    random = np.random.default_rng(0)
    keys, values = (random.standard_normal((1, ROOM, 2, 16), np.float32) for _ in range(2))
    kept = keys.copy(), values.copy()

    for p in (0, 1, 254, 255, 256, ROOM - 1):
        q = random.standard_normal((1, 1, 4, 16), np.float32)
        k, v = (random.standard_normal((1, 1, 2, 16), np.float32) for _ in range(2))
        for own, row in zip(kept, (k, v), strict=True):
            own[:, p] = row[:, 0]

        result = np.asarray(step(q, k, v, keys, values, (p, ROOM - 1 - p)))

        wanted = attended(q, *(own[:, : p + 1] for own in kept))
        np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=2e-5)
        np.testing.assert_array_equal([keys, values], kept)


def test_attention_reads_the_cache_where_it_lies() -> None:
    assert census(modules()[True]).kernels == {
        "call_tir_inplace": 2,
        "fused_strided_slice_strided_slice_attention": 1,
    }

"""Attention by tiles of scores, or key by key for a few queries, with whatever masks scores."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.transformer import Sizes, encoder
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.emit.machine import scheduling_for
from relax_egraph.lower.emit.target import Target
from relax_egraph.lower.intrinsics import INTRINSICS
from relax_egraph.lower.jit import compile_kernels, link
from relax_egraph.lower.jit.compiled import KernelInfo
from relax_egraph.lower.jit.processors import processor
from relax_egraph.lower.legalize.attention import attention
from relax_egraph.lower.legalize.norm import softmax
from relax_egraph.lower.runtime.threads import thread_pool
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.call_te import computed
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.inline import inline_injective
from relax_egraph.tir.rewrite import statements
from relax_egraph.tir.stmt import IfThenElse, PrimFunc, TensorIntrinsic
from relax_egraph.tir.tensor import Reduction
from tests.support.guarded import guarded
from tests.support.kernels import TARGETS
from tests.support.scheduled import assert_same_results, loops_of
from tests.support.widths import WIDTHS

Array = np.ndarray[Any, Any]

S, T = dims.symbol("s"), dims.symbol("t")

LENGTHS = [
    *((1, 1), (1, 127), (1, 256), (1, 513), (2, 257), (2, 300), (3, 17), (4, 64)),
    *((5, 1), (15, 63), (16, 16), (17, 65), (63, 128), (64, 64), (65, 129)),
    *((127, 15), (128, 128), (129, 2), (300, 257), (513, 300)),
]
"""Queries and keys: on both sides of the lengths of tiles, blocks and vectors."""

CAUSAL: Sequence[Mapping[str, Attr]] = (
    {"causal_mask": "TopLeft"},
    {"causal_mask": "BottomRight"},
    {"causal_mask": "TopLeft", "window_size": 5},
    {"causal_mask": "BottomRight", "window_size": 70},
)

BIASES: Sequence[Shape] = ((2, 1, 1, T), (1, 4, S, T), (1, 1, S, T), (2, 4, S, T))


def attention_of(
    query: Shape, key: Shape, value: Shape, bias: Shape | None = None, **attrs: Attr
) -> PrimFunc:
    """The loop function of ``R.nn.attention``."""
    named = {"query": query, "key": key, "value": value, "bias": bias}
    given = [te.placeholder(shape, name=n) for n, shape in named.items() if shape is not None]
    out = attention(*given, **complete_attrs(OPS["nn.attention"], attrs))
    return te.create_prim_func(*given, *inline_injective(computed(out)))


def compiled(function: PrimFunc, target: Target | None = None) -> Callable[..., None]:
    """The kernel of the schedule, which touches no memory beside its arrays."""
    scheduled = schedule(function)
    assert scheduled.attrs["schedule"] == "attention"
    kernels = compile_kernels({"kernel": scheduled}, target, INTRINSICS)
    info: KernelInfo = kernels.kernels["kernel"]
    return guarded("attention", link(kernels)["kernel"], info)


@cache
def symbolic(
    *, heads: int = 4, groups: int = 4, size: int = 8, width: int = 8, **attrs: Any
) -> tuple[Callable[..., None], PrimFunc]:
    """The kernel for a batch of two, and any number of queries and keys."""
    bias = attrs.pop("bias", None)
    kv = (2, T, groups)
    function = attention_of((2, S, heads, size), (*kv, size), (*kv, width), bias, **attrs)
    return compiled(function), function


def samples(function: PrimFunc, sizes: Mapping[str, int]) -> list[Array]:
    """Random operands for `function`."""
    random = np.random.default_rng(0)
    shapes = [[dims.evaluate(d, sizes) for d in b.shape] for b in function.inputs]
    return [random.standard_normal(shape, np.float32) for shape in shapes]


def expected(operands: Sequence[Array], **attrs: Any) -> Array:
    """What the operator is defined to compute."""
    with np.errstate(all="ignore"):
        complete = complete_attrs(OPS["nn.attention"], attrs)
        return np.asarray(REFERENCE["nn.attention"](*operands, **complete))


def run(
    kernel: Callable[..., None], function: PrimFunc, operands: Sequence[Array], **sizes: int
) -> Array:
    """The result of a kernel of `function`."""
    (result,) = function.outputs
    out = np.full([dims.evaluate(d, sizes) for d in result.shape], 7, np.float32)
    kernel(*operands, out, *(sizes[name] for name in function.symbols))
    return out


def assert_attends(s: int, t: int, **attrs: Any) -> None:
    """That the kernel of `symbolic` agrees with the reference at these lengths."""
    kernel, function = symbolic(**attrs)
    operands = samples(function, {"s": s, "t": t})
    own = {k: v for k, v in attrs.items() if k in ("scale", "causal_mask", "window_size")}

    result = run(kernel, function, operands, s=s, t=t)

    np.testing.assert_allclose(result, expected(operands, **own), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
@pytest.mark.parametrize(("size", "width"), [(8, 12), (64, 64)])
def test_one_kernel_serves_all_lengths(size: int, width: int, s: int, t: int) -> None:
    assert_attends(s, t, size=size, width=width)


@pytest.mark.parametrize(("s", "t"), [(1, 17), (4, 65), (63, 127), (65, 300)])
@pytest.mark.parametrize(("size", "width"), [(1, 2), (32, 33), (80, 128), (128, 80)])
def test_heads_are_of_any_size(size: int, width: int, s: int, t: int) -> None:
    assert_attends(s, t, size=size, width=width)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
@pytest.mark.parametrize("attrs", CAUSAL, ids=str)
def test_a_mask_hides_keys(attrs: Mapping[str, Attr], s: int, t: int) -> None:
    assert_attends(s, t, **attrs)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
@pytest.mark.parametrize("bias", BIASES, ids=str)
def test_a_bias_is_added(bias: Shape, s: int, t: int) -> None:
    assert_attends(s, t, bias=bias)


@pytest.mark.parametrize(("s", "t"), LENGTHS)
@pytest.mark.parametrize(("groups", "attrs"), [(2, {}), (1, {}), (2, CAUSAL[1]), (1, CAUSAL[3])])
def test_heads_share_keys_and_values(
    groups: int, attrs: Mapping[str, Attr], s: int, t: int
) -> None:
    assert_attends(s, t, groups=groups, scale=0.3, **attrs)


@pytest.mark.parametrize(("s", "t"), [(1, 70), (17, 70)])
def test_a_bias_and_a_causal_mask_are_both_applied(s: int, t: int) -> None:
    assert_attends(s, t, groups=2, bias=(2, 4, S, T), causal_mask="BottomRight")


@pytest.mark.skipif(not thread_pool(2), reason="kernels have no threads here")
@pytest.mark.parametrize("s", [1, 600])
@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("width", WIDTHS)
def test_results_do_not_depend_on_the_number_of_threads(width: str, groups: int, s: int) -> None:
    function = attention_of((1, S, 4, 64), (1, T, groups, 64), (1, T, groups, 64))
    target = processor(width)
    with scheduling_for(target):
        kernels = compile_kernels({"kernel": schedule(function)}, target, INTRINSICS)
    operands = samples(function, {"s": s, "t": 1500})

    alone, shared = (
        run(link(kernels, pool)["kernel"], function, operands, s=s, t=1500)
        for pool in (0, thread_pool(2))
    )

    np.testing.assert_array_equal(alone, shared, strict=True)


@pytest.mark.parametrize("s", [0, 1, 4, 70])
@pytest.mark.parametrize("attrs", [{}, CAUSAL[0]], ids=str)
def test_attention_over_no_keys_is_0(attrs: Mapping[str, Attr], s: int) -> None:
    kernel, function = symbolic(**attrs)

    result = run(kernel, function, samples(function, {"s": s, "t": 0}), s=s, t=0)

    np.testing.assert_array_equal(result, np.zeros((2, s, 4, 8), np.float32), strict=True)


@pytest.mark.parametrize(("s", "t"), [(3, 1), (40, 30), (600, 300)])
def test_a_query_that_sees_no_key_gets_nan(s: int, t: int) -> None:
    attrs: dict[str, Attr] = {"causal_mask": "TopLeft", "window_size": 2}
    kernel, function = symbolic(**attrs)
    operands = samples(function, {"s": s, "t": t})

    result = run(kernel, function, operands, s=s, t=t)

    assert np.isnan(result[:, t + 1 :]).all()
    assert not np.isnan(result[:, : t + 1]).any()
    np.testing.assert_allclose(result, expected(operands, **attrs), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("s", "t"), [(2, 600), (70, 600)])
@pytest.mark.parametrize("hidden", [slice(None), slice(520), slice(30, None)])
def test_scores_of_minus_infinity_hide_keys(hidden: slice, s: int, t: int) -> None:
    kernel, function = symbolic(bias=BIASES[0])
    *operands, bias = samples(function, {"s": s, "t": t})
    bias[0, ..., hidden] = -np.inf

    result = run(kernel, function, [*operands, bias], s=s, t=t)

    np.testing.assert_allclose(result, expected([*operands, bias]), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("s", [1, 20])
@pytest.mark.parametrize("worst", [np.nan, np.inf])
def test_a_score_that_is_no_number_spoils_its_row_alone(worst: float, s: int) -> None:
    kernel, function = symbolic()
    query, key, value = samples(function, {"s": s, "t": 300})
    query[0, 0, 0, 3] = worst
    key[0, :, 0, 3] = 1

    result = run(kernel, function, [query, key, value], s=s, t=300)

    assert np.isnan(result[0, 0, 0]).all()
    assert np.isnan(result).sum() == 8


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: str(t.vector_bits))
@pytest.mark.parametrize("s", [3, 33])
def test_every_width_of_vectors_computes_the_same(target: Target, s: int) -> None:
    function = attention_of((1, S, 2, 20), (1, T, 2, 20), (1, T, 2, 9), causal_mask="TopLeft")
    operands = samples(function, {"s": s, "t": 35})

    result = run(compiled(function, target), function, operands, s=s, t=35)

    wanted = expected(operands, causal_mask="TopLeft")
    np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=2e-5)


# --- what is fused with it ------------------------------------------------------------------


def parts_of(x: te.Tensor) -> list[te.Tensor]:
    """Queries, keys and values, of 2 heads of 8, one after the other in the rows of `x`."""
    batch, length, _ = x.shape

    def part(start: int) -> te.Tensor:
        def element(b: TirVar, i: TirVar, n: TirVar, e: TirVar) -> TirExpr:
            return x[b, i, n * 8 + e + start]

        return te.compute((batch, length, 2, 8), element, f"part{start}")

    return [part(start) for start in (0, 16, 32)]


def merged() -> PrimFunc:
    """Attention of parts of one tensor."""
    x = te.placeholder((2, S, 48), name="x")
    out = attention(*parts_of(x), scale=None, causal_mask=None, window_size=None)
    return te.create_prim_func(x, *inline_injective(computed(out)))


def masked() -> PrimFunc:
    """Attention of parts of one tensor under a mask of booleans, written out."""
    x, mask = te.placeholder((2, S, 48), name="x"), te.placeholder((2, 1, S, S), "bool", "mask")
    query, key, value = parts_of(x)
    depth, keys = te.reduce_axis(8), te.reduce_axis(S)

    def product(b: TirVar, n: TirVar, i: TirVar, j: TirVar) -> Reduction:
        return te.sum(query[b, i, n, depth] * key[b, j, n, depth], depth)

    products = te.compute((2, 2, S, S), product, "product")

    def score(b: TirVar, n: TirVar, i: TirVar, j: TirVar) -> TirExpr:
        low = te.const(-math.inf, "float32")
        return te.select(mask[b, 0, i, j], products[b, n, i, j], low)

    shares = softmax(te.compute((2, 2, S, S), score, "score"), axis=-1)

    def attended(b: TirVar, i: TirVar, n: TirVar, e: TirVar) -> Reduction:
        return te.sum(shares[b, n, i, keys] * value[b, keys, n, e], keys)

    out = te.compute((2, S, 2, 8), attended, "out")
    return te.create_prim_func(x, mask, *inline_injective(computed(out)))


@pytest.mark.parametrize("s", [1, 3, 5, 70])
def test_operands_are_read_where_they_lie_in_a_merged_tensor(s: int) -> None:
    function = merged()
    (x,) = samples(function, {"s": s})
    parts = [x[..., at : at + 16].reshape(2, s, 2, 8) for at in (0, 16, 32)]

    result = run(compiled(function), function, [x], s=s)

    np.testing.assert_allclose(result, expected(parts), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("s", [3, 70])
def test_a_boolean_mask_hides_keys(s: int) -> None:
    function = masked()
    random = np.random.default_rng(0)
    x = random.standard_normal((2, s, 48), np.float32)
    mask = random.random((2, 1, s, s)) < 0.3
    parts = [x[..., at : at + 16].reshape(2, s, 2, 8) for at in (0, 16, 32)]

    result = run(compiled(function), function, [x, mask], s=s)

    bias = np.where(mask, np.float32(0), np.float32(-np.inf))
    wanted = expected([*parts, bias], scale=1.0)
    np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=2e-5)


def of_computed_queries() -> PrimFunc:
    """Attention whose queries are exponentials, which are computed once before."""
    x, kv = te.placeholder((1, S, 2, 4), name="x"), te.placeholder((1, T, 2, 4), name="kv")
    query = te.compute(x.shape, lambda *i: te.exp(x[i]), "query")
    out = attention(query, kv, kv, scale=None, causal_mask=None, window_size=None)
    return te.create_prim_func(x, kv, out)


@pytest.mark.parametrize(("s", "t"), [(1, 3), (6, 5)])
def test_what_operands_are_computed_of_comes_before(s: int, t: int) -> None:
    function = of_computed_queries()

    assert schedule(function).attrs["schedule"] == "attention"
    assert_same_results(function, s=s, t=t)


@cache
def encoders() -> tuple[rx.VirtualMachine, rx.VirtualMachine]:
    """A layer of an encoder as it is written, and optimized."""
    module = encoder(Sizes(1))
    return rx.VirtualMachine(rx.build(module)), rx.VirtualMachine(rx.build(rx.optimize(module)))


@pytest.mark.parametrize("length", [1, 3, 70])
def test_an_encoder_attends_the_same_when_it_is_optimized(length: int) -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((2, length, 64), np.float32)
    mask = np.ones((2, length), np.int64)
    mask[1, 1:] = 0

    before, after = (np.asarray(vm["main"](x, mask)) for vm in encoders())

    np.testing.assert_allclose(after, before, rtol=2e-4, atol=2e-5)


# --- what the schedule looks like -----------------------------------------------------------


BY_TILES = ["transpose_32", "gemm_tile", "softmax_tile", "gemm_tile"]
BY_KEYS = ["dot_tile", "softmax_tile", "axpy_tile"]


def micro_kernels(function: PrimFunc) -> list[str]:
    """The names of the micro-kernels that the schedule calls, in order of the text."""
    found = statements(schedule(function).body)
    return [s.name for s in found if isinstance(s, TensorIntrinsic)]


def test_many_queries_run_by_tiles_and_no_scores_are_in_memory() -> None:
    function = attention_of((1, 300, 4, 64), (1, 300, 4, 64), (1, 300, 4, 64))

    assert micro_kernels(function) == BY_TILES
    assert schedule(function).allocs == ()


def test_a_few_queries_stream_the_keys() -> None:
    function = attention_of((1, 1, 8, 64), (1, T, 4, 64), (1, T, 4, 64))

    assert micro_kernels(function) == BY_KEYS
    assert schedule(function).allocs == ()


def test_threads_share_the_blocks_of_keys_of_one_query() -> None:
    function = attention_of((1, 1, 8, 64), (1, T, 4, 64), (1, T, 4, 64))

    shared = [extent for kind, extent in loops_of(schedule(function)) if kind == "parallel"]

    assert shared == ["1", "(t + 255) // 256", "1"]


def test_the_number_of_queries_decides_at_run_time_where_it_is_not_known() -> None:
    function = attention_of((1, S, 4, 64), (1, T, 4, 64), (1, T, 4, 64))

    scheduled = schedule(function).body
    assert isinstance(scheduled, IfThenElse)
    assert micro_kernels(function) == [*BY_KEYS, *BY_TILES]


def test_hidden_tiles_are_left_out() -> None:
    def branches(causal_mask: str | None) -> int:
        shape: Shape = (1, 600, 4, 64)
        function = attention_of(shape, shape, shape, causal_mask=causal_mask)
        return sum(isinstance(s, IfThenElse) for s in statements(schedule(function).body))

    assert branches(None) == 1
    assert branches("TopLeft") == 2


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_other_dtypes_are_no_tiles(dtype: str) -> None:
    x = te.placeholder((1, 8, 2, 4), dtype, "x")
    out = attention(x, x, x, scale=None, causal_mask=None, window_size=None)
    function = te.create_prim_func(x, out)

    assert schedule(function).attrs["schedule"] == "generic"

"""The kernel library accepts what the schedules run as one nest, and says which anchor it is."""

from collections.abc import Sequence

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Call, Constant, Expr, ShapeExpr, Tuple, Var, const
from relax_egraph.ir.kernel import Kernel, Schedule
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.lower.library import Library
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir.stmt import PrimFunc
from tests.support.drafts import Draft, K, M, N, Operand


def prim_func(kernel: Kernel) -> PrimFunc:
    """The loop function of `kernel`, made as a build makes it."""
    bb = BlockBuilder()
    params = [
        None if i.scalar is not None else Var(f"p{k}", i.struct_info)
        for k, i in enumerate(kernel.inputs)
    ]
    values: list[Expr] = [
        p or Constant(const(i.scalar, "float32").data)
        for p, i in zip(params, kernel.inputs, strict=True)
    ]
    with bb.function("fused", [p for p in params if p], {"primitive": True}):
        with bb.dataflow():
            for step in kernel.steps:
                operands = tuple(operand(o, values) for o in step.operands)
                values.append(bb.emit(Call(step.op, operands, dict(step.attrs))))
            results = [bb.emit_output(values[o]) for o in kernel.outputs]
        bb.emit_func_output(results[0] if len(results) == 1 else Tuple(tuple(results)))
    fused = fuse_tir(bb.get())["fused"]
    assert isinstance(fused, PrimFunc)
    return fused


def operand(of_step: Operand, values: Sequence[Expr]) -> Expr:
    """An operand of a step, by what its values are."""
    match of_step:
        case int():
            return values[of_step]
        case tuple():
            return Tuple(tuple(values[v] for v in of_step))
        case _:
            return ShapeExpr(of_step.values or ())


def affine_relu() -> Kernel:
    d = Draft()
    x, w, b, zero = d.tensor(N, M), d.tensor(N, M), d.tensor(M), d.scalar(0)
    total = d.do("add", d.do("multiply", x, w), b)
    return d.kernel(d.do("maximum", total, zero))


def two_results() -> Kernel:
    d = Draft()
    x = d.tensor(N, M)
    e = d.do("exp", x)
    return d.kernel(e, d.do("negative", e))


def permuted_prologue() -> Kernel:
    d = Draft()
    x, y = d.tensor(N, 4, M), d.tensor(4, N, M)
    return d.kernel(d.do("add", d.do("permute_dims", x, axes=(1, 0, 2)), y))


def transposed_prologue() -> Kernel:
    d = Draft()
    x, y = d.tensor(N, M), d.tensor(M, N)
    return d.kernel(d.do("add", d.do("permute_dims", x), y))


def broadcast_column() -> Kernel:
    d = Draft()
    x, y = d.tensor(N, 1), d.tensor(N, M)
    return d.kernel(d.do("multiply", d.do("broadcast_to", d.do("exp", x), (N, M)), y))


def transpose() -> Kernel:
    d = Draft()
    return d.kernel(d.do("permute_dims", d.tensor(N, M)))


def matmul(a: Shape, b: Shape, dtype: str = "float32") -> Kernel:
    d = Draft()
    x, y = d.tensor(*a, dtype=dtype), d.tensor(*b, dtype=dtype)
    return d.kernel(d.do("matmul", x, y))


def dense_gelu_residual() -> Kernel:
    d = Draft()
    x, w, b, r = d.tensor(2, N, K), d.tensor(K, 64), d.tensor(64), d.tensor(2, N, 64)
    hidden = d.do("nn.gelu", d.do("add", d.do("matmul", x, w), b))
    return d.kernel(d.do("add", hidden, r))


def dense_of_computed_bias() -> Kernel:
    d = Draft()
    x, w, b = d.tensor(N, K), d.tensor(K, M), d.tensor(M)
    bias = d.do("exp", b)
    return d.kernel(d.do("add", d.do("matmul", x, w), bias))


def product_and_map() -> Kernel:
    d = Draft()
    x, w = d.tensor(N, K), d.tensor(K, M)
    product = d.do("matmul", x, w)
    return d.kernel(product, d.do("nn.relu", product))


def product_and_softmax(depth: Dim = K, columns: Dim = M) -> Kernel:
    d = Draft()
    x, w, scale = d.tensor(2, N, depth), d.tensor(depth, columns), d.scalar(0.125)
    return d.kernel(d.do("nn.softmax", d.do("multiply", d.do("matmul", x, w), scale), axis=-1))


def product_and_rms_norm() -> Kernel:
    """Both the sum with a residual and its norm are results."""
    d = Draft()
    x, w, r, g, eps = d.tensor(N, K), d.tensor(K, M), d.tensor(N, M), d.tensor(M), d.scalar(1e-5)
    added = d.do("add", d.do("matmul", x, w), r)
    square = d.do("mean", d.do("multiply", added, added), axis=(1,), keepdims=True)
    scaled = d.do("multiply", added, d.do("rsqrt", d.do("add", square, eps)))
    return d.kernel(added, d.do("multiply", scaled, g))


def sum_of_product() -> Kernel:
    d = Draft()
    x, w, b, y = d.tensor(N, K), d.tensor(K, M), d.tensor(M), d.tensor(N)
    biased = d.do("add", d.do("matmul", x, w), d.do("exp", b))
    return d.kernel(d.do("multiply", d.do("sum", biased, axis=(1,)), y))


def softmax() -> Kernel:
    d = Draft()
    x, scale = d.tensor(2, N, M), d.scalar(0.125)
    return d.kernel(d.do("nn.softmax", d.do("multiply", x, scale), axis=-1))


def layer_norm() -> Kernel:
    d = Draft()
    x, g, b, eps = d.tensor(N, M), d.tensor(M), d.tensor(M), d.scalar(1e-5)
    centred = d.do("subtract", x, d.do("mean", x, axis=(1,), keepdims=True))
    var = d.do("mean", d.do("multiply", centred, centred), axis=(1,), keepdims=True)
    scaled = d.do("multiply", centred, d.do("rsqrt", d.do("add", var, eps)))
    return d.kernel(d.do("add", d.do("multiply", scaled, g), b))


def scaled_sum() -> Kernel:
    d = Draft()
    x, y = d.tensor(N, M), d.tensor(N)
    return d.kernel(d.do("multiply", d.do("sum", x, axis=(1,)), y))


def sum_of_all() -> Kernel:
    d = Draft()
    x, y = d.tensor(N, M), d.tensor(N, M)
    return d.kernel(d.do("sum", d.do("multiply", x, y)))


def reduced(name: str, *axis: int) -> Kernel:
    d = Draft()
    return d.kernel(d.do(name, d.tensor(4, N, M), axis=axis))


def softmax_over_first() -> Kernel:
    d = Draft()
    return d.kernel(d.do("nn.softmax", d.tensor(N, M), axis=0))


def reshaped() -> Kernel:
    d = Draft()
    return d.kernel(d.do("reshape", d.tensor(N, 4, 8), (N, 32)))


def view(name: str, shape: Shape, **attrs: Attr) -> Kernel:
    d = Draft()
    return d.kernel(d.do(name, d.tensor(*shape), **attrs))


def sliced(d: Draft, x: int, begin: int, end: int) -> int:
    return d.do("strided_slice", x, (begin,), (end,), axes=(1,))


def sum_of_slices() -> Kernel:
    d = Draft()
    x = d.tensor(N, 12)
    return d.kernel(d.do("nn.relu", d.do("add", sliced(d, x, 0, 4), sliced(d, x, 8, 12))))


def dense_and_slice() -> Kernel:
    d = Draft()
    x, w, r = d.tensor(N, K), d.tensor(K, 8), d.tensor(N, 24)
    return d.kernel(d.do("add", d.do("matmul", x, w), sliced(d, r, 8, 16)))


def softmax_of_slice() -> Kernel:
    d = Draft()
    return d.kernel(d.do("nn.softmax", sliced(d, d.tensor(N, 24), 8, 24), axis=1))


def attention_of_slices() -> Kernel:
    d = Draft()
    x = d.tensor(N, 24)
    heads = [d.do("reshape", sliced(d, x, k, k + 8), (1, N, 2, 4)) for k in (0, 8, 16)]
    return d.kernel(d.do("nn.attention", *heads))


def heads(d: Draft, x: int) -> int:
    """`x` of (batch, head, token, d) as (batch, token, head, d)."""
    return d.do("permute_dims", x, axes=(0, 2, 1, 3))


def attention_of_permuted() -> Kernel:
    d = Draft()
    q, k, v = (d.tensor(2, 4, N, 8) for _ in range(3))
    out = d.do("nn.attention", *(heads(d, x) for x in (q, k, v)))
    return d.kernel(heads(d, out))


def attention_of_columns() -> Kernel:
    d = Draft()
    q, k, v = d.tensor(2, N, 4, 8), d.tensor(2, 4, 8, M), d.tensor(2, M, 4, 8)
    return d.kernel(d.do("nn.attention", q, d.do("permute_dims", k, axes=(0, 3, 1, 2)), v))


def attention_of_batched_heads() -> Kernel:
    d = Draft()
    x = d.tensor(N, 2, 24)
    rows = d.do("permute_dims", d.do("reshape", x, (N, 6, 8)), axes=(1, 0, 2))
    each = d.do("reshape", rows, (6, N, 1, 8))
    out = d.do("reshape", d.do("nn.attention", each, each, each), (6, N, 8))
    return d.kernel(d.do("permute_dims", out, axes=(1, 0, 2)))


def attention_of_past_and_new() -> Kernel:
    d = Draft()
    q = d.tensor(1, N, 4, 8)
    pairs = [(d.tensor(1, 2, M, 8), d.tensor(1, 2, N, 8)) for _ in range(2)]
    joined = [d.do("concat", [past, new], axis=2) for past, new in pairs]
    return d.kernel(d.do("nn.attention", q, *(heads(d, x) for x in joined)))


def attention_of_past_and_whole() -> Kernel:
    d = Draft()
    q, past, new = d.tensor(1, N, 4, 8), d.tensor(1, M, 4, 8), d.tensor(1, 1, 4, 8)
    whole = d.tensor(1, dims.add(M, 1), 4, 8)
    return d.kernel(d.do("nn.attention", q, d.do("concat", [past, new], axis=1), whole))


ACCEPTED: dict[str, tuple[Kernel, str]] = {
    "affine relu": (affine_relu(), "elementwise"),
    "two results": (two_results(), "elementwise"),
    "permuted prologue": (permuted_prologue(), "elementwise"),
    "transposed prologue": (transposed_prologue(), "elementwise"),
    "broadcast column": (broadcast_column(), "elementwise"),
    "exp": (view("exp", (N, M)), "elementwise"),
    "transpose": (transpose(), "movement"),
    "matmul": (matmul((N, K), (K, M)), "matmul"),
    "batched matmul": (matmul((4, N, K), (4, K, M)), "matmul"),
    "one row": (matmul((1, K), (K, M)), "matmul"),
    "row vector": (matmul((K,), (K, M)), "matmul"),
    "dense gelu residual": (dense_gelu_residual(), "matmul"),
    "dense of a computed bias": (dense_of_computed_bias(), "matmul"),
    "product and map": (product_and_map(), "matmul"),
    "product and softmax": (product_and_softmax(), "matmul_rows"),
    "softmax of 4096 columns": (product_and_softmax(768, 4096), "matmul_rows"),
    "product and rms norm": (product_and_rms_norm(), "matmul_rows"),
    "sum of a product": (sum_of_product(), "matmul_rows"),
    "float64 matmul": (matmul((N, K), (K, M), "float64"), "matmul"),
    "int32 matmul": (matmul((N, K), (K, M), "int32"), "matmul"),
    "int64 matmul": (matmul((N, K), (K, M), "int64"), "generic"),
    "column vector": (matmul((N, K), (K,)), "rows"),
    "softmax": (softmax(), "rows"),
    "layer norm": (layer_norm(), "rows"),
    "scaled sum": (scaled_sum(), "rows"),
    "sum of all": (sum_of_all(), "rows"),
    "mean of last": (reduced("mean", 2), "rows"),
    "max of trailing": (reduced("max", 1, 2), "rows"),
    "sum of outer": (reduced("sum", 0, 2), "rows"),
    "sum of first": (reduced("sum", 0), "generic"),
    "min of middle": (reduced("min", 1), "generic"),
    "mean of first": (reduced("mean", 0), "columns"),
    "softmax over first": (softmax_over_first(), "columns"),
    "sum of slices": (sum_of_slices(), "elementwise"),
    "dense and a slice": (dense_and_slice(), "matmul"),
    "softmax of a slice": (softmax_of_slice(), "rows"),
    "attention of slices": (attention_of_slices(), "attention"),
    "attention of permuted operands": (attention_of_permuted(), "attention"),
    "attention of keys that are columns": (attention_of_columns(), "attention"),
    "attention of batched heads": (attention_of_batched_heads(), "attention"),
    "attention of past and new": (attention_of_past_and_new(), "attention"),
    "attention of keys alone in two": (attention_of_past_and_whole(), "attention"),
    "reshape": (reshaped(), "view"),
    "flatten": (view("flatten", (N, M)), "view"),
    "expand": (view("expand_dims", (N, M), axis=(1,)), "view"),
    "squeeze": (view("squeeze", (N, 1, M), axis=(1,)), "view"),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_an_accepted_kernel_is_scheduled_by_the_anchor_that_is_named(name: str) -> None:
    kernel, anchor = ACCEPTED[name]

    found = Library().schedule_of(kernel)

    assert found is not None
    assert found.anchor == anchor
    assert 0 < found.flops <= 1
    assert 0 < found.bandwidth <= 1
    assert schedule(prim_func(kernel)).attrs["schedule"] == anchor


def test_immediates_do_not_count_as_inputs() -> None:
    draft = Draft()
    x, *scalars = draft.tensor(N), *(draft.scalar(k) for k in range(13))
    total = x
    for s in scalars:
        total = draft.do("add", total, s)

    assert Library().schedule_of(draft.kernel(total)) == Schedule("elementwise", 0.5, 0.9)


def test_few_rows_and_few_columns_reach_a_smaller_share_of_peak() -> None:
    library = Library()
    shapes = [(512, 512), (2, 512), (1, 512), (512, 16), (512, 10), (512, 0)]

    found = [library.schedule_of(matmul((m, 64), (64, n))) for m, n in shapes]

    assert [s and s.flops for s in found] == [0.9, 0.35, 0.2, 0.6, 0.375, 0.0375]


def test_a_product_and_its_rows_cost_the_arithmetic_of_both() -> None:
    library = Library()
    depths = (16, 64, 768, K)

    schedules = [library.schedule_of(product_and_softmax(depth, 256)) for depth in depths]

    # A scaled softmax: 30 flops at half of peak, beside those of the product at 0.9.
    exact = [(2 * k + 30) / (2 * k / 0.9 + 30 / 0.5) for k in (16, 64, 768)]
    assert [s and s.flops for s in schedules] == [*map(pytest.approx, exact), 0.9]


def test_a_transposing_read_is_slow() -> None:
    fast = Library().schedule_of(permuted_prologue())
    slow = Library().schedule_of(transposed_prologue())

    assert fast is not None
    assert slow is not None
    assert slow.bandwidth < fast.bandwidth / 2

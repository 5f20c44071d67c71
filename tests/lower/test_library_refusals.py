"""The kernel library refuses what no anchor runs as one nest."""

from collections.abc import Callable

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.kernel import Input, Step
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, tensor
from relax_egraph.lower.library import Library
from tests.support.drafts import Draft, K, M, N


def without_steps(d: Draft) -> list[int]:
    return [d.tensor(N)]


def unknown_shape(d: Draft) -> list[int]:
    return [d.do("exp", d.input(Input(tensor(None, "float32", 2))))]


def unknown_dtype(d: Draft) -> list[int]:
    return [d.do("negative", d.input(Input(tensor((N,), None))))]


def data_dependent(d: Draft) -> list[int]:
    return [d.do("unique", d.tensor(N))]


def view_inside(d: Draft) -> list[int]:
    return [d.do("exp", d.do("flatten", d.tensor(N, M)))]


def two_products(d: Draft) -> list[int]:
    x, w, v = d.tensor(N, K), d.tensor(K, M), d.tensor(M, 4)
    return [d.do("matmul", d.do("matmul", x, w), v)]


def computed_operand(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, M)
    return [d.do("matmul", d.do("nn.relu", x), w)]


def unproven_depth(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(M, 4)
    return [d.do("matmul", x, w)]


def unproven_broadcast(d: Draft) -> list[int]:
    return [d.do("exp", d.do("broadcast_to", d.tensor(N), (M,)))]


def slice_from_either_end(d: Draft) -> list[int]:
    rest = ShapeStructInfo((dims.sub(N, M),), 1)
    x = d.tensor(N, 4)
    given = (x, ShapeStructInfo((0,), 1), rest)
    attrs = tuple(complete_attrs(OPS["strided_slice"], {"axes": (0,)}).items())
    made = tensor((dims.sub(N, M), 4), "float32")
    d.steps.append(Step(OPS["strided_slice"], given, attrs, made))
    return [d.do("exp", 1)]


def attention(d: Draft, key: Shape, bias: Shape) -> list[int]:
    q, k, v, b = (d.tensor(*s) for s in ((2, N, 4, 8), key, key, bias))
    return [d.do("nn.attention_bias", q, k, v, b)]


def attention_of_unproven_heads(d: Draft) -> list[int]:
    return attention(d, (2, N, M, 8), (2, 4, N, N))


def attention_of_unproven_batches(d: Draft) -> list[int]:
    return attention(d, (M, N, 4, 8), (2, 4, N, N))


def attention_of_unproven_bias(d: Draft) -> list[int]:
    return attention(d, (2, N, 2, 8), (1, 1, M, N))


def attending(d: Draft, *operands: int) -> int:
    return d.do("nn.attention", *operands)


def attention_of_what_is_computed(d: Draft) -> list[int]:
    x = d.tensor(2, N, 4, 8)
    return [attending(d, d.do("exp", x), x, x)]


def attention_of_keys_in_halves(d: Draft) -> list[int]:
    x, half = d.tensor(2, N, 4, 8), d.tensor(2, N, 4, 4)
    return [attending(d, x, d.do("concat", [half, half], axis=3), x)]


def attention_of_queries_in_two(d: Draft) -> list[int]:
    a, b, x = d.tensor(2, N, 4, 8), d.tensor(2, M, 4, 8), d.tensor(2, K, 4, 8)
    return [attending(d, d.do("concat", [a, b], axis=1), x, x)]


def attention_of_keys_and_values_cut_apart(d: Draft) -> list[int]:
    q, a, b = d.tensor(2, K, 4, 8), d.tensor(2, N, 4, 8), d.tensor(2, M, 4, 8)
    keys, values = (d.do("concat", [*parts], axis=1) for parts in ((a, b), (b, a)))
    return [attending(d, q, keys, values)]


def attention_of_a_part_of_what_is_joined(d: Draft) -> list[int]:
    q, a, b = d.tensor(2, K, 4, 8), d.tensor(2, N, 4, 8), d.tensor(2, 6, 4, 8)
    joined = d.do("concat", [a, b], axis=1)
    part = d.do("strided_slice", joined, (1,), (dims.add(N, 6),), axes=(1,))
    return [attending(d, q, part, part)]


def attention_of_heads_that_lie_apart(d: Draft) -> list[int]:
    x = d.do("strided_slice", d.tensor(N, 2, 48), (0,), (24,), axes=(2,))
    heads = d.do("permute_dims", d.do("reshape", x, (N, 6, 8, 1)), axes=(1, 0, 3, 2))
    return [attending(d, heads, heads, heads)]


def attention_of_values_that_are_columns(d: Draft) -> list[int]:
    x = d.tensor(2, N, 4, 8)
    values = d.do("permute_dims", d.tensor(2, 4, 8, N), axes=(0, 3, 1, 2))
    return [attending(d, x, x, values)]


def attention_stored_in_columns(d: Draft) -> list[int]:
    x = d.tensor(2, N, 4, 8)
    return [d.do("permute_dims", attending(d, x, x, x), axes=(0, 2, 3, 1))]


def attention_and_map(d: Draft) -> list[int]:
    x = d.tensor(2, N, 4, 8)
    return [d.do("exp", attending(d, x, x, x))]


def attention_also_in_another_order(d: Draft) -> list[int]:
    x = d.tensor(2, N, 4, 8)
    out = attending(d, x, x, x)
    return [out, d.do("permute_dims", out, axes=(0, 2, 1, 3))]


def join_and_map(d: Draft) -> list[int]:
    x, y = d.tensor(N, 4), d.tensor(M, 4)
    return [d.do("exp", d.do("concat", [x, y], axis=0))]


def product_that_broadcasts(d: Draft) -> list[int]:
    x, w, y = d.tensor(N, K), d.tensor(K, M), d.tensor(4, N, M)
    return [d.do("add", d.do("matmul", x, w), y)]


def product_then_reduction_of_columns(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, M)
    return [d.do("nn.softmax", d.do("matmul", x, w), axis=0)]


def product_then_reduction_of_the_batch(d: Draft) -> list[int]:
    x, w = d.tensor(4, N, K), d.tensor(4, K, M)
    return [d.do("sum", d.do("matmul", x, w), axis=(1, 2))]


def product_then_rows_that_turn_to_columns(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, N)
    product = d.do("matmul", x, w)
    return [d.do("add", product, d.do("sum", product, axis=(1,)))]


def product_with_rows_beyond_the_cache(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, 4097)
    return [d.do("nn.softmax", d.do("matmul", x, w))]


def product_beside_a_reduction(d: Draft) -> list[int]:
    x, w, r = d.tensor(N, K), d.tensor(K, M), d.tensor(N, M)
    return [d.do("add", d.do("matmul", x, w), d.do("max", r, axis=(1,), keepdims=True))]


def product_of_long_integers_then_reduction(d: Draft) -> list[int]:
    x, w = d.tensor(N, K, dtype="int64"), d.tensor(K, M, dtype="int64")
    return [d.do("max", d.do("matmul", x, w), axis=(1,), keepdims=True)]


def product_beside_map(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, M)
    return [d.do("matmul", x, w), d.do("exp", x)]


def product_of_long_integers_with_map(d: Draft) -> list[int]:
    x, w = d.tensor(N, K, dtype="int64"), d.tensor(K, M, dtype="int64")
    return [d.do("negative", d.do("matmul", x, w))]


def product_with_column_and_map(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K)
    return [d.do("exp", d.do("matmul", x, w))]


def results_of_two_shapes(d: Draft) -> list[int]:
    x, y = d.tensor(N, M), d.tensor(M)
    return [d.do("exp", x), d.do("exp", y)]


def permutations_alone(d: Draft) -> list[int]:
    x = d.tensor(N, M, K)
    return [d.do("permute_dims", d.do("permute_dims", x, axes=(1, 0, 2)), axes=(2, 1, 0))]


def reduction_of_leading_axis(d: Draft) -> list[int]:
    x = d.tensor(N, M)
    return [d.do("exp", d.do("sum", x, axis=(0,)))]


def reductions_of_two_depths(d: Draft) -> list[int]:
    x = d.tensor(N, M, K)
    return [d.do("sum", d.do("sum", x, axis=(2,)), axis=(1,))]


def rows_that_turn_to_columns(d: Draft) -> list[int]:
    x = d.tensor(N, N)
    return [d.do("add", d.do("exp", x), d.do("sum", x, axis=(1,)))]


def rows_and_permutation(d: Draft) -> list[int]:
    x = d.tensor(N, M)
    return [d.do("sum", d.do("permute_dims", x), axis=(1,))]


def too_many_inputs(d: Draft) -> list[int]:
    tensors = [d.tensor(N) for _ in range(13)]
    total = tensors[0]
    for t in tensors[1:]:
        total = d.do("add", total, t)
    return [total]


REFUSED: list[Callable[[Draft], list[int]]] = [
    without_steps,
    unknown_shape,
    unknown_dtype,
    data_dependent,
    view_inside,
    two_products,
    computed_operand,
    unproven_depth,
    unproven_broadcast,
    slice_from_either_end,
    attention_of_unproven_heads,
    attention_of_unproven_batches,
    attention_of_unproven_bias,
    attention_of_what_is_computed,
    attention_of_keys_in_halves,
    attention_of_queries_in_two,
    attention_of_keys_and_values_cut_apart,
    attention_of_a_part_of_what_is_joined,
    attention_of_heads_that_lie_apart,
    attention_of_values_that_are_columns,
    attention_stored_in_columns,
    attention_and_map,
    attention_also_in_another_order,
    join_and_map,
    product_that_broadcasts,
    product_then_reduction_of_columns,
    product_then_reduction_of_the_batch,
    product_then_rows_that_turn_to_columns,
    product_with_rows_beyond_the_cache,
    product_beside_a_reduction,
    product_of_long_integers_then_reduction,
    product_beside_map,
    product_of_long_integers_with_map,
    product_with_column_and_map,
    results_of_two_shapes,
    permutations_alone,
    reduction_of_leading_axis,
    reductions_of_two_depths,
    rows_that_turn_to_columns,
    rows_and_permutation,
    too_many_inputs,
]


@pytest.mark.parametrize("draw", REFUSED, ids=lambda draw: draw.__name__.replace("_", " "))
def test_what_no_anchor_runs_is_refused(draw: Callable[[Draft], list[int]]) -> None:
    draft = Draft()
    outputs = draw(draft)

    assert Library().schedule_of(draft.kernel(*outputs)) is None

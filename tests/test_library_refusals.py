"""The kernel library refuses what no anchor runs as one nest."""

from collections.abc import Callable

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.kernel import Input, Step
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, tensor
from relax_egraph.lower.library import Library
from tests.drafts import Draft, K, M, N


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


def product_that_broadcasts(d: Draft) -> list[int]:
    x, w, y = d.tensor(N, K), d.tensor(K, M), d.tensor(4, N, M)
    return [d.do("add", d.do("matmul", x, w), y)]


def product_then_reduction(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, M)
    return [d.do("nn.softmax", d.do("matmul", x, w))]


def product_beside_map(d: Draft) -> list[int]:
    x, w = d.tensor(N, K), d.tensor(K, M)
    return [d.do("matmul", x, w), d.do("exp", x)]


def product_of_doubles_with_map(d: Draft) -> list[int]:
    x, w = d.tensor(N, K, dtype="float64"), d.tensor(K, M, dtype="float64")
    return [d.do("exp", d.do("matmul", x, w))]


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
    product_that_broadcasts,
    product_then_reduction,
    product_beside_map,
    product_of_doubles_with_map,
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

"""The kernel library accepts what the schedules run as one nest, and says which anchor it is."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import BlockBuilder
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Call, Constant, Expr, ShapeExpr, Tuple, Var, const
from relax_egraph.ir.kernel import Input, Kernel, Schedule, Step
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    TensorStructInfo,
    tensor,
)
from relax_egraph.lower.fuse_tir import fuse_tir
from relax_egraph.lower.library import Library
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir.stmt import PrimFunc

N, M, K = dims.symbol("n"), dims.symbol("m"), dims.symbol("k")


@dataclass
class Draft:
    """A kernel being written: inputs first, then steps; values are numbers."""

    inputs: list[Input] = field(default_factory=list[Input])
    steps: list[Step] = field(default_factory=list[Step])

    def tensor(self, *shape: Dim, dtype: str = "float32") -> int:
        return self.input(Input(tensor(shape, dtype)))

    def scalar(self, value: float) -> int:
        return self.input(Input(tensor((), "float32"), value))

    def input(self, given: Input) -> int:
        assert not self.steps, "inputs come first"
        self.inputs.append(given)
        return len(self.inputs) - 1

    def info(self, value: int) -> TensorStructInfo:
        return self.kernel(0).info(value)

    def do(self, name: str, *operands: int | Shape, **attrs: Attr) -> int:
        op = OPS[name]
        complete = complete_attrs(op, attrs)
        given = tuple(
            o if isinstance(o, int) else ShapeStructInfo(tuple(o), len(o)) for o in operands
        )
        infos = [self.info(o) if isinstance(o, int) else o for o in given]
        result = op.rule(*infos, **complete)
        assert isinstance(result, TensorStructInfo)
        self.steps.append(Step(op, given, tuple(complete.items()), result))
        return len(self.inputs) + len(self.steps) - 1

    def kernel(self, *outputs: int) -> Kernel:
        return Kernel(tuple(self.inputs), tuple(self.steps), outputs)


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
                operands = tuple(
                    values[o] if isinstance(o, int) else ShapeExpr(o.values or ())
                    for o in step.operands
                )
                values.append(bb.emit(Call(step.op, operands, dict(step.attrs))))
            results = [bb.emit_output(values[o]) for o in kernel.outputs]
        bb.emit_func_output(results[0] if len(results) == 1 else Tuple(tuple(results)))
    fused = fuse_tir(bb.get())["fused"]
    assert isinstance(fused, PrimFunc)
    return fused


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
    "float64 matmul": (matmul((N, K), (K, M), "float64"), "generic"),
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
    "softmax over first": (softmax_over_first(), "generic"),
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


# --- refusals ---------------------------------------------------------------------------


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


def test_immediates_do_not_count_as_inputs() -> None:
    draft = Draft()
    x, *scalars = draft.tensor(N), *(draft.scalar(k) for k in range(13))
    total = x
    for s in scalars:
        total = draft.do("add", total, s)

    assert Library().schedule_of(draft.kernel(total)) == Schedule("elementwise", 0.5, 0.9)


def test_few_rows_and_few_columns_reach_a_smaller_share_of_peak() -> None:
    library = Library()
    shapes = [(512, 512), (2, 512), (1, 512), (512, 16), (512, 10)]

    found = [library.schedule_of(matmul((m, 64), (64, n))) for m, n in shapes]

    assert [s and s.flops for s in found] == [0.9, 0.35, 0.2, 0.4, 0.25]


def test_a_transposing_read_is_slow() -> None:
    fast = Library().schedule_of(permuted_prologue())
    slow = Library().schedule_of(transposed_prologue())

    assert fast is not None
    assert slow is not None
    assert slow.bandwidth < fast.bandwidth / 2

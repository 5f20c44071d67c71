"""Scales, shifts and batch-norms around linear operators end in their weights and one bias."""

from collections.abc import Iterable

import numpy as np
import pytest

from relax_egraph.egraph.view import ClassId, EClass, View
from relax_egraph.ir import IRModule, Var, const, symbol, tensor
from relax_egraph.ir.expr import Expr, TupleGetItem
from tests.support.viewed import Emit, block, check_equal, saturated, weight

N = symbol("n")
FAMILIES = ("canon", "constants", "movement", "shape", "algebra", "linear", "convolution")


def of_input(view: View, value: EClass, op: str) -> bool:
    """Whether `value` is `op` of the block's input, which is not constant, and a constant."""
    return any(
        node.op == op
        and view.classes[node.operands[0]].nodes[0].op == "leaf"
        and not view.classes[node.operands[0]].is_const
        and view.classes[node.operands[1]].is_const
        for node in value.nodes
    )


def is_constant(view: View, value: ClassId) -> bool:
    """Whether a class is constant, or the broadcast of a constant."""
    eclass = view.classes[value]
    broadcasts = [n.operands[0] for n in eclass.nodes if n.op == "broadcast_to"]
    return eclass.is_const or any(view.classes[c].is_const for c in broadcasts)


def folds(view: View, op: str) -> bool:
    """Whether the output can be `op` of the input and a constant, plus a constant."""
    (root,) = view.roots
    sums = [node.operands for node in view.classes[root].nodes if node.op == "add"]
    return any(of_input(view, view.classes[a], op) and is_constant(view, b) for a, b in sums)


def batch_norm(emit: Emit, x: Expr, rng: np.random.Generator, shape: tuple[int, ...]) -> Var:
    """``(x - mean) / √(variance + ε) · gamma + beta``, as exporters write it out."""
    variance = const(rng.uniform(0.5, 2, shape).astype(np.float32))
    root = emit("sqrt", emit("add", variance, const(np.full(shape, 1e-5, np.float32))))
    away = emit("divide", emit("subtract", x, weight(rng, *shape)), root)
    return emit("add", emit("multiply", away, weight(rng, *shape)), weight(rng, *shape))


def around_matmul(leading: tuple[object, ...], before: bool) -> IRModule:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((*leading, 4), "float32"))  # pyright: ignore[reportArgumentType]

    def body(emit: Emit) -> Iterable[Var]:
        value = batch_norm(emit, x, rng, (4,)) if before else x
        product = emit("add", emit("matmul", value, weight(rng, 4, 3)), weight(rng, 3))
        yield batch_norm(emit, product, rng, (3,))

    return block([x], body)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("leading", [(N,), (2, N), (1, 1)])
def test_batch_norms_around_a_matmul_are_folded(leading: tuple[object, ...], before: bool) -> None:
    view = saturated(around_matmul(leading, before), FAMILIES)

    assert folds(view, "matmul")
    assert check_equal(view, n=3) > 10
    assert check_equal(view, n=0) > 10


def laid_out(layout: str, letters: str, first: int, second: int, other: int) -> tuple[int, ...]:
    """Extents in the order of `layout`: of its two `letters`, and `other` of all others."""
    extents = {letters[0]: first, letters[1]: second}
    return tuple(extents.get(letter, other) for letter in layout)


def around_conv(
    name: str, layout: str, kernel_layout: str, groups: int = 1, as_operator: bool = False
) -> IRModule:
    """Four channels scaled, convolved with padding to eight, normed.

    No shift stands before the convolution: its padding would have to be shifted, too.
    """
    rng = np.random.default_rng(0)
    x = Var("x", tensor(laid_out(layout, "NC", 2, 4, 5), "float32"))
    place = layout.index("C")
    behind = (1,) * (len(layout) - place - 1)
    transposed = name.endswith("transpose")
    ins, outs = (4, 8 // groups) if transposed else (4 // groups, 8)

    def body(emit: Emit) -> Iterable[Expr]:
        scaled = emit("multiply", x, weight(rng, 4, *behind))
        made = emit(
            *(name, scaled, weight(rng, *laid_out(kernel_layout, "OI", outs, ins, 3))),
            padding=(1,) * (len(layout) - 2),
            groups=groups,
            data_layout=layout,
            kernel_layout=kernel_layout,
        )
        if not as_operator:
            return [batch_norm(emit, made, rng, (8, *behind))]
        positive = const(rng.uniform(0.5, 2, 8).astype(np.float32))
        moments = (weight(rng, 8), weight(rng, 8), weight(rng, 8), positive)
        normed = emit("nn.batch_norm", made, *moments, axis=place, training=False)
        return [TupleGetItem(normed, 0)]

    return block([x], body)


CONVOLUTIONS = [
    ("nn.conv1d", "NCW", "OIW"),
    ("nn.conv1d", "NWC", "WIO"),
    ("nn.conv2d", "NCHW", "OIHW"),
    ("nn.conv2d", "NHWC", "HWIO"),
    ("nn.conv2d", "NHWC", "OHWI"),
    ("nn.conv3d", "NCDHW", "OIDHW"),
    ("nn.conv3d", "NDHWC", "DHWIO"),
    ("nn.conv1d_transpose", "NCW", "IOW"),
    ("nn.conv2d_transpose", "NCHW", "IOHW"),
    ("nn.conv2d_transpose", "NHWC", "HWIO"),
    ("nn.conv3d_transpose", "NCDHW", "IODHW"),
]


@pytest.mark.parametrize(("name", "layout", "kernel_layout"), CONVOLUTIONS)
def test_a_batch_norm_behind_a_convolution_is_folded(
    name: str, layout: str, kernel_layout: str
) -> None:
    view = saturated(around_conv(name, layout, kernel_layout), FAMILIES)

    assert folds(view, name)
    assert check_equal(view) > 10


@pytest.mark.parametrize("groups", [2, 4])
@pytest.mark.parametrize("layouts", [("NCHW", "OIHW"), ("NHWC", "OIHW")])
def test_so_it_is_in_groups_and_depthwise(groups: int, layouts: tuple[str, str]) -> None:
    view = saturated(around_conv("nn.conv2d", *layouts, groups), FAMILIES)

    assert folds(view, "nn.conv2d")
    assert check_equal(view) > 10


def test_the_operator_is_folded_as_what_it_computes() -> None:
    view = saturated(around_conv("nn.conv2d", "NCHW", "OIHW", as_operator=True))

    assert folds(view, "nn.conv2d")


@pytest.mark.parametrize("padding", [0, 1])
def test_a_shift_before_a_convolution_is_folded_only_where_nothing_is_padded(padding: int) -> None:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((N, 4, 5, 5), "float32"))

    def body(emit: Emit) -> Iterable[Var]:
        normed = batch_norm(emit, x, rng, (4, 1, 1))
        made = emit("nn.conv2d", normed, weight(rng, 6, 4, 3, 3), padding=(padding, padding))
        return [emit("add", made, weight(rng, 6, 1, 1))]

    view = saturated(block([x], body), FAMILIES)

    assert folds(view, "nn.conv2d") == (padding == 0)
    assert check_equal(view, n=2) > 5


@pytest.mark.parametrize("length", [4, 8, 16])
def test_a_chain_of_scales_and_shifts_is_one_scale_and_one_shift(length: int) -> None:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((N, 3), "float32"))

    def body(emit: Emit) -> Iterable[Var]:
        value: Expr = x
        for _ in range(length):
            value = emit("multiply", emit("add", value, weight(rng, 3)), weight(rng, 3))
        return [value]

    view = saturated(block([x], body), ("canon", "movement", "linear"))

    (root,) = view.roots
    sums = [node.operands for node in view.classes[root].nodes if node.op == "add"]
    products = [node for a, _ in sums for node in view.classes[a].nodes if node.op == "multiply"]
    assert any(view.classes[node.operands[0]].nodes[0].op == "leaf" for node in products)
    assert sum(len(c.nodes) for c in view.classes.values()) < 150 * length
    assert check_equal(view, n=2) > length


def test_a_sum_of_its_own_halves_ends() -> None:
    """a = x / 2 and b = a / 2 make a = b + b = (x + x) / 4 = (x + x + x + x) / 8, and so on."""
    x = Var("x", tensor((N, 4), "float32"))

    def body(emit: Emit) -> Iterable[Var]:
        a = emit("divide", x, const(2.0, "float32"))
        b = emit("multiply", a, const(0.5, "float32"))
        yield emit("multiply", a, emit("add", b, b))

    view = saturated(block([x], body))

    assert check_equal(view, n=3) > 0


@pytest.mark.parametrize("least", [0.0, 1e-40, 0.5])
def test_a_divisor_is_folded_only_if_none_of_its_elements_is_near_zero(least: float) -> None:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((N, 4), "float32"))
    divisor = const(np.array([2, least, -3], np.float32))

    def body(emit: Emit) -> Iterable[Var]:
        product = emit("add", emit("matmul", x, weight(rng, 4, 3)), weight(rng, 3))
        yield emit("add", emit("divide", product, divisor), weight(rng, 3))

    view = saturated(block([x], body), FAMILIES)

    assert folds(view, "matmul") == (least == 0.5)
    assert check_equal(view, n=2) > 1


def test_a_divisor_before_a_convolution_is_folded_as_of_images_that_are_normalized() -> None:
    rng = np.random.default_rng(0)
    x = Var("x", tensor((N, 3, 5, 5), "float32"))
    deviation = const(np.array([0.229, 0.224, 0.225], np.float32).reshape(3, 1, 1))

    def body(emit: Emit) -> Iterable[Var]:
        made = emit(
            "nn.conv2d", emit("divide", x, deviation), weight(rng, 6, 3, 3, 3), padding=(1, 1)
        )
        yield emit("add", made, weight(rng, 6, 1, 1))

    view = saturated(block([x], body), FAMILIES)

    assert folds(view, "nn.conv2d")
    assert check_equal(view, n=2) > 1

"""Extraction chooses the layout of each image: channels last, where no copy costs more."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

import relax_egraph as rx
from relax_egraph.egraph.encoding.regions import SIZE
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.expr import Call
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.walk import post_order_visit

Array = npt.NDArray[np.float32]

HEAD = """
@R.function
def main(x: R.Tensor(("n", 3, 16, 16), "float32"), w: R.Tensor((32, 3, 3, 3), "float32"),
         v: R.Tensor((32, 32, 3, 3), "float32"), b: R.Tensor((32, 1, 1), "float32"),
         y: R.Tensor(("n", 32, 16, 16), "float32")):
    with R.dataflow():
"""
SHAPES = ((2, 3, 16, 16), (32, 3, 3, 3), (32, 32, 3, 3), (32, 1, 1), (2, 32, 16, 16))


def written(*lines: str) -> str:
    body = [*lines, "R.output(gv)"]
    return HEAD + "\n".join(f"        {line}" for line in body) + "\n    return gv\n"


def chosen(text: str, without: Sequence[str] = ()) -> list[str]:
    """The layouts of convolutions, and other moves, in the optimized program of `text`.

    The program computes the same.
    """
    module = rx.parse(text)
    best = rx.optimize(module, without=without)
    random = np.random.default_rng(0)
    inputs: list[Array] = [random.standard_normal(s, np.float32) * np.float32(0.25) for s in SHAPES]
    expected = evaluate(module, "main", *inputs)
    np.testing.assert_allclose(evaluate(best, "main", *inputs), expected, rtol=1e-3, atol=1e-4)
    layouts: list[str] = []

    def note(e: object) -> None:
        if not isinstance(e, Call) or not isinstance(e.op, Op):
            return
        if e.op.name == "nn.conv2d":
            attrs = complete_attrs(e.op, e.attrs)
            layouts.append(f"{attrs['data_layout']} {attrs['out_layout'] or ''}".strip())
        elif e.op.name == "permute_dims" and len(e.struct_info.dims or ()) == 4:  # pyright: ignore
            layouts.append("permuted")

    for _, function in best.relax_functions():
        post_order_visit(function, note)
    return sorted(layouts)


def test_images_between_convolutions_have_their_channels_last() -> None:
    text = written(
        "c = R.nn.conv2d(x, w, padding=[1])",
        "r = R.nn.relu(R.add(c, b))",
        "d = R.nn.conv2d(r, v, padding=[1])",
        "s = R.nn.relu(R.add(R.add(d, b), r))",
        "p = R.nn.max_pool2d(s, pool_size=[2], strides=[2])",
        "e = R.nn.conv2d(R.concat((p, p), axis=1), R.concat((v, v), axis=1))",
        "gv = R.mean(e, axis=[2, 3])",
    )

    assert chosen(text) == ["NCHW NHWC", "NHWC", "NHWC"]


def test_the_last_convolution_writes_the_layout_of_the_result() -> None:
    layers = [f"q{k + 1} = R.nn.conv2d(q{k}, v, padding=[1])" for k in range(3)]
    text = written("q0 = R.nn.conv2d(x, w, padding=[1])", *layers, "gv = R.nn.relu(q3)")

    assert chosen(text) == ["NCHW NHWC", "NHWC", "NHWC", "NHWC NCHW"]


def test_a_convolution_alone_stays_as_it_is() -> None:
    text = written("c = R.nn.conv2d(y, v)", "gv = R.nn.softmax(c, axis=1)")

    assert chosen(text) == ["NCHW"]


def test_an_input_beside_an_image_is_moved_if_that_pays() -> None:
    text = written(
        "c = R.nn.conv2d(x, w, padding=[1])",
        "d = R.nn.conv2d(R.add(c, y), v, padding=[1])",
        "gv = R.mean(d, axis=[2, 3])",
    )

    assert chosen(text) in (["NCHW", "NCHW NHWC"], ["NCHW NHWC", "NHWC", "permuted"])


def test_images_cross_regions_with_channels_last() -> None:
    layers = [
        line
        for k in range(SIZE // 2 + 5)
        for line in (
            f"c{k} = R.nn.conv2d(r{k}, v, padding=[1])",
            f"r{k + 1} = R.nn.relu(R.add(c{k}, r{k}))",
        )
    ]
    text = written("r0 = R.nn.conv2d(x, w)", *layers[:2], "gv = R.mean(r1, axis=[2, 3])")
    deep = written("r0 = R.nn.conv2d(x, w)", *layers, f"gv = R.mean(r{SIZE // 2 + 5}, axis=[2, 3])")

    assert chosen(text) == ["NCHW NHWC", "NHWC"]
    assert set(chosen(deep)) == {"NCHW NHWC", "NHWC"}


def test_without_the_family_layouts_stay() -> None:
    text = written("c = R.nn.conv2d(x, w)", "gv = R.mean(R.nn.conv2d(c, v), axis=[2, 3])")

    assert chosen(text, without=["images"]) == ["NCHW", "NCHW"]

"""Images have their channels last between convolutions, where few have to be moved for it."""

import numpy as np

from relax_egraph.ir.expr import Call
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.walk import post_order_visit
from relax_egraph.passes import channels_last
from relax_egraph.script import parse
from tests.support.transformed import becomes, floats, same_value, stays

HEAD = """
@R.function
def main(x: R.Tensor(("n", 3, 8, "w"), "float32"), w: R.Tensor((4, 3, 3, 3), "float32"),
         v: R.Tensor((4, 4, 1, 1), "float32"), b: R.Tensor((4, 1, 1), "float32"),
         c: R.Tensor((4,), "float32"), y: R.Tensor(("n", 4, 6, "w - 2"), "float32")):
    with R.dataflow():
"""


def written(*lines: str, results: str = "gv") -> str:
    body = [*lines, f"R.output({results})"]
    return HEAD + "\n".join(f"        {line}" for line in body) + f"\n    return {results}\n"


def changed(before: str, after: str) -> None:
    module = becomes(channels_last, before, after)
    same_value(parse(before), module, *inputs())


def inputs() -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    shapes = ((2, 3, 8, 7), (4, 3, 3, 3), (4, 4, 1, 1), (4, 1, 1), (4,), (2, 4, 6, 5))
    return [floats(*shape) for shape in shapes]


def operators(module: IRModule) -> list[str]:
    found: list[str] = []

    def note(e: object) -> None:
        if isinstance(e, Call) and isinstance(e.op, Op):
            found.append(e.op.name)

    post_order_visit(module["main"], note)  # pyright: ignore[reportArgumentType]
    return found


def test_what_follows_a_convolution_is_of_its_order_until_it_is_one_line() -> None:
    changed(
        written(
            "p = R.nn.conv2d(x, w)",
            "q = R.nn.batch_norm(p, c, c, c, R.exp(c), training=False)",
            "r = q[0]",
            "s = R.nn.relu(R.add(r, b))",
            "t = R.nn.max_pool2d(s, pool_size=[2])",
            "gv = R.nn.adaptive_avg_pool2d(t, output_size=[1])",
        ),
        written(
            'p = R.nn.conv2d(x, w, out_layout="NHWC")',
            "e = R.exp(c)",
            "q = R.nn.batch_norm(p, c, c, c, e, axis=3, training=False)",
            "r = q[0]",
            "m = R.permute_dims(b, axes=[1, 2, 0])",
            "s0 = R.add(r, m)",
            "s = R.nn.relu(s0)",
            't = R.nn.max_pool2d(s, pool_size=[2], layout="NHWC")',
            'u = R.nn.adaptive_avg_pool2d(t, output_size=[1], layout="NHWC")',
            "gv = R.permute_dims(u, axes=[0, 3, 1, 2])",
        ),
    )


def test_images_are_joined_along_their_channels() -> None:
    changed(
        written(
            "p = R.nn.conv2d(x, w)",
            "q = R.nn.conv2d(p, v)",
            "r = R.concat((p, q), axis=1)",
            "s = R.nn.avg_pool2d(r, pool_size=[2])",
            "gv = R.nn.adaptive_avg_pool2d(s, output_size=[1])",
        ),
        written(
            'p = R.nn.conv2d(x, w, out_layout="NHWC")',
            'q = R.nn.conv2d(p, v, data_layout="NHWC")',
            "r = R.concat((p, q), axis=3)",
            's = R.nn.avg_pool2d(r, pool_size=[2], layout="NHWC")',
            't = R.nn.adaptive_avg_pool2d(s, output_size=[1], layout="NHWC")',
            "gv = R.permute_dims(t, axes=[0, 3, 1, 2])",
        ),
    )


def test_a_result_of_several_convolutions_is_moved_back() -> None:
    layers = [f"q{k + 1} = R.nn.conv2d(q{k}, v)" for k in range(3)]
    last = [f'q{k + 1} = R.nn.conv2d(q{k}, v, data_layout="NHWC")' for k in range(3)]
    changed(
        written("q0 = R.nn.conv2d(x, w)", *layers, "gv = R.nn.relu(q3)"),
        written(
            'q0 = R.nn.conv2d(x, w, out_layout="NHWC")',
            *last,
            "r = R.nn.relu(q3)",
            "gv = R.permute_dims(r, axes=[0, 3, 1, 2])",
        ),
    )


def test_operands_along_rows_and_columns_broadcast_as_before() -> None:
    before = written(
        *("p = R.nn.conv2d(x, w)", "q = R.nn.conv2d(p, v)", "r = R.nn.conv2d(q, v)"),
        *("s = R.nn.conv2d(r, v)", "one = R.mean(y, axis=[0, 1, 2, 3])"),
        *("row = R.mean(y, axis=[0, 1, 2])", "rows = R.mean(y, axis=[0, 1])"),
        "t = R.add(R.add(R.multiply(s, one), row), rows)",
        "gv = R.nn.adaptive_avg_pool2d(R.nn.relu(t), output_size=[1])",
    )

    module = channels_last(parse(before))

    assert operators(module).count("expand_dims") == 2
    same_value(parse(before), module, *inputs())


def test_more_moves_than_convolutions_gain_by() -> None:
    stays(channels_last, written("p = R.nn.conv2d(x, w)", "gv = R.add(p, y)"))
    stays(channels_last, written("p = R.nn.conv2d(x, w)", "gv = R.nn.softmax(p, axis=1)"))


def test_convolutions_that_say_their_order_keep_it() -> None:
    stays(channels_last, written('gv = R.nn.conv2d(x, w, out_layout="NHWC")'))
    stays(
        channels_last,
        written(
            "a = R.permute_dims(x, axes=[0, 2, 3, 1])",
            'gv = R.nn.conv2d(a, w, data_layout="NHWC")',
        ),
    )

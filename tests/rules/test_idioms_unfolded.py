"""Operators of the program are written out, too, so that fusion may choose."""

import pytest

from tests.rules.test_exported_norms import IMAGE, VECTOR
from tests.support.exported import check, module_of

WRITTEN_OUT = {
    "relu6": ("clip", "x(n, 4)", "gv = R.nn.relu6(x)"),
    "leakyrelu": ("where", "x(n, 4)", "gv = R.nn.leakyrelu(x, alpha=0.1)"),
    "prelu": ("where", "x(n, 3, 4), a(3)", "gv = R.nn.prelu(x, a, axis=1)"),
    "silu": ("multiply", "x(n, 4)", "gv = R.nn.silu(x)"),
    "softmax": ("divide", "x(n, 4)", "gv = R.nn.softmax(x, axis=1)"),
    "log_softmax": ("subtract", "x(n, 4)", "gv = R.nn.log_softmax(x, axis=0)"),
    "variance": ("mean", "x(n, 4)", "gv = R.variance(x, axis=[1])"),
    "std": ("sqrt", "x(n, 4)", "gv = R.std(x, axis=[0])"),
    "layer_norm": ("add", VECTOR, "gv = R.nn.layer_norm(x, g, b, axes=[-1])"),
    "layer_norm without a shift": (
        "multiply",
        VECTOR,
        "gv = R.nn.layer_norm(x, g, b, axes=[-1], center=False)",
    ),
    "layer_norm without a scale": (
        "add",
        VECTOR,
        "gv = R.nn.layer_norm(x, g, b, axes=[-1], scale=False)",
    ),
    "layer_norm without parameters": (
        "divide",
        VECTOR,
        "gv = R.nn.layer_norm(x, g, b, axes=[-1], center=False, scale=False)",
    ),
    "rms_norm": ("multiply", VECTOR, "gv = R.nn.rms_norm(x, g, axes=[-1])"),
    "instance_norm": (
        "add",
        IMAGE,
        "gv = R.nn.instance_norm(x, g, b1, channel_axis=1, axes=[2, 3])",
    ),
    "group_norm": (
        "add",
        IMAGE,
        "gv = R.nn.group_norm(x, g, b1, num_groups=4, channel_axis=1, axes=[2, 3])",
    ),
    "rotary_embedding": (
        "concat",
        "x(n, s, 8), a(s, 4), b(s, 4)",
        "gv = R.nn.rotary_embedding(x, a, b)",
    ),
    "rotary_embedding of neighbours": (
        "reshape",
        "x(n, s, 8), a(s, 4), b(s, 4)",
        "gv = R.nn.rotary_embedding(x, a, b, interleaved=True)",
    ),
    "rotary_embedding by values for each element": (
        "add",
        "x(n, s, 8), a(s, 8), b(s, 8)",
        "gv = R.nn.rotary_embedding(x, a, b)",
    ),
    "rotary_embedding of some elements": (
        "concat",
        "x(n, s, 9), a(s, 3), b(s, 3)",
        "gv = R.nn.rotary_embedding(x, a, b, interleaved=True)",
    ),
    "batch_norm": (
        "add",
        IMAGE,
        "gv = R.nn.batch_norm(x, g, b1, m, v, axis=1, training=False)[0]",
    ),
    "batch_norm without a scale": (
        "add",
        IMAGE,
        "gv = R.nn.batch_norm(x, g, b1, m, v, axis=1, scale=False, training=False)[0]",
    ),
}


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_an_operator_is_written_out(name: str) -> None:
    operator, params, body = WRITTEN_OUT[name]

    check(operator, module_of(params, body))

"""Rotary position embedding as exporters write it becomes the one operator, whole results.

Batch and sequence are symbolic.  What is made is compared with the program that is expected, and
computes the same.
"""

import math
from collections.abc import Mapping

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.kernel import Kernel
from relax_egraph.ir.structural import assert_structural_equal
from tests.support.exported import inputs_of, module_of, operators_of

END = 9223372036854775807
"""Where exporters end a slice that goes to the end."""

HEADS = "x(b, 4, s, 8), c0(b, s, 8), s0(b, s, 8)"
UNSQUEEZED = """c = R.expand_dims(c0, axis=[1])
    s1 = R.expand_dims(s0, axis=[1])
    """
CUT = """x1 = R.strided_slice(x, axes=[3], begin=[0], end=[4])
    x2 = R.strided_slice(x, axes=[3], begin=[4], end=[END])
    """
TURNED = """r = R.concat((R.negative(x2), x1), axis=-1)
    gv = R.add(R.multiply(x, c), R.multiply(r, s1))"""
ONE = "gv = R.nn.rotary_embedding(x, c, s1)"

ROWS = "x(b, s, 4, 8), c0(s, 4), s0(s, 4)"
RESHAPED = """c = R.reshape(c0, (1, s, 1, 4))
    s1 = R.reshape(s0, (1, s, 1, 4))
    """
SECOND = """x1 = R.strided_slice(x, axes=[3], begin=[0], end=[END], strides=[2])
    x2 = R.strided_slice(x, axes=[3], begin=[1], end=[END], strides=[2])
    """
ANGLES = """a = R.cos(f)
    c = R.reshape(a, SHAPE)
    b1 = R.sin(f)
    s1 = R.reshape(b1, SHAPE)
    """
PAIRS = "gv = R.nn.rotary_embedding(x, c, s1, interleaved=True)"

FORMS = {
    "LLaMA": (HEADS, UNSQUEEZED + CUT + TURNED, UNSQUEEZED + ONE),
    "LLaMA, by split": (
        HEADS,
        UNSQUEEZED
        + """parts = R.split(x, 2, axis=-1)
        r = R.concat((R.negative(parts[1]), parts[0]), axis=-1)
        gv = R.add(R.multiply(x, c), R.multiply(r, s1))""",
        UNSQUEEZED + ONE,
    ),
    "LLaMA, to ONNX": (
        HEADS,
        UNSQUEEZED
        + CUT
        + """r = R.concat((R.multiply(x2, c(-1.0)), x1), axis=3)
        gv = R.add(R.multiply(s1, r), R.multiply(c, x))""",
        UNSQUEEZED + ONE,
    ),
    "LLaMA, with the angles": (
        "x(b, 4, s, 8), f(b, s, 4)",
        """e = R.concat((f, f), axis=-1)
        c = R.expand_dims(R.multiply(R.cos(e), c(1.0)), axis=[1])
        s1 = R.expand_dims(R.multiply(R.sin(e), c(1.0)), axis=[1])
        """
        + CUT
        + TURNED,
        ANGLES.replace("SHAPE", "(b, 1, s, 4)") + ONE,
    ),
    "LLaMA, from tables": (
        "x(b, 4, s, 8), c1(32, 8), s2(32, 8), i(b, s):int64",
        """c = R.expand_dims(R.take(c1, i, axis=0), axis=[1])
        s1 = R.expand_dims(R.take(s2, i, axis=0), axis=[1])
        """
        + CUT
        + TURNED,
        """t1 = R.take(c1, i, axis=0)
        c = R.expand_dims(t1, axis=[1])
        t2 = R.take(s2, i, axis=0)
        s1 = R.expand_dims(t2, axis=[1])
        """
        + ONE,
    ),
    "GPT-NeoX, a part of each head": (
        "z(b, 4, s, 12), f(b, s, 4)",
        """e = R.concat((f, f), axis=-1)
        c = R.expand_dims(R.cos(e), axis=[1])
        s1 = R.expand_dims(R.sin(e), axis=[1])
        x = R.strided_slice(z, axes=[3], begin=[0], end=[8])
        rest = R.strided_slice(z, axes=[3], begin=[8], end=[END])
        """
        + CUT
        + TURNED.replace("gv", "w")
        + """
        gv = R.concat((w, rest), axis=-1)""",
        ANGLES.replace("SHAPE", "(b, 1, s, 4)") + ONE.replace("(x", "(z"),
    ),
    "by halves": (
        ROWS,
        RESHAPED
        + CUT
        + """u = R.subtract(R.multiply(x1, c), R.multiply(x2, s1))
        v = R.add(R.multiply(x2, c), R.multiply(x1, s1))
        gv = R.concat((u, v), axis=-1)""",
        RESHAPED + ONE,
    ),
    "GPT-J": (
        "x(b, s, 4, 8), f(s, 4)",
        """c = R.reshape(R.repeat(R.cos(f), repeats=2, axis=1), (1, s, 1, 8))
        s1 = R.reshape(R.repeat(R.sin(f), repeats=2, axis=1), (1, s, 1, 8))
        """
        + SECOND
        + """r = R.reshape(R.stack((R.negative(x2), x1), axis=-1), (b, s, 4, 8))
        gv = R.add(R.multiply(x, c), R.multiply(r, s1))""",
        ANGLES.replace("SHAPE", "(1, s, 1, 4)") + PAIRS,
    ),
    "neighbours, torch.export": (
        ROWS,
        RESHAPED
        + """y = R.reshape(x, (b, s, 4, 4, 2))
        x1 = R.squeeze(R.strided_slice(y, axes=[4], begin=[0], end=[1]), axis=[4])
        x2 = R.squeeze(R.strided_slice(y, axes=[4], begin=[1], end=[2]), axis=[4])
        u = R.subtract(R.multiply(x1, c), R.multiply(x2, s1))
        v = R.add(R.multiply(x1, s1), R.multiply(x2, c))
        gv = R.reshape(R.stack((u, v), axis=-1), (b, s, 4, 8))""",
        RESHAPED + PAIRS,
    ),
    "neighbours, to ONNX": (
        ROWS,
        RESHAPED
        + SECOND
        + """u = R.subtract(R.multiply(c, x1), R.multiply(s1, x2))
        v = R.add(R.multiply(s1, x1), R.multiply(c, x2))
        w = R.concat((R.expand_dims(u, axis=[4]), R.expand_dims(v, axis=[4])), axis=-1)
        gv = R.reshape(w, (b, s, 4, 8))""",
        RESHAPED + PAIRS,
    ),
    "neighbours on an axis that stays": (
        ROWS,
        """c = R.reshape(c0, (1, s, 1, 4, 1))
        s1 = R.reshape(s0, (1, s, 1, 4, 1))
        y = R.split(R.reshape(x, (b, s, 4, 4, 2)), 2, axis=-1)
        u = R.subtract(R.multiply(y[0], c), R.multiply(y[1], s1))
        v = R.add(R.multiply(y[1], c), R.multiply(y[0], s1))
        gv = R.reshape(R.concat((u, v), axis=-1), (b, s, 4, 8))""",
        RESHAPED + PAIRS,
    ),
    "attention of LLaMA": (
        "x(b, s, 32), q0(32, 32), k0(32, 16), v0(32, 16), f(b, s, 4), m(b, 1, s, s)",
        """e = R.concat((f, f), axis=-1)
        c = R.expand_dims(R.cos(e), axis=[1])
        s1 = R.expand_dims(R.sin(e), axis=[1])
        q1 = R.permute_dims(R.reshape(R.matmul(x, q0), (b, s, 4, 8)), axes=[0, 2, 1, 3])
        k1 = R.permute_dims(R.reshape(R.matmul(x, k0), (b, s, 2, 8)), axes=[0, 2, 1, 3])
        v1 = R.permute_dims(R.reshape(R.matmul(x, v0), (b, s, 2, 8)), axes=[0, 2, 1, 3])
        q2 = R.split(q1, 2, axis=-1)
        q3 = R.concat((R.negative(q2[1]), q2[0]), axis=-1)
        q = R.add(R.multiply(q1, c), R.multiply(q3, s1))
        k2 = R.split(k1, 2, axis=-1)
        k3 = R.concat((R.negative(k2[1]), k2[0]), axis=-1)
        k4 = R.expand_dims(R.add(R.multiply(k1, c), R.multiply(k3, s1)), axis=[2])
        k = R.reshape(R.broadcast_to(k4, (b, 2, 2, s, 8)), (b, 4, s, 8))
        v2 = R.broadcast_to(R.expand_dims(v1, axis=[2]), (b, 2, 2, s, 8))
        v = R.reshape(v2, (b, 4, s, 8))
        w = R.divide(R.matmul(q, R.permute_dims(k, axes=[0, 1, 3, 2])), c(4.0))
        p = R.nn.softmax(R.add(w, m), axis=-1)
        o = R.permute_dims(R.matmul(p, v), axes=[0, 2, 1, 3])
        gv = R.reshape(o, (b, s, 32))""",
        """q1 = R.matmul(x, q0)
        q2 = R.reshape(q1, (b, s, 4, 8))
        c1 = R.cos(f)
        c = R.reshape(c1, (b, s, 1, 4))
        s2 = R.sin(f)
        s1 = R.reshape(s2, (b, s, 1, 4))
        q = R.nn.rotary_embedding(q2, c, s1)
        k1 = R.matmul(x, k0)
        k2 = R.reshape(k1, (b, s, 2, 8))
        k = R.nn.rotary_embedding(k2, c, s1)
        v1 = R.matmul(x, v0)
        v = R.reshape(v1, (b, s, 2, 8))
        o = R.nn.attention(q, k, v, m, scale=0.25)
        gv = R.reshape(o, (b, s, 32))""",
    ),
}


def program(params: str, body: str) -> rx.IRModule:
    return module_of(params, body.replace("END", str(END)))


def of_one_result(kernel: Kernel, sizes: Mapping[str, int], seconds: float) -> float:
    """Programs are compared operator by operator: cos and sin of one angle are no kernel."""
    return seconds if len(kernel.outputs) == 1 else math.inf


@pytest.mark.parametrize("name", FORMS)
def test_rotary_embedding_is_recognised(name: str) -> None:
    params, body, expected = FORMS[name]
    module = program(params, body)

    best = rx.optimize(module, prices=rx.Prices(kernel=of_one_result))

    assert_structural_equal(best, program(params, expected))
    inputs = inputs_of(module)
    want, have = (np.asarray(evaluate(m, "main", *inputs)) for m in (module, best))
    np.testing.assert_allclose(have, want, rtol=2e-4, atol=1e-5)


NONE = {
    "turned back": """r = R.concat((x2, R.negative(x1)), axis=-1)
        gv = R.add(R.multiply(x, c), R.multiply(r, s1))""",
    "the other halves": """r = R.concat((R.negative(x1), x2), axis=-1)
        gv = R.add(R.multiply(x, c), R.multiply(r, s1))""",
    "no halves": """y1 = R.strided_slice(x, axes=[3], begin=[0], end=[3])
        y2 = R.strided_slice(x, axes=[3], begin=[3], end=[8])
        r = R.concat((R.negative(y2), y1), axis=-1)
        gv = R.add(R.multiply(x, c), R.multiply(r, s1))""",
    "of another tensor": """r = R.concat((R.negative(x2), x1), axis=-1)
        gv = R.add(R.multiply(R.exp(x), c), R.multiply(r, s1))""",
}


@pytest.mark.parametrize("name", NONE)
def test_what_is_like_a_rotary_embedding_is_none(name: str) -> None:
    module = program(HEADS, UNSQUEEZED + CUT + NONE[name])

    assert "nn.rotary_embedding" not in operators_of(module, fast_math=True)

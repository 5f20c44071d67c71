"""Softmax, statistics and normalisation as exporters write them are recognised.

The operator is in the class of the result; whether it is then chosen is a matter of prices.  That
what is chosen computes the same is checked, too.
"""

import pytest

from tests.support.exported import check, module_of

VECTOR = "x(n, 5, 16), g(16), b(16)"
CENTRED = """m = R.mean(x, axis=[-1], keepdims=True)
    y = R.subtract(x, m)
    """
IMAGE = "x(b, 8, h, 6), g(8), b1(8), m(8), v(8)"
PER_CHANNEL = """g1 = R.reshape(g, (8, 1, 1))
    b2 = R.reshape(b1, (8, 1, 1))
    """

NORMS = {
    "softmax, JAX": (
        "nn.softmax",
        "x(n, 4)",
        """e = R.exp(R.subtract(x, R.expand_dims(R.max(x, axis=[1]), axis=[1])))
        gv = R.divide(e, R.expand_dims(R.sum(e, axis=[1]), axis=[1]))""",
    ),
    "softmax, TF": (
        "nn.softmax",
        "x(n, 4)",
        """e = R.exp(R.subtract(x, R.max(x, axis=[-1], keepdims=True)))
        gv = R.multiply(e, R.divide(c(1.0), R.sum(e, axis=[-1], keepdims=True)))""",
    ),
    "log_softmax, torch.export": (
        "nn.log_softmax",
        "x(n, 4)",
        """y = R.subtract(x, R.max(x, axis=[1], keepdims=True))
        gv = R.subtract(y, R.log(R.sum(R.exp(y), axis=[1], keepdims=True)))""",
    ),
    "log_softmax by logsumexp": (
        "nn.log_softmax",
        "x(n, 4)",
        """m = R.max(x, axis=[1], keepdims=True)
        s = R.log(R.sum(R.exp(R.subtract(x, m)), axis=[1], keepdims=True))
        gv = R.subtract(x, R.add(m, s))""",
    ),
    "mean, JAX": ("mean", "x(n, 8, 4)", "gv = R.divide(R.sum(x, axis=[1, 2]), c(32.0))"),
    "mean by a factor": (
        "mean",
        "x(n, 3)",
        "gv = R.multiply(R.sum(x, axis=[1], keepdims=True), c(0.33333334))",
    ),
    "variance, JAX": (
        "variance",
        "x(n, 8)",
        """m = R.divide(R.sum(x, axis=[1], keepdims=True), c(8.0))
        y = R.subtract(x, m)
        gv = R.divide(R.sum(R.multiply(y, y), axis=[1]), c(8.0))""",
    ),
    "standard deviation": (
        "std",
        "x(n, 8)",
        """y = R.subtract(x, R.mean(x, axis=[1], keepdims=True))
        gv = R.sqrt(R.mean(R.square(y), axis=[1]))""",
    ),
    "layer_norm, PyTorch to ONNX": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.power(y, c(2.0)), axis=[-1], keepdims=True)
        n = R.divide(y, R.sqrt(R.add(v, c(1e-5))))
        gv = R.add(R.multiply(n, g), b)""",
    ),
    "layer_norm, torch.export": (
        "nn.layer_norm",
        VECTOR,
        """v = R.variance(x, axis=[-1], keepdims=True)
        r = R.rsqrt(R.add(v, c(1e-5)))
        y = R.subtract(x, R.mean(x, axis=[-1], keepdims=True))
        gv = R.add(R.multiply(R.multiply(y, r), g), b)""",
    ),
    "layer_norm, JAX": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """s = R.divide(R.sum(R.multiply(y, y), axis=[-1]), c(16.0))
        r = R.rsqrt(R.add(R.expand_dims(s, axis=[2]), c(1e-6)))
        gv = R.add(b, R.multiply(y, R.multiply(r, R.reshape(g, (1, 1, 16)))))""",
    ),
    "layer_norm, TF": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.square(y), axis=[-1], keepdims=True)
        w = R.multiply(R.rsqrt(R.add(v, c(1e-3))), g)
        gv = R.add(R.multiply(x, w), R.subtract(b, R.multiply(m, w)))""",
    ),
    "layer_norm with the reciprocal of the root": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.multiply(y, y), axis=[-1], keepdims=True)
        r = R.divide(c(1.0), R.sqrt(R.add(c(1e-5), v)))
        gv = R.add(R.multiply(g, R.multiply(r, y)), b)""",
    ),
    "layer_norm by powers": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.power(y, c(2.0)), axis=[-1], keepdims=True)
        gv = R.add(R.multiply(R.divide(y, R.power(R.add(v, c(1e-5)), c(0.5))), g), b)""",
    ),
    "layer_norm with a root that is reshaped": (
        "nn.layer_norm",
        VECTOR,
        """v = R.variance(x, axis=[-1])
        r = R.expand_dims(R.sqrt(R.add(v, c(1e-5))), axis=[2])
        y = R.subtract(x, R.mean(x, axis=[-1], keepdims=True))
        gv = R.add(R.multiply(R.divide(y, r), g), b)""",
    ),
    "layer_norm without a shift": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.square(y), axis=[-1], keepdims=True)
        gv = R.multiply(R.divide(y, R.sqrt(R.add(v, c(1e-5)))), g)""",
    ),
    "layer_norm without a scale": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.square(y), axis=[-1], keepdims=True)
        gv = R.add(R.divide(y, R.sqrt(R.add(v, c(1e-5)))), b)""",
    ),
    "layer_norm without parameters": (
        "nn.layer_norm",
        VECTOR,
        CENTRED
        + """v = R.mean(R.square(y), axis=[-1], keepdims=True)
        gv = R.divide(y, R.sqrt(R.add(v, c(1e-5))))""",
    ),
    "layer_norm over two axes": (
        "nn.layer_norm",
        "x(n, h, 6), g(h, 6), b(h, 6)",
        """y = R.subtract(x, R.mean(x, axis=[1, 2], keepdims=True))
        v = R.mean(R.multiply(y, y), axis=[1, 2], keepdims=True)
        gv = R.add(R.multiply(R.divide(y, R.sqrt(R.add(v, c(1e-5)))), g), b)""",
    ),
    "layer_norm over channels": (
        "nn.layer_norm",
        IMAGE,
        PER_CHANNEL
        + """y = R.subtract(x, R.mean(x, axis=[1], keepdims=True))
        s = R.sqrt(R.add(R.mean(R.square(y), axis=[1], keepdims=True), c(1e-6)))
        gv = R.add(R.multiply(R.divide(y, s), g1), b2)""",
    ),
    "rms_norm, LLaMA": (
        "nn.rms_norm",
        "x(n, s, 16), g(16)",
        """v = R.mean(R.power(x, c(2.0)), axis=[-1], keepdims=True)
        gv = R.multiply(g, R.multiply(x, R.rsqrt(R.add(v, c(1e-6)))))""",
    ),
    "rms_norm, T5 to ONNX": (
        "nn.rms_norm",
        "x(n, s, 16), g(16)",
        """v = R.mean(R.multiply(x, x), axis=[2], keepdims=True)
        gv = R.multiply(R.divide(x, R.sqrt(R.add(v, c(1e-6)))), g)""",
    ),
    "rms_norm, Gemma in JAX": (
        "nn.rms_norm",
        "x(n, s, 16), g(16)",
        """v = R.divide(R.sum(R.square(x), axis=[2], keepdims=True), c(16.0))
        r = R.multiply(R.rsqrt(R.add(v, c(1e-6))), R.add(g, c(1.0)))
        gv = R.multiply(x, r)""",
    ),
    "instance_norm": (
        "nn.instance_norm",
        IMAGE,
        PER_CHANNEL
        + """y = R.subtract(x, R.mean(x, axis=[2, 3], keepdims=True))
        r = R.rsqrt(R.add(R.variance(x, axis=[2, 3], keepdims=True), c(1e-5)))
        gv = R.add(R.multiply(R.multiply(y, r), g1), b2)""",
    ),
    "group_norm, torch.export": (
        "nn.group_norm",
        IMAGE,
        PER_CHANNEL
        + """z = R.reshape(x, (b, 2, 4, h * 6))
        y = R.subtract(z, R.mean(z, axis=[2, 3], keepdims=True))
        r = R.rsqrt(R.add(R.variance(z, axis=[2, 3], keepdims=True), c(1e-5)))
        n = R.reshape(R.multiply(y, r), (b, 8, h, 6))
        gv = R.add(R.multiply(n, g1), b2)""",
    ),
    "group_norm, PyTorch to ONNX": (
        "nn.group_norm",
        IMAGE,
        PER_CHANNEL
        + """ones = R.ones((4,), "float32")
        zeros = R.zeros((4,), "float32")
        z = R.reshape(x, (b, 4, h * 12))
        y = R.nn.instance_norm(z, ones, zeros, channel_axis=1, axes=[2], epsilon=1e-5)
        n = R.reshape(y, (b, 8, h, 6))
        gv = R.add(R.multiply(n, g1), b2)""",
    ),
    "batch_norm": (
        "tuple_get",
        IMAGE,
        PER_CHANNEL
        + """m1 = R.reshape(m, (8, 1, 1))
        s = R.reshape(R.sqrt(R.add(v, c(1e-5))), (8, 1, 1))
        gv = R.add(R.multiply(R.divide(R.subtract(x, m1), s), g1), b2)""",
    ),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_norm_is_recognised(name: str) -> None:
    operator, params, body = NORMS[name]

    check(operator, module_of(params, body))


def test_the_fast_variance_of_flax_makes_a_layer_norm() -> None:
    body = """m = R.mean(x, axis=[-1], keepdims=True)
    e = R.mean(R.square(x), axis=[-1], keepdims=True)
    v = R.maximum(c(0.0), R.subtract(e, R.square(m)))
    w = R.multiply(R.rsqrt(R.add(v, c(1e-6))), g)
    gv = R.add(R.multiply(R.subtract(x, m), w), b)"""

    check("nn.layer_norm", module_of(VECTOR, body), fast_math=True)


@pytest.mark.parametrize("extents", ["0, 3, 1, 2", "1, 1, 1, 1", "2, 1, 1, 2", "2, 3, 0, 2"])
def test_what_is_several_norms_at_once_keeps_its_shape(extents: str) -> None:
    body = """y = R.subtract(x, R.mean(x, axis=[2, 3], keepdims=True))
    v = R.mean(R.square(y), axis=[2, 3], keepdims=True)
    gv = R.divide(y, R.sqrt(R.add(v, c(1e-5))))"""

    check("divide", module_of(f"x({extents})", body))

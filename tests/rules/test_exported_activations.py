"""Activations as exporters write them are recognised.

The operator is in the class of the result; whether it is then chosen is a matter of prices.  That
what is chosen computes the same is checked, too.
"""

import pytest

from tests.support.exported import check, module_of, roots_of

ACTIVATIONS = {
    "relu, JAX": ("nn.relu", "gv = R.maximum(x, c(0.0))"),
    "relu, clip of ONNX": ("nn.relu", 'gv = R.clip(x, 0.0, float("inf"))'),
    "relu, by a choice": ("nn.relu", "gv = R.where(R.less(x, c(0.0)), c(0.0), x)"),
    "relu6, TF": ("nn.relu6", "gv = R.minimum(R.nn.relu(x), c(6.0))"),
    "relu6, ONNX": ("nn.relu6", "gv = R.clip(x, 0.0, 6.0)"),
    "leaky relu, JAX": (
        "nn.leakyrelu",
        "gv = R.where(R.greater_equal(x, c(0.0)), x, R.multiply(c(0.1), x))",
    ),
    "leaky relu, TF": ("nn.leakyrelu", "gv = R.maximum(R.multiply(x, c(0.2)), x)"),
    "leaky relu, Keras": (
        "nn.leakyrelu",
        "gv = R.subtract(R.nn.relu(x), R.multiply(c(0.3), R.nn.relu(R.negative(x))))",
    ),
    "selu, torch.export": (
        "nn.selu",
        """tail = R.multiply(R.subtract(R.exp(x), c(1.0)), c(1.7580993))
        gv = R.where(R.greater(x, c(0.0)), R.multiply(x, c(1.050701)), tail)""",
    ),
    "selu, JAX": (
        "nn.selu",
        """tail = R.multiply(c(1.6732632), R.subtract(R.exp(x), c(1.0)))
        gv = R.multiply(c(1.050701), R.where(R.greater(x, c(0.0)), x, tail))""",
    ),
    "sigmoid": ("sigmoid", "gv = R.divide(c(1.0), R.add(c(1.0), R.exp(R.negative(x))))"),
    "silu, ONNX": ("nn.silu", "gv = R.multiply(x, R.sigmoid(x))"),
    "silu, torch.export": (
        "nn.silu",
        "gv = R.divide(x, R.add(R.exp(R.negative(x)), c(1.0)))",
    ),
    "silu, JAX": (
        "nn.silu",
        "gv = R.multiply(x, R.divide(c(1.0), R.add(c(1.0), R.exp(R.negative(x)))))",
    ),
    "softplus, JAX": ("nn.softplus", "gv = R.log_add_exp(x, c(0.0))"),
    "gelu, PyTorch to ONNX": (
        "nn.gelu",
        """lv = R.add(R.erf(R.divide(x, c(1.4142135381698608))), c(1.0))
        gv = R.multiply(R.multiply(x, lv), c(0.5))""",
    ),
    "gelu, torch.export": (
        "nn.gelu",
        """lv = R.erf(R.multiply(x, c(0.7071067811865476)))
        gv = R.multiply(R.multiply(x, c(0.5)), R.add(lv, c(1.0)))""",
    ),
    "gelu, JAX": (
        "nn.gelu",
        """lv = R.add(c(1.0), R.erf(R.divide(x, c(1.4142135))))
        gv = R.divide(R.multiply(x, lv), c(2.0))""",
    ),
    "gelu by tanh, torch.export": (
        "nn.gelu_tanh",
        """cube = R.multiply(R.multiply(x, x), x)
        inner = R.multiply(R.add(x, R.multiply(cube, c(0.044715))), c(0.7978845608028654))
        gv = R.multiply(R.multiply(x, c(0.5)), R.add(R.tanh(inner), c(1.0)))""",
    ),
    "gelu by tanh, TF": (
        "nn.gelu_tanh",
        """term = R.multiply(c(0.044715), R.power(x, c(3.0)))
        lv = R.add(c(1.0), R.tanh(R.multiply(c(0.7978845608), R.add(x, term))))
        gv = R.multiply(R.multiply(c(0.5), x), lv)""",
    ),
    "gelu by tanh, JAX": (
        "nn.gelu_tanh",
        """term = R.multiply(c(0.044715), R.power(x, c(3.0)))
        cdf = R.add(c(1.0), R.tanh(R.multiply(c(0.7978846), R.add(x, term))))
        gv = R.multiply(x, R.multiply(c(0.5), cdf))""",
    ),
    "gelu by tanh, gelu_fast": (
        "nn.gelu_tanh",
        """lv = R.add(c(1.0), R.multiply(R.multiply(c(0.044715), x), x))
        lv1 = R.tanh(R.multiply(R.multiply(x, c(0.7978845608)), lv))
        gv = R.multiply(R.multiply(c(0.5), x), R.add(c(1.0), lv1))""",
    ),
    "gelu by sigmoid": (
        "nn.gelu_tanh",
        """lv = R.add(x, R.multiply(c(0.044715), R.multiply(x, R.multiply(x, x))))
        gv = R.multiply(x, R.sigmoid(R.multiply(c(1.5957691216), lv)))""",
    ),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_recognised(name: str) -> None:
    operator, body = ACTIVATIONS[name]

    check(operator, module_of("x(n, 4)", body))


FAST = {
    "sigmoid": ("sigmoid", "gv = R.divide(R.exp(x), R.add(c(1.0), R.exp(x)))"),
    "softplus": ("nn.softplus", "gv = R.log(R.add(c(1.0), R.exp(x)))"),
    "softplus, stable": (
        "nn.softplus",
        "gv = R.add(R.nn.relu(x), R.log(R.add(c(1.0), R.exp(R.negative(R.abs(x))))))",
    ),
    "gelu to seven digits": (
        "nn.gelu",
        """lv = R.add(R.erf(R.multiply(x, c(0.707107))), c(1.0))
        gv = R.multiply(R.multiply(x, lv), c(0.5))""",
    ),
    "softmax": (
        "nn.softmax",
        "gv = R.divide(R.exp(x), R.sum(R.exp(x), axis=[1], keepdims=True))",
    ),
    "log_softmax": ("nn.log_softmax", "gv = R.log(R.nn.softmax(x, axis=-1))"),
    "variance": (
        "variance",
        """m = R.mean(x, axis=[1], keepdims=True)
        gv = R.subtract(R.mean(R.multiply(x, x), axis=[1], keepdims=True), R.multiply(m, m))""",
    ),
}


@pytest.mark.parametrize("name", FAST)
def test_what_holds_but_for_rounding_constants_or_range_is_asked_for(name: str) -> None:
    operator, body = FAST[name]
    module = module_of("x(n, 4)", body)

    check(operator, module, fast_math=True)
    with pytest.raises(AssertionError, match="is not among"):
        check(operator, module)


def test_a_number_to_three_digits_makes_no_gelu() -> None:
    body = """lv = R.add(R.erf(R.multiply(x, c(0.707))), c(1.0))
    gv = R.multiply(R.multiply(x, lv), c(0.5))"""

    with pytest.raises(AssertionError, match=r"nn\.gelu is not among"):
        check("nn.gelu", module_of("x(n, 4)", body), fast_math=True)


SPELLINGS = {
    "hard sigmoid": (
        "x(n, 4)",
        """a = R.divide(R.nn.relu6(R.add(x, c(3.0))), c(6.0))
        b = R.divide(R.clip(R.add(x, c(3.0)), 0.0, 6.0), c(6.0))
        d = R.multiply(R.minimum(R.nn.relu(R.add(c(3.0), x)), c(6.0)), c(0.16666667))
        e = R.clip(R.add(R.multiply(x, c(0.16666667)), c(0.5)), 0.0, 1.0)""",
    ),
    "hardswish": (
        "x(n, 4)",
        """a = R.multiply(x, R.divide(R.nn.relu6(R.add(x, c(3.0))), c(6.0)))
        b = R.divide(R.multiply(x, R.clip(R.add(x, c(3.0)), 0.0, 6.0)), c(6.0))
        d = R.multiply(R.multiply(R.nn.relu6(R.add(x, c(3.0))), c(0.16666667)), x)
        e = R.multiply(x, R.clip(R.add(R.divide(x, c(6.0)), c(0.5)), 0.0, 1.0))""",
    ),
    "SwiGLU": (
        "x(n, 8), w(8, 12)",
        """g = R.split(R.matmul(x, w), 2, axis=-1)
        a = R.multiply(R.nn.silu(g[0]), g[1])
        b = R.multiply(R.multiply(g[0], R.sigmoid(g[0])), g[1])
        d = R.multiply(g[1], R.divide(g[0], R.add(R.exp(R.negative(g[0])), c(1.0))))
        h = R.matmul(x, w)
        h0 = R.strided_slice(h, axes=[1], begin=[0], end=[6])
        h1 = R.strided_slice(h, axes=[-1], begin=[6], end=[9223372036854775807])
        e0 = R.divide(c(1.0), R.add(c(1.0), R.exp(R.negative(h0))))
        e = R.multiply(R.multiply(h0, e0), h1)""",
    ),
    "GeGLU": (
        "g(n, 6), u(n, 6)",
        """a = R.multiply(R.nn.gelu(g), u)
        b0 = R.add(R.erf(R.divide(g, c(1.4142135))), c(1.0))
        b = R.multiply(R.multiply(R.multiply(g, c(0.5)), b0), u)
        d = R.multiply(u, R.multiply(R.multiply(g, b0), c(0.5)))
        e0 = R.add(c(1.0), R.erf(R.multiply(g, c(0.70710678))))
        e = R.multiply(R.multiply(g, R.multiply(c(0.5), e0)), u)""",
    ),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_all_spellings_are_one_value(name: str) -> None:
    roots = roots_of(module_of(*SPELLINGS[name], outputs=("a", "b", "d", "e")))

    assert len(roots) == 4
    assert len(set(roots)) == 1

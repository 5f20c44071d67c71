"""Attention as exporters write it is recognised.

The operator is in the class of the result; whether it is then chosen is a matter of prices.  That
what is chosen computes the same is checked, too.
"""

import pytest

from bench.transformer import Sizes, encoder
from relax_egraph.egraph.encoding.encode import encode
from relax_egraph.egraph.engine import saturate
from relax_egraph.ir.expr import DataflowBlock, DataflowVar, Function
from tests.support.exported import check, module_of, operators_of

HEADS = "x(b, s, 4, 8), y(b, t, 4, 8), z(b, t, 4, 6)"
SPLIT = """q = R.permute_dims(x, axes=[0, 2, 1, 3])
    k = R.permute_dims(y, axes=[0, 2, 3, 1])
    v = R.permute_dims(z, axes=[0, 2, 1, 3])
    """
JOIN = """
    p = R.nn.softmax(w, axis=-1)
    gv = R.permute_dims(R.matmul(p, v), axes=[0, 2, 1, 3])"""
INFINITY = 'R.const(float("inf"), "float32")'

ATTENTION = {
    "divided by √d": (
        HEADS,
        SPLIT + "w = R.divide(R.matmul(q, k), c(2.8284270763397217))" + JOIN,
    ),
    "times 1/√d": (HEADS, SPLIT + "w = R.multiply(R.matmul(q, k), c(0.35355338))" + JOIN),
    "without a scale": (HEADS, SPLIT + "w = R.matmul(q, k)" + JOIN),
    "query scaled": (HEADS, SPLIT + "w = R.matmul(R.multiply(q, c(0.35355338)), k)" + JOIN),
    "query and key scaled, torch.onnx": (
        HEADS,
        SPLIT + "w = R.matmul(R.multiply(q, c(0.5946035)), R.multiply(k, c(0.5946035)))" + JOIN,
    ),
    "key transposed in two steps": (
        HEADS,
        """q = R.permute_dims(x, axes=[0, 2, 1, 3])
        k0 = R.permute_dims(y, axes=[0, 2, 1, 3])
        v = R.permute_dims(z, axes=[0, 2, 1, 3])
        k = R.permute_dims(R.multiply(k0, c(0.5)), axes=[0, 1, 3, 2])
        w = R.matmul(R.multiply(q, c(0.5)), k)"""
        + JOIN,
    ),
    "softmax written out": (
        HEADS,
        SPLIT
        + """u = R.divide(R.matmul(q, k), c(2.0))
        e = R.exp(R.subtract(u, R.max(u, axis=[-1], keepdims=True)))
        p = R.divide(e, R.sum(e, axis=[-1], keepdims=True))
        gv = R.permute_dims(R.matmul(p, v), axes=[0, 2, 1, 3])""",
    ),
    "mask of keys": (
        HEADS + ", m(b, 1, 1, t)",
        SPLIT + "w = R.add(R.multiply(R.matmul(q, k), c(0.5)), m)" + JOIN,
    ),
    "mask of queries and keys": (
        HEADS + ", m(s, t)",
        SPLIT + "w = R.add(m, R.divide(R.matmul(q, k), c(2.0)))" + JOIN,
    ),
    "mask of heads": (
        HEADS + ", m(4, s, t)",
        SPLIT + "w = R.add(R.matmul(q, k), m)" + JOIN,
    ),
    "mask of the shape of the scores": (
        HEADS + ", m(b, 4, s, t)",
        SPLIT + "w = R.add(R.matmul(q, k), m)" + JOIN,
    ),
    "causal, by tril": (
        HEADS,
        SPLIT
        + """seen = R.tril(R.ones((s, t), "bool"))
        low = R.negative(INFINITY)
        w = R.where(seen, R.divide(R.matmul(q, k), c(2.0)), low)"""
        + JOIN,
    ),
    "causal, by triu and masked_fill": (
        HEADS,
        SPLIT
        + """hidden = R.astype(R.triu(R.ones((s, t), "float32"), R.prim_value(1)), "bool")
        w = R.masked_fill(R.matmul(q, k), hidden, float("-inf"))"""
        + JOIN,
    ),
    "causal, by positions": (
        HEADS,
        SPLIT
        + """i = R.expand_dims(R.arange(0, s, 1, dtype="int64"), axis=[1])
        seen = R.greater_equal(i, R.arange(0, t, 1, dtype="int64"))
        w = R.where(seen, R.matmul(q, k), R.negative(INFINITY))"""
        + JOIN,
    ),
    "causal, and a mask of keys": (
        HEADS + ", m(b, 1, 1, t)",
        SPLIT
        + """seen = R.tril(R.ones((1, 1, s, t), "bool"))
        u = R.where(seen, R.divide(R.matmul(q, k), c(2.0)), R.negative(INFINITY))
        w = R.add(u, m)"""
        + JOIN,
    ),
    "grouped heads, expanded": (
        "x(b, s, 4, 8), y(b, t, 2, 8), z(b, t, 2, 6)",
        """q = R.permute_dims(x, axes=[0, 2, 1, 3])
        y1 = R.expand_dims(R.permute_dims(y, axes=[0, 2, 1, 3]), axis=[2])
        z1 = R.expand_dims(R.permute_dims(z, axes=[0, 2, 1, 3]), axis=[2])
        y2 = R.reshape(R.broadcast_to(y1, (b, 2, 2, t, 8)), (b, 4, t, 8))
        v = R.reshape(R.broadcast_to(z1, (b, 2, 2, t, 6)), (b, 4, t, 6))
        w = R.multiply(R.matmul(q, R.permute_dims(y2, axes=[0, 1, 3, 2])), c(0.5))"""
        + JOIN,
    ),
    "grouped heads, repeated": (
        "x(b, s, 4, 8), y(b, t, 2, 8), z(b, t, 1, 6)",
        """q = R.permute_dims(x, axes=[0, 2, 1, 3])
        k = R.permute_dims(R.repeat(y, repeats=2, axis=2), axes=[0, 2, 3, 1])
        v = R.repeat(R.permute_dims(z, axes=[0, 2, 1, 3]), repeats=4, axis=1)
        w = R.matmul(q, k)"""
        + JOIN,
    ),
    "one head of keys and values": (
        "x(b, s, 4, 8), y(b, t, 1, 8), z(b, t, 1, 6)",
        SPLIT + "w = R.divide(R.matmul(q, k), c(2.0))" + JOIN,
    ),
}


@pytest.mark.parametrize("name", ATTENTION)
def test_attention_is_recognised(name: str) -> None:
    params, body = ATTENTION[name]

    check("nn.attention", module_of(params, body.replace("INFINITY", INFINITY)))


INSIDE = {
    "heads in the batch": (
        "q(h, s, 8), k(h, t, 8), v(h, t, 6), m(s, t)",
        """u = R.matmul(q, R.permute_dims(k, axes=[0, 2, 1]))
        w = R.add(R.multiply(u, c(0.5)), m)
        gv = R.matmul(R.nn.softmax(w, axis=2), v)""",
    ),
    "heads in the batch, a mask each": (
        "q(h, s, 8), k(h, t, 8), v(h, t, 6), m(h, 1, t)",
        """w = R.add(R.matmul(q, R.permute_dims(k, axes=[0, 2, 1])), m)
        gv = R.matmul(R.nn.softmax(w, axis=2), v)""",
    ),
    "one head": (
        "q(s, 8), k(t, 8), v(t, 6), m(s, t)",
        """w = R.add(R.divide(R.matmul(q, R.permute_dims(k)), c(2.0)), m)
        gv = R.matmul(R.nn.softmax(w, axis=1), v)""",
    ),
}


@pytest.mark.parametrize("name", INSIDE)
def test_attention_of_other_ranks_is_recognised(name: str) -> None:
    module = module_of(*INSIDE[name])

    assert "nn.attention" in operators_of(module)
    check("matmul", module)


def test_a_low_number_stands_for_infinity_under_a_causal_mask() -> None:
    body = (
        SPLIT
        + """seen = R.tril(R.ones((s, t), "bool"))
    w = R.where(seen, R.matmul(q, k), c(-1e9))"""
        + JOIN
    )
    module = module_of(HEADS, body)

    check("nn.attention", module, fast_math=True)
    assert "nn.attention" not in operators_of(module)


NO_ATTENTION = {
    "a choice that is not causal": SPLIT
    + "w = R.where(R.greater(m, c(1.0)), R.matmul(q, k), c(-1e9))"
    + JOIN,
    "softmax over the queries": SPLIT
    + """p = R.nn.softmax(R.matmul(q, k), axis=2)
        gv = R.permute_dims(R.matmul(p, v), axes=[0, 2, 1, 3])""",
    "a scale for each query": SPLIT + "w = R.multiply(R.matmul(q, k), m)" + JOIN,
    "two softmaxes": SPLIT + "w = R.nn.softmax(R.matmul(q, k), axis=-1)" + JOIN,
}


@pytest.mark.parametrize("name", NO_ATTENTION)
def test_what_is_like_attention_is_none(name: str) -> None:
    module = module_of(HEADS + ", m(b, 4, s, 1)", NO_ATTENTION[name])

    assert "nn.attention" not in operators_of(module, fast_math=True)


ATTENDS = {
    "plain": (HEADS, "gv = R.nn.attention(x, y, z)"),
    "with a bias": (HEADS + ", m(b, 1, s, t)", "gv = R.nn.attention(x, y, z, m)"),
    "as attention_bias": (HEADS + ", m(1, 4, 1, t)", "gv = R.nn.attention_bias(x, y, z, m)"),
}


@pytest.mark.parametrize("name", ATTENDS)
def test_attention_is_written_out(name: str) -> None:
    module = module_of(*ATTENDS[name])

    check("nn.attention", module)
    check("permute_dims", module, fast_math=True)


def test_each_layer_of_an_encoder_is_an_attention_two_layer_norms_and_a_gelu() -> None:
    function = encoder(Sizes(layers=2))["main"]
    assert isinstance(function, Function)
    (block,) = (b for b in function.body.blocks if isinstance(b, DataflowBlock))
    outputs = [b.var for b in block.bindings if not isinstance(b.var, DataflowVar)]

    classes = saturate(encode(block.bindings, outputs).view).view.classes.values()

    found = {"nn.attention": 0, "nn.layer_norm": 0, "nn.gelu": 0}
    for eclass in classes:
        whole = {n.op for n in eclass.nodes if dict(n.attrs).get("center", True)}
        for name in whole.intersection(found) if eclass.sort == "tensor" else ():
            found[name] += 1
    assert found == {"nn.attention": 2, "nn.layer_norm": 4, "nn.gelu": 2}

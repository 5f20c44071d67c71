"""Networks, their layers and their gradients."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from bench.jax.example import example, integers

MLP = ((784, 32), (32,), (32, 16), (16,), (16, 10), (10,))


def mlp_of(x: Any, *weights: Any) -> Any:
    """Layers of products, with relu between them."""
    for w, b in zip(weights[::2], weights[1::2], strict=True):
        x = x @ w + b
        if w.shape[1] != 10:
            x = jax.nn.relu(x)
    return x


@example(("b", 784), *MLP)
def mlp(x, *weights):
    return jax.nn.log_softmax(mlp_of(x, *weights))


@example(("b", 64), (64, 32), (32,))
def mlp_gelu(x, w, b):
    return jax.nn.gelu(x @ w + b), jax.nn.gelu(x @ w + b, approximate=False), jax.nn.silu(x)


def loss_of(weights: Any, x: Any, labels: Any) -> Any:
    """Cross entropy of the network."""
    logits = jax.nn.log_softmax(mlp_of(x, *weights))
    return -jnp.mean(jnp.sum(jax.nn.one_hot(labels, 10) * logits, axis=-1))


@example(("b", 784), integers("b", most=10), *MLP)
def mlp_gradient(x, labels, *weights):
    return jax.grad(loss_of)(weights, x, labels)


@example(("b", 784), integers("b", most=10), *MLP)
def mlp_step(x, labels, *weights):
    loss, gradient = jax.value_and_grad(loss_of)(weights, x, labels)
    return loss, jax.tree.map(lambda w, g: w - 0.01 * g, weights, gradient)


def cnn_of(x: Any, first: Any, second: Any, dense: Any) -> Any:
    """Two convolutions with pools, and a dense layer."""
    numbers = ("NHWC", "HWIO", "NHWC")
    x = jax.nn.relu(lax.conv_general_dilated(x, first, (1, 1), "SAME", dimension_numbers=numbers))
    x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.nn.relu(lax.conv_general_dilated(x, second, (2, 2), "SAME", dimension_numbers=numbers))
    x = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return x.reshape(x.shape[0], -1) @ dense


CNN = ((3, 3, 1, 4), (3, 3, 4, 8), (72, 10))


@example(("b", 28, 28, 1), *CNN)
def cnn(x, *weights):
    return cnn_of(x, *weights)


@example((4, 28, 28, 1), *CNN)
def cnn_gradient(x, *weights):
    return jax.grad(lambda w: jnp.sum(cnn_of(x, *w) ** 2))(weights)


@example(("b", 28, 28, 1), *CNN)
def cnn_gradient_symbolic(x, *weights):
    return jax.grad(lambda w: jnp.sum(cnn_of(x, *w) ** 2))(weights)


@example((2, 8, 14, 14), (16, 1, 3, 3), (4, 16, 1, 1))
def depthwise(x, w, v):
    y = lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)], feature_group_count=8)
    return lax.conv_general_dilated(y, v, (1, 1), "VALID")


@example((2, 8, 14, 14), (16, 1, 3, 3))
def depthwise_gradient(x, w):
    def loss(w):
        y = lax.conv_general_dilated(x, w, (1, 1), [(1, 1), (1, 1)], feature_group_count=8)
        return jnp.sum(y**2)

    return jax.grad(loss)(w)


@example((2, 7, 9, 4), (3, 3, 4, 6))
def transposed_convolution(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


@example((2, 12, 4), (3, 4, 6))
def dilated_convolution(x, w):
    return lax.conv_general_dilated(
        x, w, (1,), "VALID", rhs_dilation=(2,), dimension_numbers=("NWC", "WIO", "NWC")
    )


@example(("b", "s", 32), (32, 96), (32, 32))
def attention(x, qkv, out):
    b, s, _ = x.shape
    q, k, v = jnp.split((x @ qkv).reshape(b, s, 3, 4, 8), 3, axis=2)
    scores = jnp.einsum("bqihd,bkihd->bhqk", q, k) / jnp.sqrt(8.0)
    mask = jnp.tril(jnp.ones((s, s), bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bhqk,bkihd->bqhd", weights, v).reshape(b, s, 32) @ out


@example((2, 5, 4, 8), (2, 5, 4, 8), (2, 5, 4, 8))
def dot_product_attention(q, k, v):
    return jax.nn.dot_product_attention(q, k, v, is_causal=True)


@example(("b", 5, 16), (16,), (16,))
def layer_norm(x, scale, bias):
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.var(x, -1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias


@example(("b", 16), (16,))
def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


@example((8, 6, 6, 3), (3,), (3,))
def batch_norm(x, scale, bias):
    mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    return (x - mean) / jnp.sqrt(variance + 1e-5) * scale + bias, mean, variance


@example(integers("b", 7, most=20), (20, 8), (8, 20))
def embedding(tokens, table, out):
    return jnp.mean(table[tokens], axis=1) @ out

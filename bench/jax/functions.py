"""Functions as users of jax write them: networks, their gradients, control flow, indexing."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Shape = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """An array: its shape, in which a text is a symbolic size, and its dtype.

    Integers are below `most`; `values` are the elements instead.
    """

    shape: Shape
    dtype: str = "float32"
    most: int = 3
    values: Any = None


@dataclass(frozen=True, slots=True)
class Example:
    """A function and its inputs."""

    name: str
    function: Callable[..., Any]
    inputs: tuple[Input, ...] = field(default_factory=tuple[Input, ...])
    relative: float = 1e-4


EXAMPLES: list[Example] = []


def example(*inputs: Input | Shape, relative: float = 1e-4) -> Callable[[Any], Any]:
    """Decorator: the function is an example of that name; an input is one of float32 by default."""

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        full = tuple(i if isinstance(i, Input) else Input(i) for i in inputs)
        EXAMPLES.append(Example(function.__name__, function, full, relative))
        return function

    return add


def integers(*shape: int | str, most: int = 3, dtype: str = "int32") -> Input:
    """An input of integers below `most`."""
    return Input(shape, dtype, most)


KEY = Input((2,), "uint32", values=(7, 42))

# --- networks -------------------------------------------------------------------------

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


# --- control flow ---------------------------------------------------------------------


@example(("b", 9, 6), (6, 5), (5, 5), (5,))
def scan_rnn(x, wx, wh, b):
    def step(hidden, token):
        hidden = jnp.tanh(token @ wx + hidden @ wh + b)
        return hidden, hidden

    first = jnp.zeros((x.shape[0], 5))
    last, every = lax.scan(step, first, jnp.swapaxes(x, 0, 1))
    return last, jnp.swapaxes(every, 0, 1)


@example((7, 3, 6), (11, 20), (20,))
def scan_lstm(x, w, b):
    def step(state, token):
        hidden, cell = state
        gates = jnp.concatenate([token, hidden], -1) @ w + b
        i, f, g, o = jnp.split(gates, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    zeros = jnp.zeros((3, 5))
    return lax.scan(step, (zeros, zeros), x)


@example((6, 4), (4, 4))
def scan_gradient(x, w):
    def loss(w):
        last, _ = lax.scan(lambda h, t: (jnp.tanh(h @ w + t), None), jnp.zeros(4), x)
        return jnp.sum(last)

    return jax.grad(loss)(w)


@example(("s", 4), relative=1e-3)
def reverse_scan(x):
    return lax.scan(lambda c, t: (c + t, c * t), jnp.zeros(4), x, reverse=True)


@example((), relative=1e-5)
def while_loop(x):
    return lax.while_loop(lambda s: s[1] < 20, lambda s: (s[0] * 1.1 + 1, s[1] + 1), (x, 0))


@example((5,))
def newton(x):
    def step(state):
        y, _ = state
        better = 0.5 * (y + x**2 / y)
        return better, jnp.max(jnp.abs(better - y))

    return lax.while_loop(lambda s: s[1] > 1e-4, step, (jnp.ones(5), jnp.inf))[0]


@example((4, 4))
def fori_loop(x):
    return lax.fori_loop(0, 5, lambda i, y: y @ x * 0.5 + i, jnp.eye(4))


@example((3,), Input((), "bool", values=True))
def cond(x, flag):
    return lax.cond(flag, jnp.sin, lambda y: y * 2, x), lax.cond(x[0] > 2, jnp.cos, jnp.exp, x)


@example((3,), integers(most=5))
def switch(x, which):
    return lax.switch(which, [jnp.sin, jnp.cos, lambda y: y + 1], x)


@example((3, 4), integers(3, most=2))
def vmapped_cond(x, flags):
    return jax.vmap(lambda f, v: lax.cond(f > 0, jnp.sin, jnp.cos, v))(flags, x)


@example((4, 3), integers(4, most=6))
def vmapped_while(x, counts):
    def run(v, n):
        return lax.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 2, s[1] + 1), (v, 0))[0]

    return jax.vmap(run)(x, counts)


@example(("n", 3))
def associative_scan(x):
    return jnp.cumsum(x, 0), jnp.cumprod(x, 0), jnp.cumsum(x, 1), lax.cumsum(x, 0, reverse=True)


@example((9, 3))
def running_extremes(x):
    return lax.cummax(x, 0), lax.cummin(x, 1), lax.cumlogsumexp(x, 0)


@example((8, 3))
def associative_products(x):
    return lax.associative_scan(jnp.multiply, x)


# --- indexing and order ---------------------------------------------------------------


@example(("n", 7))
def sorts(x):
    return jnp.sort(x), jnp.argsort(x), jnp.sort(x, descending=True), jnp.argsort(-x, axis=0)


@example((4, 7), integers(4, 7, most=3))
def sort_pairs(x, keys):
    return lax.sort((keys, x), num_keys=2), lax.sort((keys, x), num_keys=1), jnp.lexsort((x, keys))


@example(("n", 9))
def top_k(x):
    return lax.top_k(x, 3)


@example(("n", 9))
def extremes(x):
    return jnp.argmax(x, -1), jnp.argmin(x, 0), jnp.max(x), jnp.argmax(x), jnp.median(x[:, :5], 1)


@example((6, 4), (4,), integers(3, most=6))
def updates(x, row, at):
    return (
        x.at[1].set(row),
        x.at[at].add(1.0),
        x.at[at, 2].multiply(3.0),
        x.at[2:4].set(0.0),
        x.at[:, 1].min(0.2),
        x.at[at].max(row),
        x.at[10].set(5.0),
        x.at[-1, ::2].set(7.0),
    )


@example(("n", 4), integers(3, most=2))
def updates_symbolic(x, at):
    return x.at[at].add(1.0), x.at[0].set(0.0), x.at[:, 2].set(1.0)


@example((6, 4, 5), integers(3, 2, most=4), integers(3, 2, most=6))
def reads(x, at, rows):
    return (
        x[rows, at],
        x[:, at],
        x[rows, :, at],
        x[-1, 1:3, ::2],
        x[rows[0, 0]],
        jnp.take(x, at, axis=1),
        jnp.take(x, at + 3, axis=1, mode="clip"),
        jnp.take(x, at + 3, axis=1, mode="fill"),
        jnp.take_along_axis(x, at[:2, :1, None], axis=0),
    )


@example(("n", 4), integers(3, most=2))
def reads_symbolic(x, at):
    return x[at], x[:, at], jnp.take(x, at, axis=1), x[-1], x[::2]


@example((8, 6), integers(most=12), integers(2, most=5))
def dynamic_slices(x, start, pair):
    return (
        lax.dynamic_slice(x, (start, 0), (3, 6)),
        lax.dynamic_slice(x, (pair[0], pair[1]), (2, 2)),
        lax.dynamic_update_slice(x, jnp.ones((2, 6)), (start, 0)),
        lax.dynamic_update_slice(x, jnp.ones((2, 2)), (pair[0], pair[1])),
        lax.dynamic_index_in_dim(x, start, 1, keepdims=False),
    )


@example((5, 8, 6), integers(5, most=7))
def vmapped_slices(x, starts):
    def one(v, s):
        return lax.dynamic_slice(v, (s, 0), (2, 6)), lax.dynamic_update_slice(v, v[:2], (s, 0))

    return jax.vmap(one)(x, starts)


@example((4, 5), integers(4, most=5))
def vmapped_gather(x, at):
    return jax.vmap(lambda v, i: v[i])(x, at), jax.vmap(lambda v, i: v.at[i].set(0.0))(x, at)


@example((12,), integers(12, most=4))
def segment_sum(x, segments):
    return jax.ops.segment_sum(x, segments, 4), jnp.bincount(segments, length=4)


@example((20,))
def histogram(x):
    return jnp.digitize(x, jnp.linspace(-1, 1, 7)), jnp.searchsorted(jnp.sort(x), x[:5])


@example((3, 4, 5))
def movement(x):
    return (
        jnp.transpose(x, (2, 0, 1)),
        jnp.flip(x, (0, 2)),
        jnp.roll(x, 2, 1),
        jnp.pad(x, ((1, 0), (0, 2), (1, 1)), constant_values=3.0),
        jnp.pad(x, ((1, 1), (1, 1), (1, 1)), mode="reflect"),
        jnp.repeat(x, 2, 1),
        jnp.tile(x, (1, 2, 1)),
        jnp.stack([x, x + 1], 1),
        jnp.rot90(x),
        lax.pad(x, 0.5, ((1, -1, 1), (0, 0, 2), (-1, 2, 0))),
    )


@example(("n", 4), ("m", 4))
def joined(x, y):
    return jnp.concatenate([x, y]), x[:, None] * y[None], jnp.vstack([y, x]).sum(0)


# --- numerics -------------------------------------------------------------------------


@example(("n", 6))
def elementwise(x):
    p = jnp.abs(x) + 0.1
    return (
        jnp.exp(x) - jnp.expm1(x * 1e-3),
        jnp.log1p(p) + jnp.log(p),
        jnp.sin(x) * jnp.cos(x) + jnp.tan(x),
        jnp.arctan2(x, p),
        jnp.sinh(x) + jnp.cosh(x) - jnp.tanh(x),
        jnp.arcsinh(x) + jnp.arctan(x) + jnp.arcsin(jnp.tanh(x)),
        jnp.cbrt(x) + jnp.sqrt(p) + lax.rsqrt(p),
        jnp.power(p, x) + x**3,
        jnp.round(x) + jnp.floor(x) - jnp.ceil(x) + jnp.trunc(x) + jnp.sign(x),
        lax.erf(x) + lax.erfc(x),
        lax.erf_inv(jnp.tanh(x)),
        jax.nn.softplus(x) + jax.nn.elu(x) + jax.nn.sigmoid(x) + jax.nn.relu6(x),
        jnp.clip(x, -0.5, 0.5),
        jnp.where(x > 0, x, -x),
        jnp.isnan(x) | jnp.isinf(x / 0) | jnp.isfinite(x),
        jax.scipy.special.logsumexp(x, axis=1),
        jnp.nan_to_num(x / (x - x)),
        jnp.hypot(x, p) + jnp.logaddexp(x, p),
        jnp.fmod(x, 0.7) + jnp.mod(x, 0.7),
    )


@example((4, 5), relative=1e-3)
def special_functions(x):
    p = jnp.abs(x) + 0.5
    return lax.lgamma(p), lax.digamma(p), lax.bessel_i1e(x), jax.scipy.special.betaln(p, p)


@example(integers(4, 5, most=50), integers(4, 5, most=9))
def integers_arithmetic(a, b):
    u = a.astype(jnp.uint32)
    return (
        a // (b + 1),
        a % (b + 1),
        lax.div(a - 25, b - 4),
        lax.rem(a - 25, b + 1),
        a & b,
        a | b,
        a ^ b,
        ~a,
        a << 2,
        (a - 25) >> 1,
        lax.shift_right_logical(a - 25, 3),
        lax.population_count(a),
        lax.clz(a),
        jnp.power(a, 3),
        u * jnp.uint32(2654435761) >> 7,
        (a > b) ^ (a == b),
        jnp.sum(a),
        jnp.all(a > 0, 1),
        jnp.any(a > 40, 0),
        a.astype(jnp.int8) * 3,
        lax.bitcast_convert_type(a.astype(jnp.float32), jnp.int32),
        jnp.prod(b, 1),
        jnp.max(a, 0),
    )


@example((4, 6), Input((6, 3), "bfloat16"))
def half_precision(x, w):
    h = x.astype(jnp.bfloat16) @ w
    return (
        h,
        x.astype(jnp.bfloat16).astype(jnp.float32).sum(),
        x.astype(jnp.float16) * 2,
        lax.reduce_precision(x, 8, 7),
    )


@example((3, 4), (4, 5), (2, 3, 4), (2, 4, 5), (4,))
def products(a, b, c, d, v):
    return (
        a @ b,
        c @ d,
        jnp.einsum("bij,bjk->bik", c, d),
        jnp.einsum("bij,jk->bki", c, b),
        jnp.einsum("ij,kj->ik", a, a),
        jnp.tensordot(c, d, ([2], [1])),
        jnp.outer(v, v),
        a @ v,
        v @ v,
        jnp.einsum("bij,bij->b", c, c),
        jnp.einsum("ii->i", a[:, :3]),
        jnp.kron(a, a),
    )


@example((5, 3), (6, 3))
def distances(x, y):
    return jax.vmap(lambda a: jax.vmap(lambda b: jnp.sqrt(jnp.sum((a - b) ** 2)))(y))(x)


@example((5,), relative=1e-3)
def derivatives(x):
    def f(v):
        return jnp.sum(jnp.sin(v) * v**2)

    return jax.grad(f)(x), jax.hessian(f)(x), jax.jvp(f, (x,), (x,)), jax.jacobian(jnp.cumsum)(x)


@example((2, 6, 6, 3))
def pools(x):
    sizes = (1, 3, 3, 1)
    return (
        lax.reduce_window(x, -jnp.inf, lax.max, sizes, (1, 2, 2, 1), "SAME"),
        lax.reduce_window(x, 0.0, lax.add, sizes, (1, 1, 1, 1), "SAME"),
        lax.reduce_window(x, jnp.inf, lax.min, sizes, (1, 2, 2, 1), "VALID"),
        lax.reduce_window(x, 1.0, lax.mul, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        lax.reduce_window((x * 9).astype(jnp.int32), 0, lax.add, sizes, (1, 1, 1, 1), "SAME"),
    )


@example(("b", 8, 8, 2))
def pool_gradient(x):
    def loss(v):
        return jnp.sum(
            lax.reduce_window(v, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME") ** 2
        )

    return jax.grad(loss)(x)


@example((6, 6))
def image_resize(x):
    return jax.image.resize(x, (12, 9), "bilinear"), jax.image.resize(x, (3, 3), "nearest")


@example((16,))
def interpolation(x):
    return jnp.interp(x, jnp.linspace(-1, 1, 5), jnp.arange(5.0)), jnp.polyval(jnp.arange(4.0), x)


@example((30,), (5,))
def correlation(x, kernel):
    return jnp.convolve(x, kernel, mode="same"), jnp.correlate(x, kernel, mode="valid")


# --- random numbers -------------------------------------------------------------------


@example(KEY)
def random_bits(key):
    return jax.random.bits(key, (5, 3)), jax.random.split(key, 3), jax.random.fold_in(key, 5)


@example(KEY)
def random_numbers(key):
    return (
        jax.random.uniform(key, (7,)),
        jax.random.normal(key, (4, 3)),
        jax.random.randint(key, (6,), 0, 10),
        jax.random.bernoulli(key, 0.3, (8,)),
        jax.random.permutation(key, 9),
        jax.random.categorical(key, jnp.zeros((4, 5))),
    )


@example(KEY, ("b", 6))
def dropout(key, x):
    keep = jax.random.bernoulli(key, 0.8, x.shape)
    return jnp.where(keep, x / 0.8, 0.0)

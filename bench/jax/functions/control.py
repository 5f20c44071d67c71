"""Scans, loops and branches."""

import jax
import jax.numpy as jnp
from jax import lax

from bench.jax.example import Input, example, integers


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

"""Indexing, sorting and moving elements."""

import jax
import jax.numpy as jnp
from jax import lax

from bench.jax.example import example, integers


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

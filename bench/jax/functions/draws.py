"""Random numbers."""

import jax
import jax.numpy as jnp

from bench.jax.example import KEY, example


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

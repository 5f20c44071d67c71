"""Elementwise functions, products, pools and images."""

import jax
import jax.numpy as jnp
from jax import lax

from bench.jax.example import Input, example, integers


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

"""Attention reads queries, keys and values where they lie, and leaves its result where it goes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from bench.census import census
from relax_egraph.ir import dims
from relax_egraph.ir.expr import Function
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.struct_info import TensorStructInfo
from relax_egraph.lower.runtime.threads import thread_pool
from tests.support.exported import module_of
from tests.support.widths import WIDTHS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Layout:
    """A program over `params`, of which `heads` makes what attention is of: (b, token, head, d).

    `result` puts attention's result as the program returns it.
    """

    params: str
    body: str
    heads: Callable[[Sequence[Array]], Sequence[Array]]
    result: Callable[[Array], Array] = lambda out: out
    causal_mask: str | None = None


def swapped(*arrays: Array) -> tuple[Array, ...]:
    """With tokens and heads changing places."""
    return tuple(np.swapaxes(x, 1, 2) for x in arrays)


def joined(*arrays: Array, axis: int) -> Array:
    return np.concatenate(arrays, axis=axis)


TO_HEADS = "R.permute_dims({}, axes=[0, 2, 1, 3])"

LAYOUTS: Mapping[str, Layout] = {
    "(b, head, token, d)": Layout(
        "q(b, 4, s, 8), k(b, 2, t, 8), v(b, 2, t, 12)",
        f"""qs = {TO_HEADS.format("q")}
        ks = {TO_HEADS.format("k")}
        vs = {TO_HEADS.format("v")}
        o = R.nn.attention(qs, ks, vs)
        gv = {TO_HEADS.format("o")}""",
        lambda x: swapped(*x),
        lambda out: np.swapaxes(out, 1, 2),
    ),
    "(b, head, token, d), written out": Layout(
        "q(b, 4, s, 8), k(b, 4, t, 8), v(b, 4, t, 8)",
        """p = R.matmul(q, R.permute_dims(k, axes=[0, 1, 3, 2]))
        w = R.nn.softmax(R.multiply(p, c(0.35355339)), axis=-1)
        gv = R.matmul(w, v)""",
        lambda x: swapped(*x),
        lambda out: np.swapaxes(out, 1, 2),
    ),
    "keys as columns": Layout(
        "q(b, 4, s, 8), k(b, 4, 8, t), v(b, 4, t, 8)",
        """p = R.matmul(q, k)
        w = R.nn.softmax(R.multiply(p, c(0.35355339)), axis=-1)
        o = R.matmul(w, v)
        gv = R.permute_dims(o, axes=[0, 2, 1, 3])""",
        lambda x: swapped(x[0], np.swapaxes(x[1], 2, 3), x[2]),
    ),
    "(b, token, group, head of it, d)": Layout(
        "q(b, s, 2, 3, 8), k(b, t, 2, 8), v(b, t, 2, 8)",
        """qs = R.reshape(q, (b, s, 6, 8))
        o = R.nn.attention(qs, k, v)
        gv = R.reshape(o, (b, s, 48))""",
        lambda x: (x[0].reshape(*x[0].shape[:2], 6, 8), *x[1:]),
        lambda out: out.reshape(*out.shape[:2], 48),
    ),
    "(b, token, 3, head, d)": Layout(
        "x(b, s, 72)",
        """r = R.permute_dims(R.reshape(x, (b, s, 3, 3, 8)), axes=[2, 0, 3, 1, 4])
        q = R.take(r, R.const(0, "int64"), axis=0)
        k = R.take(r, R.const(1, "int64"), axis=0)
        v = R.take(r, R.const(2, "int64"), axis=0)
        p = R.matmul(q, R.permute_dims(k, axes=[0, 1, 3, 2]))
        w = R.nn.softmax(R.multiply(p, c(0.35355339)), axis=-1)
        o = R.permute_dims(R.matmul(w, v), axes=[0, 2, 1, 3])
        gv = R.reshape(o, (b, s, 24))""",
        lambda x: [*np.moveaxis(x[0].reshape(*x[0].shape[:2], 3, 3, 8), 2, 0)],
        lambda out: out.reshape(*out.shape[:2], 24),
    ),
    "(b, token, head, 3·d)": Layout(
        "x(b, s, 72)",
        """parts = R.split(R.reshape(x, (b, s, 3, 24)), indices_or_sections=3, axis=3)
        gv = R.nn.attention(parts[0], parts[1], parts[2])""",
        lambda x: np.split(x[0].reshape(*x[0].shape[:2], 3, 24), 3, axis=3),
    ),
    "(token, batch, d)": Layout(
        "q(s, b, 8), k(t, b, 8), v(t, b, 8)",
        """qs = R.permute_dims(q, axes=[1, 0, 2])
        ks = R.permute_dims(k, axes=[1, 2, 0])
        vs = R.permute_dims(v, axes=[1, 0, 2])
        w = R.nn.softmax(R.multiply(R.matmul(qs, ks), c(0.35355339)), axis=-1)
        gv = R.permute_dims(R.matmul(w, vs), axes=[1, 0, 2])""",
        lambda x: [np.swapaxes(a, 0, 1)[:, :, None] for a in x],
        lambda out: np.swapaxes(out[:, :, 0], 0, 1),
    ),
    "past and new, (b, head, token, d)": Layout(
        "q(b, 4, s, 8), k(b, 2, t, 8), nk(b, 2, s, 8), v(b, 2, t, 8), nv(b, 2, s, 8)",
        f"""ks = R.concat((k, nk), axis=2)
        vs = R.concat((v, nv), axis=2)
        qs = {TO_HEADS.format("q")}
        kt = {TO_HEADS.format("ks")}
        vt = {TO_HEADS.format("vs")}
        o = R.nn.attention(qs, kt, vt, causal_mask="BottomRight")
        gv = {TO_HEADS.format("o")}""",
        lambda x: swapped(x[0], joined(*x[1:3], axis=2), joined(*x[3:], axis=2)),
        lambda out: np.swapaxes(out, 1, 2),
        causal_mask="BottomRight",
    ),
    "past and new, (b, token, head, d)": Layout(
        "q(b, s, 4, 8), k(b, t, 2, 8), nk(b, 3, 2, 8), v(b, t, 2, 8), nv(b, 3, 2, 8)",
        """ks = R.concat((k, nk), axis=1)
        vs = R.concat((v, nv), axis=1)
        gv = R.nn.attention(q, ks, vs)""",
        lambda x: (x[0], joined(*x[1:3], axis=1), joined(*x[3:], axis=1)),
    ),
    "past and new keys as columns": Layout(
        "q(b, 4, s, 8), k(b, 4, 8, t), nk(b, 4, 8, 1), v(b, 4, t, 8), nv(b, 4, 1, 8)",
        """ks = R.concat((k, nk), axis=3)
        vs = R.concat((v, nv), axis=2)
        w = R.nn.softmax(R.multiply(R.matmul(q, ks), c(0.35355339)), axis=-1)
        gv = R.permute_dims(R.matmul(w, vs), axes=[0, 2, 1, 3])""",
        lambda x: swapped(x[0], np.swapaxes(joined(*x[1:3], axis=3), 2, 3), joined(*x[3:], axis=2)),
    ),
}

LENGTHS = [(1, 0), (1, 1), (1, 300), (4, 17), (5, 1), (64, 255), (70, 257), (513, 3)]
"""Queries, and keys: those of the past where some are new."""


@cache
def optimized(name: str) -> rx.IRModule:
    layout = LAYOUTS[name]
    return rx.optimize(module_of(layout.params, layout.body))


@cache
def machine(name: str, threads: int = 1, target: str = "native") -> rx.VirtualMachine:
    return rx.VirtualMachine(rx.build(optimized(name), target=target), num_threads=threads)


def drawn(name: str, **sizes: int) -> list[Array]:
    """Random arguments."""
    random = np.random.default_rng(0)
    main = optimized(name)["main"]
    assert isinstance(main, Function)
    infos = [p.struct_info for p in main.params]
    shapes = [i.dims or () for i in infos if isinstance(i, TensorStructInfo)]
    extents = ([dims.evaluate(d, sizes) for d in shape] for shape in shapes)
    return [random.standard_normal(shape, np.float32) for shape in extents]


@pytest.mark.parametrize("name", LAYOUTS)
def test_attention_is_one_kernel(name: str) -> None:
    assert census(optimized(name)).kernels.total() == 1


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize(("s", "t"), LENGTHS)
def test_it_attends_to_what_lies_there(name: str, s: int, t: int) -> None:
    layout = LAYOUTS[name]
    arguments = drawn(name, b=2, s=s, t=t)

    result = np.asarray(machine(name)["main"](*arguments))

    attrs = complete_attrs(OPS["nn.attention"], {"causal_mask": layout.causal_mask})
    with np.errstate(all="ignore"):
        wanted = np.asarray(REFERENCE["nn.attention"](*layout.heads(arguments), **attrs))
    np.testing.assert_allclose(result, layout.result(wanted), rtol=2e-4, atol=2e-5)


@pytest.mark.skipif(not thread_pool(2), reason="kernels have no threads here")
@pytest.mark.parametrize("name", [name for name in LAYOUTS if "past" in name])
@pytest.mark.parametrize("target", WIDTHS)
def test_results_do_not_depend_on_the_number_of_threads(target: str, name: str) -> None:
    arguments = drawn(name, b=2, s=1, t=1500)

    alone, shared = (np.array(machine(name, n, target)["main"](*arguments)) for n in (1, 2))

    np.testing.assert_array_equal(alone, shared, strict=True)

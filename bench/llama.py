"""A decoder layer of LLaMA as exporters write it: for one token with a cache, or a whole prompt.

It has RMS norms, rotary embeddings by halves, fewer heads of keys and values than of queries, and a
gated inner layer.  For one token it attends to the cache and the token itself; for a prompt, each
token attends to those before it.  In the form of servers, the layer appends to the cache in place.
"""

import math
from dataclasses import dataclass
from textwrap import dedent

import numpy as np
import numpy.typing as npt

from relax_egraph.ir import BlockBuilder, IRModule, Var, call, const, shape, symbol, tensor
from relax_egraph.ir.block_builder import call_tir
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Constant, Expr, Tuple
from relax_egraph.ir.module import BaseFunc
from relax_egraph.script import parse

Array = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Widths:
    """The widths of a layer; `groups` is the number of heads of keys and values."""

    hidden: int = 1024
    heads: int = 16
    groups: int = 4
    inner: int = 2816

    @property
    def head(self) -> int:
        """The elements of a head."""
        return self.hidden // self.heads


def decode_step(widths: Widths, seed: int = 0) -> IRModule:
    """``main(x: (1, 1, hidden), cos, sin: (1, head), keys, values: (1, groups, past, head))``.

    `past`, the number of tokens in the cache, is symbolic; weights differ by `seed`.
    """
    writer = _Layer(widths, seed)
    past = symbol("past")
    x, cos, sin = _inputs(widths, 1)
    cached = tensor((1, widths.groups, past, widths.head), "float32")
    keys, values = Var("keys", cached), Var("values", cached)
    with writer.bb.function("main", [x, cos, sin, keys, values]):
        with writer.bb.dataflow():
            query, key, value = writer.projected(x, (cos, sin), 1)
            key = writer.op("concat", Tuple((keys, key)), axis=2)
            value = writer.op("concat", Tuple((values, value)), axis=2)
            mixed = writer.attend_one(query, key, value)
            out = writer.bb.emit_output(writer.rest(x, mixed))
        writer.bb.emit_func_output(out)
    return writer.bb.get()


def decode_in_place(widths: Widths, seed: int = 0) -> IRModule:
    """``main(x: (1, 1, hidden), cos, sin: (1, head), keys, values: (1, groups, n, head))``.

    The last of the `n` places of the caches, which is symbolic, is for the token: its key and value
    are written there.  Weights are those of `decode_step`.
    """
    writer = _Layer(widths, seed)
    bb, cached = writer.bb, tensor((1, widths.groups, symbol("n"), widths.head), "float32")
    x, cos, sin = _inputs(widths, 1)
    caches = Var("keys", cached), Var("values", cached)
    append = bb.add_func(_append(widths), APPEND)
    with bb.function("main", [x, cos, sin, *caches]):
        with bb.dataflow():
            query, key, value = writer.projected(x, (cos, sin), 1)
            outer = [bb.emit_output(result) for result in (query, key, value)]
        query, *rows = outer
        keys, values = (
            bb.emit(call_tir(append, (cache, row), cached, inplace_indices=(0,)))
            for cache, row in zip(caches, rows, strict=True)
        )
        with bb.dataflow():
            by_token = [writer.by_token(heads) for heads in (query, keys, values)]
            mixed = writer.op("nn.attention", *by_token)
            joined = writer.op("reshape", mixed, shape((1, 1, widths.hidden)))
            out = bb.emit_output(writer.rest(x, joined))
        bb.emit_func_output(out)
    return bb.get()


APPEND = "append_row"
"""The loop function that writes a row, (1, groups, 1, head), to the last place of a cache."""


def _append(widths: Widths) -> BaseFunc:
    text = f"""
        @T.prim_func(private=True)
        def append(
            cache: T.Buffer((1, {widths.groups}, "n", {widths.head}), "float32"),
            row: T.Buffer((1, {widths.groups}, 1, {widths.head}), "float32"),
        ):
            T.func_attr({{"num_outputs": 0}})
            n = T.int64()
            for h, d in T.grid({widths.groups}, {widths.head}):
                with T.block("append"):
                    vh, vd = T.axis.remap("SS", [h, d])
                    cache[0, vh, n - 1, vd] = row[0, vh, 0, vd]
        """
    return parse(dedent(text))["append"]


def prefill(widths: Widths, length: int) -> IRModule:
    """``main(x: (1, length, hidden), cos, sin: (length, head))``."""
    writer = _Layer(widths)
    x, cos, sin = _inputs(widths, length)
    with writer.bb.function("main", [x, cos, sin]):
        with writer.bb.dataflow():
            query, key, value = writer.projected(x, (cos, sin), length)
            mixed = writer.attend_before(query, key, value, length)
            out = writer.bb.emit_output(writer.rest(x, mixed))
        writer.bb.emit_func_output(out)
    return writer.bb.get()


def angles(widths: Widths, first: int, length: int) -> tuple[Array, Array]:
    """Cosines and sines for `length` positions from `first` on."""
    rates = 10000.0 ** (-np.arange(0, widths.head, 2) / widths.head)
    turns = np.outer(np.arange(first, first + length), rates)
    both = np.concatenate((turns, turns), axis=1)
    return np.cos(both).astype(np.float32), np.sin(both).astype(np.float32)


def _inputs(widths: Widths, length: Dim) -> tuple[Var, Var, Var]:
    turned = tensor((length, widths.head), "float32")
    x = Var("x", tensor((1, length, widths.hidden), "float32"))
    return x, Var("cos", turned), Var("sin", turned)


class _Layer:
    """Writes a layer into the open block, with weights drawn in order."""

    def __init__(self, widths: Widths, seed: int = 0) -> None:
        self.widths = widths
        self.bb = BlockBuilder()
        self._random = np.random.default_rng(seed)

    def op(self, name: str, *args: Expr, **attrs: Attr) -> Var:
        return self.bb.emit(call(name, *args, **attrs))

    def projected(self, x: Expr, turn: tuple[Expr, Expr], length: Dim) -> tuple[Var, Var, Var]:
        """Rotated queries and keys, and values, of shape (1, heads or groups, length, head)."""
        w, normed = self.widths, self.norm(x)
        query = self.heads(self.linear(normed, w.hidden, w.hidden), w.heads, length)
        key, value = (
            self.heads(self.linear(normed, w.hidden, w.groups * w.head), w.groups, length)
            for _ in range(2)
        )
        return self.rotate(query, turn), self.rotate(key, turn), value

    def attend_one(self, query: Var, keys: Expr, values: Expr) -> Var:
        """Attention of one token: the heads that share keys and values are rows of one product."""
        w = self.widths
        rows = self.op("reshape", query, shape((1, w.groups, w.heads // w.groups, w.head)))
        shares = self.op("nn.softmax", self.scores(rows, keys))
        return self.op("reshape", self.op("matmul", shares, values), shape((1, 1, w.hidden)))

    def by_token(self, x: Expr) -> Var:
        """Heads and tokens in the other order."""
        return self.op("permute_dims", x, axes=(0, 2, 1, 3))

    def attend_before(self, query: Var, keys: Var, values: Var, length: int) -> Var:
        """Causal attention; keys and values are repeated for their heads."""
        w = self.widths
        seen = self.op("tril", self.op("ones", shape((length, length)), dtype="bool"))
        scores = self.scores(query, self.repeated(keys, length))
        hidden = const(np.array(-np.inf, np.float32))
        shares = self.op("nn.softmax", self.op("where", seen, scores, hidden))
        mixed = self.op("matmul", shares, self.repeated(values, length))
        return self.op("reshape", self.by_token(mixed), shape((1, length, w.hidden)))

    def rest(self, x: Expr, mixed: Expr) -> Expr:
        """The rest of the layer after attention: projection and inner layer, with residuals."""
        w = self.widths
        attended = self.op("add", x, self.linear(mixed, w.hidden, w.hidden))
        normed = self.norm(attended)
        gate = self.op("nn.silu", self.linear(normed, w.hidden, w.inner))
        gated = self.op("multiply", gate, self.linear(normed, w.hidden, w.inner))
        return call("add", attended, self.linear(gated, w.inner, w.hidden))

    def scores(self, query: Expr, keys: Expr) -> Var:
        product = self.op("matmul", query, self.op("permute_dims", keys, axes=(0, 1, 3, 2)))
        return self.op("multiply", product, const(1 / math.sqrt(self.widths.head)))

    def repeated(self, x: Var, length: int) -> Var:
        """Each group repeated for its heads."""
        w = self.widths
        five = (1, w.groups, w.heads // w.groups, length, w.head)
        wide = self.op("broadcast_to", self.op("expand_dims", x, axis=(2,)), shape(five))
        return self.op("reshape", wide, shape((1, w.heads, length, w.head)))

    def heads(self, x: Var, count: int, length: Dim) -> Var:
        parted = self.op("reshape", x, shape((1, length, count, self.widths.head)))
        return self.by_token(parted)

    def rotate(self, x: Var, turn: tuple[Expr, Expr]) -> Var:
        """The rotary embedding, with pairs of elements from both halves."""
        cos, sin = turn
        half, head = self.widths.head // 2, self.widths.head
        first = self.op("strided_slice", x, shape((0,)), shape((half,)), axes=(3,))
        second = self.op("strided_slice", x, shape((half,)), shape((head,)), axes=(3,))
        other = self.op("concat", Tuple((self.op("negative", second), first)), axis=3)
        return self.op("add", self.op("multiply", x, cos), self.op("multiply", other, sin))

    def norm(self, x: Expr) -> Var:
        weight = 1 + self._random.standard_normal(self.widths.hidden, np.float32) / 8
        return self.op("nn.rms_norm", x, const(weight))

    def linear(self, x: Expr, inputs: int, outputs: int) -> Var:
        return self.op("matmul", x, self._weight(inputs, outputs))

    def _weight(self, inputs: int, outputs: int) -> Constant:
        weight = self._random.standard_normal((inputs, outputs), np.float32)
        weight *= np.float32(1 / math.sqrt(inputs))
        return const(weight)

"""A layer of an encoder and of a decoder, as text; and Megatron's plans for them, by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Widths:
    """The widths of a layer; `groups` are the heads of keys and values of a decoder."""

    hidden: int
    heads: int
    groups: int
    inner: int

    @property
    def head(self) -> int:
        """The elements of a head."""
        return self.hidden // self.heads


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer, its `weights`, its `caches`, and sizes of symbols; `by_hand` is Megatron's plan.

    Both texts have a place for each line of the head of the function, `{head}`.
    """

    name: str
    text: str
    by_hand: Mapping[int, str]
    weights: tuple[str, ...]
    caches: Mapping[str, int] = field(default_factory=dict[str, int])
    hints: Mapping[str, int] = field(default_factory=dict[str, int])


def encoder(w: Widths, batch: int, length: int) -> Layer:
    """A layer of BERT: attention, then two products with an activation, a norm behind each."""
    d, f = w.hidden, w.inner
    matrices = {
        **dict.fromkeys(("query", "key", "value", "output"), (d, d)),
        "up": (d, f),
        "down": (f, d),
    }
    vectors = {**{f"{name}_bias": shape[1] for name, shape in matrices.items()}}
    vectors |= dict.fromkeys(("gamma", "beta", "last_gamma", "last_beta"), d)
    head = _head(f"{batch}, {length}, {d}", {}, matrices, vectors)
    by_hand = {p: head + _encoder_by_hand(w, batch, length, p) for p in (2, 4)}
    text = head + _encoder(w, batch, length)
    return Layer("encoder", text, by_hand, (*matrices, *vectors))


def decoder(w: Widths, past: int) -> Layer:
    """A layer of LLaMA for one token; `past` tokens, as many as it is planned for, are cached."""
    d, f, g, e = w.hidden, w.inner, w.groups, w.head
    matrices = {
        **{"query": (d, d), "key": (d, g * e), "value": (d, g * e), "output": (d, d)},
        **{"gate": (d, f), "up": (d, f), "down": (f, d)},
    }
    vectors: dict[str, int] = {"norm": d, "last_norm": d}
    caches = f'(1, {g}, "past", {e})'
    others = {"cos": f"(1, {e})", "sin": f"(1, {e})", "keys": caches, "values": caches}
    head = _head(f"1, 1, {d}", others, matrices, vectors) + "    past = T.int64()\n"
    by_hand = {p: head + _decoder_by_hand(w, p) for p in (2, 4)}
    weights, kept = (*matrices, *vectors), {"keys": 1, "values": 2}
    return Layer("decoder", head + _decoder(w), by_hand, weights, kept, {"past": past})


def _head(
    x: str,
    others: Mapping[str, str],
    matrices: Mapping[str, tuple[int, int]],
    vectors: Mapping[str, int],
) -> str:
    shapes = {"x": f"({x})", **others}
    shapes |= {name: f"({rows}, {columns})" for name, (rows, columns) in matrices.items()}
    shapes |= {name: f"({n},)" for name, n in vectors.items()}
    lines = [f'    {name}: R.Tensor({shape}, "float32"),\n' for name, shape in shapes.items()]
    return f"@R.function\ndef main(\n{''.join(lines)}):\n"


def _encoder(w: Widths, batch: int, length: int) -> str:
    rows, heads = f"{batch}, {length}", f"R.shape([{batch}, {length}, {w.heads}, {w.head}])"
    return f"""\
    with R.dataflow():
        q0 = R.reshape(R.add(R.matmul(x, query), query_bias), {heads})
        k0 = R.reshape(R.add(R.matmul(x, key), key_bias), {heads})
        v0 = R.reshape(R.add(R.matmul(x, value), value_bias), {heads})
        q = R.permute_dims(q0, axes=[0, 2, 1, 3])
        k = R.permute_dims(k0, axes=[0, 2, 3, 1])
        v = R.permute_dims(v0, axes=[0, 2, 1, 3])
        scores = R.multiply(R.matmul(q, k), R.const({w.head**-0.5}, "float32"))
        mixed = R.permute_dims(R.matmul(R.nn.softmax(scores), v), axes=[0, 2, 1, 3])
        joined = R.reshape(mixed, R.shape([{rows}, {w.hidden}]))
        attended = R.add(R.add(R.matmul(joined, output), output_bias), x)
        normed = R.nn.layer_norm(attended, gamma, beta, axes=[-1])
        inner = R.nn.gelu(R.add(R.matmul(normed, up), up_bias))
        outer = R.add(R.add(R.matmul(inner, down), down_bias), normed)
        out = R.nn.layer_norm(outer, last_gamma, last_beta, axes=[-1])
        R.output(out)
    return out
"""


def _decoder(w: Widths) -> str:
    d, g, e = w.hidden, w.groups, w.head
    return f"""\
    with R.dataflow():
        normed = R.nn.rms_norm(x, norm, axes=[-1])
        q0 = R.reshape(R.matmul(normed, query), R.shape([1, 1, {w.heads}, {e}]))
        k0 = R.reshape(R.matmul(normed, key), R.shape([1, 1, {g}, {e}]))
        v0 = R.reshape(R.matmul(normed, value), R.shape([1, 1, {g}, {e}]))
        q = R.nn.rotary_embedding(R.permute_dims(q0, axes=[0, 2, 1, 3]), cos, sin)
        k = R.nn.rotary_embedding(R.permute_dims(k0, axes=[0, 2, 1, 3]), cos, sin)
        all_keys = R.concat((keys, k), axis=2)
        all_values = R.concat((values, R.permute_dims(v0, axes=[0, 2, 1, 3])), axis=2)
        rows = R.reshape(q, R.shape([1, {g}, {w.heads // g}, {e}]))
        products = R.matmul(rows, R.permute_dims(all_keys, axes=[0, 1, 3, 2]))
        scores = R.multiply(products, R.const({e**-0.5}, "float32"))
        joined = R.reshape(R.matmul(R.nn.softmax(scores), all_values), R.shape([1, 1, {d}]))
        attended = R.add(x, R.matmul(joined, output))
        inner = R.nn.rms_norm(attended, last_norm, axes=[-1])
        gated = R.multiply(R.nn.silu(R.matmul(inner, gate)), R.matmul(inner, up))
        out = R.add(attended, R.matmul(gated, down))
        R.output(out, all_keys, all_values)
    return (out, all_keys, all_values)
"""


# ------------------------------------------------------------------------------------ by hand


def _columns(x: str, weight: str, p: int) -> str:
    """A product with columns of a weight."""
    part = f"R.expand_dims(R.dist.shard({weight}, parts={p}, axis=1), axis=[1])"
    return f"R.matmul({x}, {part})"


def _sum(x: str, weight: str, p: int) -> str:
    """The sum of products with rows of a weight."""
    part = f"R.expand_dims(R.dist.shard({weight}, parts={p}, axis=0), axis=[1])"
    return f"R.dist.all_reduce(R.matmul({x}, {part}))"


def _bias(name: str, width: int, p: int) -> str:
    part = f"R.dist.shard({name}, parts={p}, axis=0)"
    return f"R.reshape({part}, R.shape([{p}, 1, 1, {width // p}]))"


def _encoder_by_hand(w: Widths, batch: int, length: int, p: int) -> str:
    d, rows = w.hidden, f"{p}, {batch}, {length}"
    heads = f"R.shape([{rows}, {w.heads // p}, {w.head}])"

    def projected(name: str) -> str:
        product = f"R.add({_columns('each', name, p)}, {_bias(f'{name}_bias', d, p)})"
        return f"R.reshape({product}, {heads})"

    return f"""\
    with R.dataflow():
        each = R.dist.replicate(x, parts={p})
        q = R.permute_dims({projected("query")}, axes=[0, 1, 3, 2, 4])
        k = R.permute_dims({projected("key")}, axes=[0, 1, 3, 4, 2])
        v = R.permute_dims({projected("value")}, axes=[0, 1, 3, 2, 4])
        scores = R.multiply(R.matmul(q, k), R.const({w.head**-0.5}, "float32"))
        mixed = R.permute_dims(R.matmul(R.nn.softmax(scores), v), axes=[0, 1, 3, 2, 4])
        joined = R.reshape(mixed, R.shape([{rows}, {d // p}]))
        attended = R.add(R.add({_sum("joined", "output", p)}, output_bias), x)
        normed = R.nn.layer_norm(attended, gamma, beta, axes=[-1])
        all = R.dist.replicate(normed, parts={p})
        inner = R.nn.gelu(R.add({_columns("all", "up", p)}, {_bias("up_bias", w.inner, p)}))
        outer = R.add(R.add({_sum("inner", "down", p)}, down_bias), normed)
        out = R.nn.layer_norm(outer, last_gamma, last_beta, axes=[-1])
        R.output(out)
    return out
"""


def _decoder_by_hand(w: Widths, p: int) -> str:
    h, g, e = w.heads // p, w.groups // p, w.head
    return f"""\
    with R.dataflow():
        each = R.dist.replicate(R.nn.rms_norm(x, norm, axes=[-1]), parts={p})
        q0 = R.reshape({_columns("each", "query", p)}, R.shape([{p}, 1, 1, {h}, {e}]))
        k0 = R.reshape({_columns("each", "key", p)}, R.shape([{p}, 1, 1, {g}, {e}]))
        v0 = R.reshape({_columns("each", "value", p)}, R.shape([{p}, 1, 1, {g}, {e}]))
        q = R.nn.rotary_embedding(R.permute_dims(q0, axes=[0, 1, 3, 2, 4]), cos, sin)
        k = R.nn.rotary_embedding(R.permute_dims(k0, axes=[0, 1, 3, 2, 4]), cos, sin)
        v = R.permute_dims(v0, axes=[0, 1, 3, 2, 4])
        all_keys = R.concat((R.dist.shard(keys, parts={p}, axis=1), k), axis=3)
        all_values = R.concat((R.dist.shard(values, parts={p}, axis=1), v), axis=3)
        rows = R.reshape(q, R.shape([{p}, 1, {g}, {h // g}, {e}]))
        products = R.matmul(rows, R.permute_dims(all_keys, axes=[0, 1, 2, 4, 3]))
        scores = R.multiply(products, R.const({e**-0.5}, "float32"))
        mixed = R.matmul(R.nn.softmax(scores), all_values)
        joined = R.reshape(mixed, R.shape([{p}, 1, 1, {w.hidden // p}]))
        attended = R.add(x, {_sum("joined", "output", p)})
        normed = R.nn.rms_norm(attended, last_norm, axes=[-1])
        all = R.dist.replicate(normed, parts={p})
        gated = R.multiply(R.nn.silu({_columns("all", "gate", p)}), {_columns("all", "up", p)})
        out = R.add(attended, {_sum("gated", "down", p)})
        R.output(out, all_keys, all_values)
    return (out, all_keys, all_values)
"""

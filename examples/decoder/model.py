"""A language model of one layer, with a cache of keys and values, and the same in numpy."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from relax_egraph import IRModule, ir
from relax_egraph.script.parser import parse

Array = npt.NDArray[Any]

WIDTH, TOKENS = 32, 64

SCRIPT = """
@I.ir_module
class Decoder:
    @R.function(pure=False)
    def generate(
        first: R.Tensor((1,), "int64"), count: R.Tensor((), "int64"), seed: R.Prim("int64")
    ):
        cls = Decoder
        n = T.int64()
        text = R.call_packed(
            "vm.builtin.kv_cache_create", R.shape([16]), R.str("int64"), sinfo_args=R.Object
        )
        keys = R.call_packed(
            "vm.builtin.kv_cache_create", R.shape([16, 32]), R.str("float32"), sinfo_args=R.Object
        )
        values = R.call_packed(
            "vm.builtin.kv_cache_create", R.shape([16, 32]), R.str("float32"), sinfo_args=R.Object
        )
        random = R.call_packed("vm.builtin.rng_state", seed, sinfo_args=R.Object)
        _ = cls.write(first, count, text, keys, values, random)
        length = R.call_packed("vm.builtin.kv_cache_length", text, sinfo_args=R.Prim("int64"))
        _ = R.match_cast(length, R.Prim(value="n"))
        return R.call_packed(
            "vm.builtin.kv_cache_view", text, R.shape([n]), sinfo_args=R.Tensor((n,), "int64")
        )

    @R.function(private=True, pure=False)
    def write(
        token: R.Tensor((1,), "int64"),
        left: R.Tensor((), "int64"),
        text: R.Object,
        keys: R.Object,
        values: R.Object,
        random: R.Object,
    ) -> R.Object:
        cls = Decoder
        more = R.greater(left, R.const(0, "int64"))
        if more:
            chosen = cls.following(token, keys, values, random)
            _ = R.call_packed("vm.builtin.kv_cache_append", text, chosen, sinfo_args=R.Object)
            less = R.subtract(left, R.const(1, "int64"))
            done = cls.write(chosen, less, text, keys, values, random)
        else:
            done = text
        return done

    @R.function(private=True, pure=False)
    def following(
        token: R.Tensor((1,), "int64"), keys: R.Object, values: R.Object, random: R.Object
    ) -> R.Tensor((1,), "int64"):
        cls = Decoder
        n = T.int64()
        x = R.take(EMBEDDING, token, axis=0)
        all_keys = cls.appended(keys, R.matmul(x, KEY))
        all_values = cls.appended(values, R.matmul(x, VALUE))
        k = R.match_cast(all_keys, R.Tensor((n, 32), "float32"))
        v = R.match_cast(all_values, R.Tensor((n, 32), "float32"))
        drawn = R.call_packed(
            "vm.builtin.rng_uniform",
            random,
            R.zeros(R.shape([1, 64]), "float32"),
            sinfo_args=R.Tensor((1, 64), "float32"),
        )
        with R.dataflow():
            scores = R.matmul(R.matmul(x, QUERY), R.permute_dims(k))
            attended = R.add(x, R.matmul(R.nn.softmax(scores, axis=-1), v))
            inner = R.nn.gelu(R.matmul(attended, UP))
            hidden = R.add(attended, R.matmul(inner, DOWN))
            logits = R.matmul(hidden, R.permute_dims(EMBEDDING))
            noise = R.negative(R.log(R.negative(R.log(drawn))))
            chosen = R.argmax(R.add(logits, noise), axis=-1)
            R.output(chosen)
        return chosen

    @R.function(private=True, pure=False)
    def appended(
        cache: R.Object, row: R.Tensor((1, 32), "float32")
    ) -> R.Tensor("float32", ndim=2):
        n = T.int64()
        _ = R.call_packed("vm.builtin.kv_cache_append", cache, row, sinfo_args=R.Object)
        length = R.call_packed("vm.builtin.kv_cache_length", cache, sinfo_args=R.Prim("int64"))
        _ = R.match_cast(length, R.Prim(value="n"))
        return R.call_packed(
            "vm.builtin.kv_cache_view",
            cache,
            R.shape([n, 32]),
            sinfo_args=R.Tensor((n, 32), "float32"),
        )
"""
"""``generate`` returns the `count` tokens that follow `first`.

``write`` is its loop: a function whose last act is to call itself.  Caches grow in place, ``n`` is
how many tokens they have seen.  A token is drawn by adding noise of Gumbel's distribution to the
logits.
"""

_SHAPES = {
    "EMBEDDING": (TOKENS, WIDTH),
    "QUERY": (WIDTH, WIDTH),
    "KEY": (WIDTH, WIDTH),
    "VALUE": (WIDTH, WIDTH),
    "UP": (WIDTH, 4 * WIDTH),
    "DOWN": (4 * WIDTH, WIDTH),
}


def weights(seed: int = 0) -> dict[str, Array]:
    """Weights by the names that they have in `SCRIPT`; nobody has trained them."""
    random = np.random.default_rng(seed)
    drawn = {name: random.standard_normal(s, np.float32) for name, s in _SHAPES.items()}
    return {name: w / np.float32(math.sqrt(len(w))) for name, w in drawn.items()}


def build_model(weights: dict[str, Array]) -> IRModule:
    """`SCRIPT` with `weights` as its constants."""
    text = SCRIPT
    for number, name in enumerate(weights):
        text = text.replace(name, f'metadata["relax.expr.Constant"][{number}]')
    return parse(text, constants=[ir.const(w) for w in weights.values()])


def generate(weights: dict[str, Array], first: int, count: int, seed: int) -> list[int]:
    """The tokens that follow `first`, by numpy and without a cache."""
    p, random = weights, np.random.Generator(np.random.Philox(seed))
    tokens = [first]
    for _ in range(count):
        x = p["EMBEDDING"][tokens]
        scores = np.exp(x[-1:] @ p["QUERY"] @ (x @ p["KEY"]).T)
        attended = x[-1:] + scores / scores.sum() @ (x @ p["VALUE"])
        hidden = attended + _gelu(attended @ p["UP"]) @ p["DOWN"]
        logits = hidden @ p["EMBEDDING"].T
        noise = -np.log(-np.log(random.random((1, TOKENS), np.float32)))
        tokens.append(int(np.argmax(logits + noise)))
    return tokens[1:]


def _gelu(x: Array) -> Array:
    erf = np.vectorize(math.erf, otypes=[np.float32])
    return x * (1 + erf(x / math.sqrt(2))) / 2

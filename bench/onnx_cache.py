"""Attention over caches that grow in place, which is one operator in ONNX.

``GroupQueryAttention`` takes the rows and the caches, and returns its result and the grown caches,
which may be bound to the memory of the original ones.
"""

from collections.abc import Callable, Mapping

import numpy as np

from bench.llama import APPEND
from bench.onnx_nodes import Writer, extents_of, onnx
from bench.program import NotRunnable, Operand, Step

DOMAIN = "com.microsoft"
TOKENS_FIRST = (0, 2, 1, 3)


def grown(cache: str) -> str:
    """The name of the grown cache of a parameter."""
    return f"{cache}_grown"


def _append_row(writer: Writer, step: Step) -> None:
    cache, row = writer.operands(step)
    writer.appended[writer.result(step)] = (cache, row)


def _permute_dims(writer: Writer, step: Step) -> None:
    (x,), axes = writer.operands(step), step.attrs["axes"]
    if x in writer.appended and axes == TOKENS_FIRST:
        writer.appended[writer.result(step)] = writer.appended[x]
        return
    order = {} if axes is None else {"perm": axes}
    writer.node("Transpose", [x], writer.result(step), **order)


def _attention(writer: Writer, step: Step) -> None:
    query, *caches = writer.operands(step)
    if len(caches) != 2 or not all(c in writer.appended for c in caches):
        raise NotRunnable("nn.attention: needs caches that grow in place")
    if any(step.attrs[a] is not None for a in ("scale", "causal_mask", "window_size")):
        raise NotRunnable("nn.attention: needs no scale and no mask of its own")
    result = writer.result(step)
    heads, groups = (_heads(o) for o in step.operands[:2])
    (keys, key), (values, value) = (writer.appended[c] for c in caches)
    rows = [
        writer.reshaped(x, f"{result}_{use}", shape)
        for use, x, shape in (
            ("query", query, (0, 0, -1)),
            ("key", key, (0, 1, -1)),
            ("value", value, (0, 1, -1)),
        )
    ]
    length = writer.node("Shape", [keys], f"{result}_tokens", start=2, end=3)
    length = writer.node("Cast", [length], f"{result}_length", to=onnx.TensorProto.INT32)
    whole = writer.node("Squeeze", [length], f"{result}_whole")
    one = writer.tensor(f"{result}_one", np.array([1], np.int32))
    before = writer.node("Sub", [length, one], f"{result}_before")
    out = f"{result}_rows"
    operands, caches = [*rows, keys, values, before, whole], (grown(keys), grown(values))
    counts = {"num_heads": heads, "kv_num_heads": groups}
    writer.node("GroupQueryAttention", operands, out, *caches, domain=DOMAIN, **counts)
    writer.reshaped(out, result, (0, 0, heads, -1))


def _heads(x: Operand) -> int:
    count = extents_of(x)[2]
    assert isinstance(count, int)
    return count


OPERATORS: Mapping[str, Callable[[Writer, Step], None]] = {
    APPEND: _append_row,
    "permute_dims": _permute_dims,
    "nn.attention": _attention,
}

"""Instances of attention."""

from collections.abc import Mapping

from relax_egraph.ir.expr import Attr
from tests.support.ops.case import FLOATS, Array, Case, Draw, Sampler


def operands(draw: Draw) -> tuple[Array, ...]:
    """Query, key, value and bias."""
    batch, queries, keys, size, width = (draw.extent() for _ in range(5))
    heads, dtype = draw.choice([1, 2, 4, 6]), draw.choice(FLOATS)
    of_key, of_value = (draw.choice([h for h in (1, 2, heads) if heads % h == 0]) for _ in "kv")
    whole = (batch, heads, queries)
    bias = (*(1 if draw.chance(0.3) else d for d in whole), keys)
    shapes = (
        (batch, queries, heads, size),
        (batch, keys, of_key, size),
        (batch, keys, of_value, width),
        bias,
    )
    return tuple(draw.array(shape, dtype) for shape in shapes)


def attrs(draw: Draw) -> dict[str, Attr]:
    mask = draw.choice([None, "TopLeft", "BottomRight"])
    return {
        "scale": draw.choice([None, 0.25]),
        "causal_mask": mask,
        "window_size": None if mask is None else draw.choice([None, 1, 3]),
    }


def attention(draw: Draw) -> Case:
    return Case(operands(draw)[: draw.integer(3, 4)], attrs(draw), error=2e-5)


def attention_bias(draw: Draw) -> Case:
    return Case(operands(draw), attrs(draw), error=2e-5)


SAMPLERS: Mapping[str, Sampler] = {
    "nn.attention": attention,
    "nn.attention_bias": attention_bias,
}

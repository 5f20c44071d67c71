"""Instances of losses and dropout."""

from collections.abc import Mapping

from tests.support.ops.case import ANY, FLOATS, INTEGERS, Case, Draw, Sampler


def dropout(draw: Draw) -> Case:
    return Case((draw.array(draw.shape(), draw.choice(ANY)),), {"rate": draw.choice([0, 0.5])})


def cross_entropy(draw: Draw) -> Case:
    shape, dtype = draw.shape(0, 4), draw.choice(FLOATS)
    return Case((draw.array(shape, dtype), draw.array(shape, dtype)), error=2e-5)


def nll_loss(draw: Draw) -> Case:
    """Targets with some out of range on either side, and some that are ignored."""
    classes, dtype = draw.extent(1), draw.choice(FLOATS)
    batch, *rest = draw.shape(1, 3)
    shape, each = draw.choice([((classes,), ()), ((batch, classes, *rest), (batch, *rest))])
    targets = draw.array(each, draw.choice(INTEGERS), -2, classes + 1)
    operands = (draw.array(shape, dtype), targets, draw.array((classes,), dtype, 0.5, 2))
    attrs = {
        "reduction": draw.choice(["mean", "sum", "none"]),
        "ignore_index": draw.choice([-100, -1, 0]),
    }
    return Case(operands[: draw.integer(2, 3)], attrs, error=2e-5)


SAMPLERS: Mapping[str, Sampler] = {
    "nn.dropout": dropout,
    "nn.cross_entropy_with_logits": cross_entropy,
    "nn.nll_loss": nll_loss,
}

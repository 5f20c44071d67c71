"""Instances of products of matrices and tensors."""

from collections.abc import Mapping

from tests.ops.case import ANY, Case, Draw, Sampler


def matmul(draw: Draw) -> Case:
    rows, inner, columns = (draw.extent() for _ in range(3))
    batch, dtype = draw.shape(0, 2), draw.choice(ANY)
    x = draw.choice([(inner,), (*batch, rows, inner)])
    y = draw.choice([(inner,), (*draw.part(batch), inner, columns)])
    return Case((draw.array(x, dtype), draw.array(y, dtype)), error=2e-5)


SAMPLERS: Mapping[str, Sampler] = {"matmul": matmul}

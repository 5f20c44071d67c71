"""Instances of scans."""

from collections.abc import Mapping

from relax_egraph.ir.expr import Attr
from tests.support.ops.case import ANY, Case, Draw, Sampler


def scan(draw: Draw) -> Case:
    """Scans along any axis, or of all elements, in any dtype."""
    shape = draw.shape()
    axis = draw.axis(len(shape)) if shape and draw.chance(0.7) else None
    dtype = draw.choice(ANY) if draw.chance() else None
    attrs: dict[str, Attr] = {"axis": axis, "dtype": dtype, "exclusive": draw.chance()}
    return Case((draw.array(shape, draw.choice(ANY), 0, 3),), attrs)


SAMPLERS: Mapping[str, Sampler] = {"cumsum": scan, "cumprod": scan}

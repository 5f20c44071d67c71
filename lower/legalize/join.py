"""Operators that join, cut and repeat tensors."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize

LEGALIZE: Mapping[str, Legalize] = {}

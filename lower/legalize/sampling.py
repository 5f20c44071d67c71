"""Draws from distributions, given the random numbers."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize

LEGALIZE: Mapping[str, Legalize] = {}

"""Searches: positions of extremes, places in sorted sequences."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize

LEGALIZE: Mapping[str, Legalize] = {}

"""Reading and writing at positions that other tensors give."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize

LEGALIZE: Mapping[str, Legalize] = {}

"""Images: padding, resizing, and pixels moved between space and channels."""

from collections.abc import Mapping

from relax_egraph.lower.legalize.elementwise import Legalize

LEGALIZE: Mapping[str, Legalize] = {}

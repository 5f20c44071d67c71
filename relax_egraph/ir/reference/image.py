"""Images: padding, resizing, and pixels moved between space and channels."""

from collections.abc import Mapping

from relax_egraph.ir.reference.array import Reference

REFERENCE: Mapping[str, Reference] = {}

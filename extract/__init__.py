"""Extraction: choose the cheapest program of a saturated e-graph, and prove how good it is."""

from relax_egraph.extract.before import cost_of_view
from relax_egraph.extract.cost import REFERENCE_PROFILE, Profile, price
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.run import Extraction, extract

__all__ = [
    "REFERENCE_PROFILE",
    "Bounds",
    "Extraction",
    "KernelLibrary",
    "Profile",
    "cost_of_view",
    "extract",
    "price",
]

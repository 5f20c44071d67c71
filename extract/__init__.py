"""Extraction: the cheapest program of a saturated e-graph, with a proven bound."""

from relax_egraph.extract.baseline import baseline_cost
from relax_egraph.extract.cost import Sizes
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.plain import METHODS, Method, PlainExtraction, extract_egraph
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.pricing import HINTS, Hints, Pricing, price, scenarios_of
from relax_egraph.extract.profile import REFERENCE_PROFILE, Level, Profile
from relax_egraph.extract.run import Extraction, extract
from relax_egraph.extract.serialize import PricedView, serialize
from relax_egraph.extract.serialized import SerializedEGraph, read_egraph

__all__ = [
    "HINTS",
    "METHODS",
    "REFERENCE_PROFILE",
    "Bounds",
    "Extraction",
    "Hints",
    "KernelLibrary",
    "Level",
    "Method",
    "PlainExtraction",
    "PricedView",
    "Prices",
    "Pricing",
    "Profile",
    "SerializedEGraph",
    "Sizes",
    "baseline_cost",
    "extract",
    "extract_egraph",
    "price",
    "read_egraph",
    "scenarios_of",
    "serialize",
]

"""Extraction: the cheapest program of a saturated e-graph, with a proven bound."""

from typing import TYPE_CHECKING

from relax_egraph.base.lazy import load_lazily

if TYPE_CHECKING:
    from relax_egraph.extract.baseline import baseline_cost as baseline_cost
    from relax_egraph.extract.baseline import baseline_from as baseline_from
    from relax_egraph.extract.cost import Sizes as Sizes
    from relax_egraph.extract.cuts import Bounds as Bounds
    from relax_egraph.extract.effort import Effort as Effort
    from relax_egraph.extract.effort import effort_of as effort_of
    from relax_egraph.extract.library import KernelLibrary as KernelLibrary
    from relax_egraph.extract.methods import METHODS as METHODS
    from relax_egraph.extract.methods import Method as Method
    from relax_egraph.extract.offers import Offers as Offers
    from relax_egraph.extract.plain import PlainExtraction as PlainExtraction
    from relax_egraph.extract.plain import extract_egraph as extract_egraph
    from relax_egraph.extract.prices import PricedCall as PricedCall
    from relax_egraph.extract.prices import Prices as Prices
    from relax_egraph.extract.pricing import HINTS as HINTS
    from relax_egraph.extract.pricing import Hints as Hints
    from relax_egraph.extract.pricing import Pricing as Pricing
    from relax_egraph.extract.pricing import price as price
    from relax_egraph.extract.pricing import scenarios_of as scenarios_of
    from relax_egraph.extract.profile import REFERENCE_PROFILE as REFERENCE_PROFILE
    from relax_egraph.extract.profile import Level as Level
    from relax_egraph.extract.profile import Profile as Profile
    from relax_egraph.extract.run import Extraction as Extraction
    from relax_egraph.extract.run import extract as extract
    from relax_egraph.extract.run import extract_from as extract_from
    from relax_egraph.extract.serialize import PricedView as PricedView
    from relax_egraph.extract.serialize import serialize as serialize
    from relax_egraph.extract.serialized import SerializedEGraph as SerializedEGraph
    from relax_egraph.extract.serialized import read_egraph as read_egraph

load_lazily(
    __name__,
    {
        "relax_egraph.extract.baseline": ["baseline_cost", "baseline_from"],
        "relax_egraph.extract.cost": ["Sizes"],
        "relax_egraph.extract.cuts": ["Bounds"],
        "relax_egraph.extract.effort": ["Effort", "effort_of"],
        "relax_egraph.extract.library": ["KernelLibrary"],
        "relax_egraph.extract.methods": ["METHODS", "Method"],
        "relax_egraph.extract.offers": ["Offers"],
        "relax_egraph.extract.plain": ["PlainExtraction", "extract_egraph"],
        "relax_egraph.extract.prices": ["PricedCall", "Prices"],
        "relax_egraph.extract.pricing": ["HINTS", "Hints", "Pricing", "price", "scenarios_of"],
        "relax_egraph.extract.profile": ["REFERENCE_PROFILE", "Level", "Profile"],
        "relax_egraph.extract.run": ["Extraction", "extract", "extract_from"],
        "relax_egraph.extract.serialize": ["PricedView", "serialize"],
        "relax_egraph.extract.serialized": ["SerializedEGraph", "read_egraph"],
    },
)

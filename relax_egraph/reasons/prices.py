"""Prices of the kernels of a result, by the cost model that chose them."""

import math
from collections.abc import Iterable

from relax_egraph.egraph.node import OPAQUE, TUPLE_GET, WHOLE
from relax_egraph.extract import Prices, Profile
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cost import VIEW
from relax_egraph.extract.nodes import is_call
from relax_egraph.extract.offers import Offers
from relax_egraph.extract.pricing import Pricing
from relax_egraph.ir.kernel import Kernel
from relax_egraph.lower.library import Library
from relax_egraph.reasons.kernels import Running


def seconds_of(
    running: Iterable[Running], profile: Profile, prices: Prices | None
) -> tuple[float | None, ...]:
    """The estimated seconds of one run of each call; ``None`` if the model has no price for it."""
    library = Library()
    priced: dict[int, tuple[Pricing, Catalogue]] = {}

    def seconds(one: Running) -> float | None:
        region, how = one.placed.region, one.choice.how
        view = region.view
        if id(region) not in priced:
            hints = [(s.weight, s.sizes) for s in region.priced_at]
            at = Pricing(profile, hints, prices)
            priced[id(region)] = at, Catalogue(view.classes, Offers(library, at))
        pricing, catalogue = priced[id(region)]
        if all(view.classes[c].is_const for c in one.choice.outputs):
            return 0.0  # computed once, before the program runs
        if isinstance(how, Kernel):
            schedule = library.schedule_of(how)
            return None if schedule is None else pricing.kernel(how, schedule)
        if how.op == OPAQUE:
            return catalogue.opaque(view.opaque[how.key])
        if is_call(how):
            return catalogue.call_cost(how)
        if how.op in (TUPLE_GET, WHOLE):
            return VIEW
        return catalogue.operator_cost(one.choice.outputs[0], how)

    prices_of = (seconds(one) for one in running)
    return tuple(None if s is None or not math.isfinite(s) else s for s in prices_of)

"""The baseline: what a program costs unoptimized, with every operator a kernel of its own."""

from relax_egraph.egraph.node import OPAQUE
from relax_egraph.egraph.view import Choice, ClassId, View
from relax_egraph.extract import cost
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.choices import PricedChoice, by_call, by_kernel, by_opaque, by_operator
from relax_egraph.extract.free_values import free_values_of
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.nodes import fits_kernel, is_alias, is_call
from relax_egraph.extract.offers import Offers
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.pricing import Hints, Pricing
from relax_egraph.extract.profile import REFERENCE_PROFILE, Profile
from relax_egraph.extract.single_operator import cut_with_broadcasts, operator_cut


def baseline_cost(
    view: View,
    library: KernelLibrary,
    *,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
    prices: Prices | None = None,
) -> float:
    """Seconds for an unsaturated `view`, which has one node per class and no kernel classes.

    An elementwise operator broadcasts its operands itself if the library runs it so: encoding has
    made broadcasts explicit; the source program had none.
    """
    return baseline_from(view, Offers(library, Pricing(profile, hints, prices)))


def baseline_from(view: View, offers: Offers) -> float:
    """What `baseline_cost` returns, by `offers`, which the views of a module share."""
    catalogue = Catalogue(view.classes, offers)
    free = free_values_of(view)
    total = 0.0
    todo = [root for root in dict.fromkeys(view.roots) if root not in free.choices]
    seen = {*todo, *free.choices}
    while todo:
        priced = _priced(view, todo.pop(), catalogue)
        total += priced.cost + free.build_cost(priced.choice.inputs)
        new = [c for c in dict.fromkeys(priced.choice.inputs) if c not in seen]
        todo.extend(new)
        seen.update(new)
    return total


def _priced(view: View, c: ClassId, catalogue: Catalogue) -> PricedChoice:
    (node,) = view.classes[c].nodes
    if node.op == OPAQUE:
        return by_opaque(catalogue, c, node, view.opaque[node.key])
    if is_call(node):
        return by_call(catalogue, c, node)
    if is_alias(node):
        return PricedChoice(Choice(node, node.operands, (c,)), cost.VIEW)
    if view.classes[c].sort == "tuple" or not fits_kernel(node):
        return by_operator(catalogue, c, node)
    return (
        by_kernel(catalogue, c, cut_with_broadcasts(view.classes, catalogue, c, node))
        or by_kernel(catalogue, c, operator_cut(catalogue, c, node))
        or by_operator(catalogue, c, node)
    )

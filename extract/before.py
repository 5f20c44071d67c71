"""What a program costs before optimization: every operator is a kernel of its own."""

from relax_egraph.egraph.view import OPAQUE, Choice, ClassId, View
from relax_egraph.extract import cost
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.given import given_in
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.nodes import fits_kernel, is_handle
from relax_egraph.extract.prices import Prices
from relax_egraph.extract.pricing import Hints, Pricing
from relax_egraph.extract.profile import REFERENCE_PROFILE, Profile
from relax_egraph.extract.single import alone, broadcasting
from relax_egraph.extract.ways import Way, by_kernel, kept, standing


def cost_of_view(
    view: View,
    library: KernelLibrary,
    *,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
    prices: Prices | None = None,
) -> float:
    """Seconds for an unsaturated `view`, of one node for each class and no kernel classes.

    An elementwise operator broadcasts its operands by itself, as it did before broadcasts
    were made explicit, if the library runs it so.
    """
    catalogue = Catalogue(view.classes, library, Pricing(profile, hints, prices))
    given = given_in(view)
    total = 0.0
    todo = [root for root in dict.fromkeys(view.roots) if root not in given.choice]
    seen = {*todo, *given.choice}
    while todo:
        way = _way(view, todo.pop(), catalogue)
        total += way.cost + given.building(way.choice.inputs)
        new = [c for c in dict.fromkeys(way.choice.inputs) if c not in seen]
        todo.extend(new)
        seen.update(new)
    return total


def _way(view: View, c: ClassId, catalogue: Catalogue) -> Way:
    (node,) = view.classes[c].nodes
    if node.op == OPAQUE:
        return kept(catalogue, c, node, view.opaque[node.key])
    if is_handle(node):
        return Way(Choice(node, node.classes, (c,)), cost.VIEW)
    if view.classes[c].sort == "tuple" or not fits_kernel(node):
        return standing(catalogue, c, node)
    return (
        by_kernel(catalogue, c, broadcasting(view.classes, catalogue, c, node))
        or by_kernel(catalogue, c, alone(catalogue, c, node))
        or standing(catalogue, c, node)
    )

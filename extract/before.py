"""What a program costs before optimization: every operator is a kernel of its own."""

from relax_egraph.egraph.view import OPAQUE, Choice, ClassId, View
from relax_egraph.extract import cost
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.cost import REFERENCE_PROFILE, Costs, Hints, Profile
from relax_egraph.extract.library import KernelLibrary
from relax_egraph.extract.nodes import is_folded, is_there
from relax_egraph.extract.ways import Way, alone, at_run_time, broadcasting, by_kernel


def cost_of_view(
    view: View,
    library: KernelLibrary,
    *,
    profile: Profile = REFERENCE_PROFILE,
    hints: Hints | None = None,
) -> float:
    """Seconds for an unsaturated `view`, of one node for each class and no kernel classes.

    An elementwise operator broadcasts its operands by itself, as it did before broadcasts
    were made explicit, if the library runs it so.
    """
    costs = Costs(profile, hints)
    catalogue = Catalogue(view.classes, library, costs)
    total = 0.0
    todo, seen = list(view.roots), set(view.roots)
    while todo:
        way = _way(view, todo.pop(), catalogue, costs)
        total += way.cost
        new = [c for c in dict.fromkeys(way.choice.inputs) if c not in seen]
        todo.extend(new)
        seen.update(new)
    return total


def _way(view: View, c: ClassId, catalogue: Catalogue, costs: Costs) -> Way:
    (node,) = view.classes[c].nodes
    standing = Choice(node, node.classes, (c,))
    if is_there(node):
        return Way(standing, 0.0)
    if node.op == OPAQUE:
        return Way(standing, cost.OPAQUE)
    if is_folded(view.classes, c):
        return Way(standing, cost.BUILD)
    (called,) = at_run_time(view.classes, c, costs)
    return (
        by_kernel(catalogue, c, broadcasting(view.classes, catalogue, c, node))
        or by_kernel(catalogue, c, alone(catalogue, c, node))
        or called
    )

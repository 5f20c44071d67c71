"""All the ways to make each tensor class that the roots may need, priced.

* a leaf, a scalar or a constant is given; an opaque binding is run as it stands;
* any other class is made by kernels: each of its operators alone, with the broadcasts that it
  makes by itself or without, and the cuts of what it stores;
* by operators that are no kernel's step as they stand: by loops of their own, else called.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.view import OPAQUE, STORE, Choice, ClassId, EClass, ENode, View
from relax_egraph.extract import cost
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.components import components
from relax_egraph.extract.cut import Cut
from relax_egraph.extract.cuts import Bounds, CutList, Loads, cuts_of
from relax_egraph.extract.given import Given, given_in
from relax_egraph.extract.nodes import (
    below,
    is_handle,
    is_operator,
    reached,
)
from relax_egraph.extract.pricing import Pricing
from relax_egraph.extract.single import cuts_alone
from relax_egraph.ir.expr import Binding
from relax_egraph.ir.folding import GROWTH_LIMIT
from relax_egraph.ir.op import OPS

_ROUNDS = 4
"""How often the classes of one cycle are gone through, until what they cost has settled."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to make a class, at `cost` seconds."""

    choice: Choice
    cost: float


@dataclass(slots=True)
class Ways:
    """The ways of each tensor class, and the cuts of each kernel class.

    `making` is a user's part of what it takes to make a class, the smaller the more users it has.
    """

    given: Given
    loads: Loads

    of: dict[ClassId, tuple[Way, ...]] = field(default_factory=dict[ClassId, tuple[Way, ...]])
    cuts: dict[ClassId, CutList] = field(default_factory=dict[ClassId, CutList])
    making: dict[ClassId, float] = field(default_factory=dict[ClassId, float])

    @property
    def dropped(self) -> int:
        """How many cuts met a bound."""
        return sum(found.dropped for found in self.cuts.values())


def ways_of(
    view: View,
    catalogue: Catalogue,
    pricing: Pricing,
    bounds: Bounds,
    growth_limit: int = GROWTH_LIMIT,
) -> Ways:
    """Weigh every class that the roots of `view` may need, after those it is made of.

    What is given has no ways; a way's cost is with that of the constants it reads.
    """
    given = given_in(view, growth_limit)
    nodes = reached(view, given.choice)
    users = dict.fromkeys(nodes, 0)
    for found in nodes.values():
        for k in below(tuple(filter(is_operator, found))):
            users[k] += 1
    ways = Ways(given, Loads(dict.fromkeys(nodes, math.inf), frozenset(given.choice)))
    ways.making.update(dict.fromkeys(nodes, math.inf))
    for c in given.choice.keys() & nodes.keys():
        ways.making[c], ways.loads.seconds[c] = 0.0, _reading(view.classes[c], pricing)
    terms = {
        c: [catalogue.term(c, node) for node in found]
        for c, found in nodes.items()
        if view.classes[c].sort == "kernel"
    }
    edges = {c: below(found) for c, found in nodes.items()}
    for members in components(edges):
        kernels = [c for c in members if c in terms]
        tensors = [c for c in members if c not in terms and c not in given.choice]
        for _ in range(_ROUNDS if len(members) > 2 else 1):
            before = [ways.making[c] for c in tensors]
            for c in kernels:
                ways.cuts[c] = cuts_of(terms[c], ways.cuts, ways.loads, catalogue, bounds)
            for c in tensors:
                ways.of[c] = _ways(view, c, nodes[c], ways, catalogue)
                ways.making[c] = _least(ways.of[c], ways.making) / max(1, users[c])
                ways.loads.seconds[c] = ways.making[c] + _reading(view.classes[c], pricing)
            if before == [ways.making[c] for c in tensors]:
                break
    return ways


def kept(catalogue: Catalogue, c: ClassId, node: ENode, binding: Binding) -> Way:
    """Class `c` by the opaque `node`: `binding` as it stands."""
    return Way(Choice(node, node.classes, (c,)), catalogue.opaque(binding))


def standing(catalogue: Catalogue, c: ClassId, node: ENode) -> Way:
    """The operator `node` of class `c` as it stands, not as a kernel's step."""
    return Way(Choice(node, node.classes, (c,)), catalogue.standing(c, node))


def by_kernel(catalogue: Catalogue, c: ClassId, cut: Cut) -> Way | None:
    """Class `c` by the kernel that computes `cut`; ``None`` if the library does not run it."""
    offer = catalogue.offer(cut)
    return offer and Way(Choice(offer.kernel, cut.leaves, (c,)), offer.seconds)


def _ways(
    view: View,
    c: ClassId,
    nodes: tuple[ENode, ...],
    ways: Ways,
    catalogue: Catalogue,
) -> tuple[Way, ...]:
    found: list[Way] = []
    for node in nodes:
        if node.op == OPAQUE:
            found.append(kept(catalogue, c, node, view.opaque[node.key]))
        elif is_handle(node):
            found.append(Way(Choice(node, node.classes, (c,)), cost.VIEW))
        elif node.op == STORE:
            weighed = ways.cuts.get(node.classes[0], CutList(())).kept
            cuts = (w.cut for w in weighed if w.offer is not None)
            found += filter(None, (by_kernel(catalogue, c, cut) for cut in cuts))
        else:
            found += _operator(view.classes, c, node, catalogue)
    built = (ways.given.building(way.choice.inputs) for way in found)
    return tuple(Way(w.choice, w.cost + more) for w, more in zip(found, built, strict=True))


def _operator(
    classes: Mapping[ClassId, EClass], c: ClassId, node: ENode, catalogue: Catalogue
) -> list[Way]:
    """The operator `node` of class `c` by itself: as a kernel, else as it stands."""
    if classes[c].sort == "tuple":
        return [standing(catalogue, c, node)]
    cuts = cuts_alone(classes, catalogue, c, node)
    kernels = [*filter(None, (by_kernel(catalogue, c, cut) for cut in cuts))]
    own = [] if kernels and OPS[node.op].fusible else [standing(catalogue, c, node)]
    return kernels + own


def _least(found: tuple[Way, ...], making: Mapping[ClassId, float]) -> float:
    """What the cheapest of `found` costs, with its part of making its inputs."""
    totals = (way.cost + sum(making[k] for k in way.choice.inputs) for way in found)
    return min(totals, default=math.inf)


def _reading(eclass: EClass, pricing: Pricing) -> float:
    if eclass.scalar is not None and eclass.struct_info.dims == ():
        return 0.0
    return pricing.reading(eclass.struct_info)

"""All the ways to make each tensor class that the roots may need, priced.

* a leaf or a scalar is there; an opaque binding is run as it stands;
* a constant is made by operators on constants as they stand: they are folded, not run;
* any other class by kernels: each of its operators alone, with the broadcasts that it makes by
  itself or without, and the cuts of what it stores;
* by its operators as they stand, called at run time, only if no kernel makes it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.view import OPAQUE, STORE, Choice, ClassId, EClass, ENode, View
from relax_egraph.extract import cost
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.components import components
from relax_egraph.extract.cost import Costs
from relax_egraph.extract.cut import Cut, Term, trace
from relax_egraph.extract.cuts import Bounds, CutList, Loads, cuts_of
from relax_egraph.extract.nodes import below, is_folded, is_operator, is_there, reached
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

    loads: Loads

    of: dict[ClassId, tuple[Way, ...]] = field(default_factory=dict[ClassId, tuple[Way, ...]])
    cuts: dict[ClassId, CutList] = field(default_factory=dict[ClassId, CutList])
    making: dict[ClassId, float] = field(default_factory=dict[ClassId, float])

    @property
    def dropped(self) -> int:
        """How many cuts met a bound."""
        return sum(found.dropped for found in self.cuts.values())


def ways_of(view: View, catalogue: Catalogue, costs: Costs, bounds: Bounds) -> Ways:
    """Weigh every class that the roots of `view` may need, after those it is made of."""
    nodes = reached(view)
    users = dict.fromkeys(nodes, 0)
    for found in nodes.values():
        for k in below(tuple(filter(is_operator, found))):
            users[k] += 1
    free = (
        c for c, found in nodes.items() if any(map(is_there, found)) or is_folded(view.classes, c)
    )
    ways = Ways(Loads(dict.fromkeys(nodes, math.inf), frozenset(free)))
    ways.making.update(dict.fromkeys(nodes, math.inf))
    terms = {
        c: [catalogue.term(c, node) for node in found]
        for c, found in nodes.items()
        if view.classes[c].sort == "kernel"
    }
    for members in components({c: below(found) for c, found in nodes.items()}):
        kernels = [c for c in members if c in terms]
        tensors = [c for c in members if c not in terms]
        for _ in range(_ROUNDS if len(members) > 2 else 1):
            before = [ways.making[c] for c in tensors]
            for c in kernels:
                ways.cuts[c] = cuts_of(terms[c], ways.cuts, ways.loads, catalogue, bounds)
            for c in tensors:
                ways.of[c] = _ways(view.classes, c, nodes[c], ways, catalogue, costs)
                ways.making[c] = _least(ways.of[c], ways.making) / max(1, users[c])
                ways.loads.seconds[c] = ways.making[c] + _reading(view.classes[c], costs)
            if before == [ways.making[c] for c in tensors]:
                break
    return ways


def at_run_time(classes: Mapping[ClassId, EClass], c: ClassId, costs: Costs) -> tuple[Way, ...]:
    """The operators of class `c` as they stand, called at run time."""
    info = classes[c].struct_info
    return tuple(
        Way(
            Choice(node, node.classes, (c,)),
            costs.runtime_call(node.op, info, tuple(classes[k].struct_info for k in node.classes)),
        )
        for node in classes[c].nodes
        if is_operator(node)
    )


def alone(catalogue: Catalogue, c: ClassId, node: ENode) -> Cut:
    """The cut that is the operator `node` of the tensor class `c`, and nothing else."""
    terms = {k: Term(k, node, -1, source=k) for k in node.classes}
    return trace(c, terms | {c: catalogue.term(c, node)})


def broadcasting(
    classes: Mapping[ClassId, EClass], catalogue: Catalogue, c: ClassId, node: ENode
) -> Cut:
    """The operator `node` of class `c` with the broadcasts of its operands, if elementwise."""
    terms = {c: catalogue.term(c, node)}
    for k in node.classes:
        spread = (n for n in classes[k].nodes if n.op == "broadcast_to")
        others = (n for n in spread if n.classes[0] not in (c, *node.classes))
        operand = next(others, None) if OPS[node.op].elementwise else None
        if operand is None:
            terms[k] = Term(k, node, -1, source=k)
        else:
            (source,) = operand.classes
            terms[k] = catalogue.term(k, operand)
            terms[source] = Term(source, operand, -1, source=source)
    return trace(c, terms)


def by_kernel(catalogue: Catalogue, c: ClassId, cut: Cut) -> Way | None:
    """Class `c` by the kernel that computes `cut`; ``None`` if the library does not run it."""
    offer = catalogue.offer(cut)
    return offer and Way(Choice(offer.kernel, cut.leaves, (c,)), offer.seconds)


def _ways(
    classes: Mapping[ClassId, EClass],
    c: ClassId,
    nodes: tuple[ENode, ...],
    ways: Ways,
    catalogue: Catalogue,
    costs: Costs,
) -> tuple[Way, ...]:
    if nodes and is_there(nodes[0]):
        return (Way(Choice(nodes[0], (), (c,)), 0.0),)
    if is_folded(classes, c):
        return tuple(Way(Choice(node, node.classes, (c,)), cost.BUILD) for node in nodes)
    opaque = [
        Way(Choice(node, node.classes, (c,)), cost.OPAQUE) for node in nodes if node.op == OPAQUE
    ]
    operators = list(filter(is_operator, nodes))
    cuts = [alone(catalogue, c, node) for node in operators]
    cuts += [broadcasting(classes, catalogue, c, node) for node in operators]
    for node in nodes:
        if node.op == STORE:
            weighed = ways.cuts.get(node.classes[0], CutList(())).kept
            cuts += [w.cut for w in weighed if w.offer is not None]
    kernels = [way for cut in cuts if (way := by_kernel(catalogue, c, cut)) is not None]
    return (*opaque, *kernels) or at_run_time(classes, c, costs)


def _least(found: tuple[Way, ...], making: Mapping[ClassId, float]) -> float:
    """What the cheapest of `found` costs, with its part of making its inputs."""
    totals = (way.cost + sum(making[k] for k in way.choice.inputs) for way in found)
    return min(totals, default=math.inf)


def _reading(eclass: EClass, costs: Costs) -> float:
    if eclass.scalar is not None and eclass.struct_info.dims == ():
        return 0.0
    return costs.profile.moving(costs.nbytes(eclass.struct_info) or 0.0)

"""The table of choices: everything that can produce each tensor class that the roots may need.

* A leaf, a scalar or a constant is free; a small broadcast of one may be stored as a constant.
* An opaque binding runs unchanged.
* A call of a loop function or a packed function costs what the user says.
* Any other class is produced by kernels: one for each of its operators, with and without the
  broadcasts of its operands, and one for each cut that ends in its stores.
* An operator that cannot be a step of a kernel runs by itself: by its own loops, or called.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from relax_egraph.egraph.node import OPAQUE, STORE
from relax_egraph.egraph.view import Choice, ClassId, EClass, ENode, View
from relax_egraph.extract import cost
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.components import components
from relax_egraph.extract.cut import Cut
from relax_egraph.extract.cuts import Bounds, CutList, Loads, cuts_of
from relax_egraph.extract.data_movement import MovementCuts
from relax_egraph.extract.free_values import FreeValues, free_values_of
from relax_egraph.extract.nodes import (
    child_classes,
    is_alias,
    is_call,
    is_operator,
    reachable_nodes,
)
from relax_egraph.extract.pricing import Pricing
from relax_egraph.extract.single_operator import single_operator_cuts
from relax_egraph.ir.expr import Binding
from relax_egraph.ir.folding import GROWTH_LIMIT
from relax_egraph.ir.operators import named

_ROUNDS = 4
"""How often the classes of one cycle are visited at most, until their costs are stable."""


@dataclass(frozen=True, slots=True)
class PricedChoice:
    """A choice for a class, at `cost` seconds."""

    choice: Choice
    cost: float


@dataclass(slots=True)
class ChoiceTable:
    """The choices of each tensor class, and the cuts of each kernel class.

    `shared_cost` estimates the cost of producing a class, divided by the number of its users.
    `alone` are the choices for a class by each of its operators alone, which do not depend on it.
    """

    free: FreeValues
    loads: Loads
    by_class: dict[ClassId, tuple[PricedChoice, ...]] = field(
        default_factory=dict[ClassId, tuple[PricedChoice, ...]]
    )
    cuts: dict[ClassId, CutList] = field(default_factory=dict[ClassId, CutList])
    shared_cost: dict[ClassId, float] = field(default_factory=dict[ClassId, float])
    alone: dict[tuple[ClassId, int], list[PricedChoice]] = field(
        default_factory=dict[tuple[ClassId, int], list[PricedChoice]]
    )

    @property
    def dropped(self) -> int:
        """How many cuts exceeded a bound."""
        return sum(cuts.dropped for cuts in self.cuts.values())


def choice_table(
    view: View, catalogue: Catalogue, bounds: Bounds, growth_limit: int = GROWTH_LIMIT
) -> ChoiceTable:
    """The choices of every class that the roots of `view` may need, computed inputs first.

    Free values have no choices.  The cost of a choice includes folding the constants that it reads.
    """
    free, pricing = free_values_of(view, growth_limit), catalogue.pricing
    nodes = reachable_nodes(view, free.choices)
    users = dict.fromkeys(nodes, 0)
    for usable in nodes.values():
        for k in child_classes(tuple(filter(is_operator, usable))):
            users[k] += 1
    loads = Loads(dict.fromkeys(nodes, math.inf), frozenset(free.choices))
    table, movement = ChoiceTable(free, loads), MovementCuts(view.classes, catalogue)
    table.shared_cost.update(dict.fromkeys(nodes, math.inf))
    for c in free.choices.keys() & nodes.keys():
        table.shared_cost[c], loads.seconds[c] = 0.0, _reading(view.classes[c], pricing)
    terms = {
        c: [catalogue.term(c, node) for node in usable]
        for c, usable in nodes.items()
        if view.classes[c].sort == "kernel"
    }
    edges = {c: child_classes(usable) for c, usable in nodes.items()}
    for members in components(edges):
        kernels = [c for c in members if c in terms]
        tensors = [c for c in members if c not in terms and c not in free.choices]
        for _ in range(_ROUNDS if len(members) > 2 else 1):
            before = [table.shared_cost[c] for c in tensors]
            for c in kernels:
                table.cuts[c] = cuts_of(terms[c], table.cuts, loads, catalogue, bounds)
            for c in tensors:
                table.by_class[c] = _choices(view, c, nodes[c], table, movement)
                cheapest = _cheapest(table.by_class[c], table.shared_cost)
                table.shared_cost[c] = cheapest / max(1, users[c])
                loads.seconds[c] = table.shared_cost[c] + _reading(view.classes[c], pricing)
            if before == [table.shared_cost[c] for c in tensors]:
                break
    return table


def by_opaque(catalogue: Catalogue, c: ClassId, node: ENode, binding: Binding) -> PricedChoice:
    """Class `c` by the opaque `node`, which runs `binding` unchanged."""
    return PricedChoice(Choice(node, node.operands, (c,)), catalogue.opaque(binding))


def by_call(catalogue: Catalogue, c: ClassId, node: ENode) -> PricedChoice:
    """Class `c` by the call `node` of a function below the graph."""
    return PricedChoice(Choice(node, node.operands, (c,)), catalogue.call_cost(node))


def by_operator(catalogue: Catalogue, c: ClassId, node: ENode) -> PricedChoice:
    """Class `c` by the operator `node` outside of kernels: by its own loops, or called."""
    return PricedChoice(Choice(node, node.operands, (c,)), catalogue.operator_cost(c, node))


def by_kernel(catalogue: Catalogue, c: ClassId, cut: Cut) -> PricedChoice | None:
    """Class `c` by the kernel of `cut`; ``None`` if the library has no schedule for it."""
    offer = catalogue.offer(cut)
    return offer and PricedChoice(Choice(offer.kernel, cut.leaves, (c,)), offer.seconds)


def _choices(
    view: View,
    c: ClassId,
    nodes: tuple[ENode, ...],
    table: ChoiceTable,
    movement: MovementCuts,
) -> tuple[PricedChoice, ...]:
    catalogue = movement.catalogue
    choices: list[PricedChoice] = []
    for node in nodes:
        if node.op == OPAQUE:
            choices.append(by_opaque(catalogue, c, node, view.opaque[node.key]))
        elif is_call(node):
            choices.append(by_call(catalogue, c, node))
        elif is_alias(node):
            choices.append(PricedChoice(Choice(node, node.operands, (c,)), cost.VIEW))
        elif node.op == STORE:
            offered = table.cuts.get(node.operands[0], CutList(())).kept
            cuts = (o.cut for o in offered if o.offer is not None)
            choices += filter(None, (by_kernel(catalogue, c, cut) for cut in cuts))
        else:
            # A view of an operand may be a node that is not usable, of a class out of reach.
            key = (c, id(node))  # the view holds its nodes
            if key not in table.alone:
                table.alone[key] = _operator(movement, c, node)
            choices += (
                k for k in table.alone[key] if table.shared_cost.keys() >= {*k.choice.inputs}
            )
    folding = (table.free.build_cost(c.choice.inputs) for c in choices)
    priced = [
        PricedChoice(c.choice, c.cost + more) for c, more in zip(choices, folding, strict=True)
    ]
    stored = [PricedChoice(table.free.broadcasts[c], 0.0)] if c in table.free.small else []
    return (*stored, *priced)


def _operator(movement: MovementCuts, c: ClassId, node: ENode) -> list[PricedChoice]:
    """Class `c` by the operator `node` alone: as a kernel if possible, else outside of kernels."""
    catalogue = movement.catalogue
    if movement.classes[c].sort == "tuple":
        return [by_operator(catalogue, c, node)]
    cuts = single_operator_cuts(movement, c, node)
    kernels = [*filter(None, (by_kernel(catalogue, c, cut) for cut in cuts))]
    own = [] if kernels and named(node.op).fusible else [by_operator(catalogue, c, node)]
    return kernels + own


def _cheapest(choices: tuple[PricedChoice, ...], shared_cost: Mapping[ClassId, float]) -> float:
    """The least cost of one of `choices` together with the shared costs of its inputs."""
    totals = (c.cost + sum(shared_cost[k] for k in c.choice.inputs) for c in choices)
    return min(totals, default=math.inf)


def _reading(eclass: EClass, pricing: Pricing) -> float:
    if eclass.scalar is not None and eclass.struct_info.dims == ():
        return 0.0
    return pricing.reading(eclass.struct_info)

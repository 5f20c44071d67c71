"""Writes e-graphs in the JSON form of egraph-serialize, which `serialized` reads.

Each node has a cost in seconds: of what it reads, writes or computes.  A kernel of several steps
costs the sum of its nodes, with one launch for each store.  This approximates the cost model, in
which memory traffic and arithmetic overlap and the library prices whole kernels.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from relax_egraph.egraph.view import ClassId, EClass, ENode, View
from relax_egraph.extract import cost
from relax_egraph.extract.nodes import is_alias, is_call, is_leaf, results_of
from relax_egraph.extract.pricing import Pricing
from relax_egraph.ir.kernel import Schedule


@dataclass(frozen=True, slots=True)
class PricedView:
    """The view of a region that a program has `uses` times, and the prices of its nodes."""

    view: View
    pricing: Pricing
    uses: int = 1


def serialize(
    graphs: Iterable[PricedView], label: Callable[[ENode, EClass], str]
) -> dict[str, Any]:
    """The e-graphs as one document of egraph-serialize; `label` is the text of a node's operator.

    The id of a class is the number of its graph and its own number.  Costs are those of all uses.
    """
    nodes: dict[str, Any] = {}
    roots: dict[str, None] = {}
    types: dict[str, Any] = {}
    for number, graph in enumerate(graphs):
        view = graph.view
        for c, eclass in view.classes.items():
            name = f"{number}.{c}"
            types[name] = {"type": str(eclass.struct_info)}
            for k, node in enumerate(eclass.nodes):
                nodes[f"{name}.{k}"] = {
                    "op": label(node, eclass),
                    "children": [f"{number}.{child}.0" for child in node.operands],
                    "eclass": name,
                    "cost": graph.uses * _seconds(graph, c, node),
                    "subsumed": False,
                }
        roots |= dict.fromkeys(f"{number}.{root}" for root in view.roots)
    return {"nodes": nodes, "root_eclasses": [*roots], "class_data": types}


_LOOPS = Schedule("loops", 1.0, 1.0)


def _seconds(graph: PricedView, c: ClassId, node: ENode) -> float:
    """The cost of `node` of class `c` by itself."""
    pricing, classes = graph.pricing, graph.view.classes
    info = classes[c].struct_info
    if is_leaf(node):
        return 0.0
    if is_alias(node):
        return cost.VIEW
    if is_call(node):
        operands = [classes[k].struct_info for k in node.operands]
        return pricing.call(node.callee, operands, node.call_info)
    match node.op:
        case "opaque":
            return pricing.opaque(graph.view.opaque[node.key])
        case "load":
            return pricing.reading(info)
        case "store":
            return cost.BUILD if classes[c].is_const else pricing.launch + pricing.reading(info)
        case _ if classes[c].is_const:
            return cost.BUILD
        case op:
            operands = [classes[k].struct_info for k in node.operands]
            if classes[c].sort == "kernel":
                return pricing.computing(op, dict(node.attrs), operands, info)
            results = results_of(classes, c, node)
            return pricing.operator(op, dict(node.attrs), operands, results, _LOOPS)

"""Extraction of any serialized e-graph by DAG cost: the cost of a shared node counts once."""

import heapq
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from relax_egraph.errors import ExtractionError
from relax_egraph.extract.certificate import certify
from relax_egraph.extract.effort import Effort
from relax_egraph.extract.greedy import greedy
from relax_egraph.extract.methods import METHODS, Method
from relax_egraph.extract.problem import Selection, Solution, computable, cost_in_order, in_order
from relax_egraph.extract.prune import prune
from relax_egraph.extract.search import lower_bound
from relax_egraph.extract.select import select, status_of
from relax_egraph.extract.serialized import (
    Numbered,
    SerializedEGraph,
    egraph_of,
    numbered,
    read_egraph,
)


@dataclass(frozen=True, slots=True)
class PlainExtraction:
    """An extracted term: `choice` has the node selected in each class, inputs first.

    No selection costs less than `bound`, so none saves more than the share `gap` of the cost.
    `nodes` and `classes` are the size of the e-graph.
    """

    cost: float
    bound: float
    gap: float
    status: str
    seconds: float
    nodes: int
    classes: int
    choice: Mapping[str, str]

    def as_dict(self) -> dict[str, Any]:
        """The fields, for JSON."""
        return asdict(self)


def extract_egraph(
    source: SerializedEGraph | str | PathLike[str] | Mapping[str, Any],
    *,
    method: Method = "ilp",
    time_limit: float = 60.0,
) -> PlainExtraction:
    """Extract the roots of an e-graph in the JSON form of egraph-serialize: a file or a document.

    Raises `ExtractionError` if it is not such an e-graph or a root has no finite program;
    `TextError` if the file is not JSON; ``ValueError`` for an unknown method or a negative time.
    """
    if method not in METHODS:
        raise ValueError(f"there is no method {method!r}: needs one of {', '.join(METHODS)}")
    if not time_limit >= 0:
        raise ValueError(f"a time limit of {time_limit} seconds: needs one that is not negative")
    egraph = _egraph(source)
    started = time.perf_counter()
    table = numbered(egraph)
    made = computable(table.problem)
    for root in table.problem.roots:
        if root not in made:
            raise ExtractionError(
                f"{egraph.name}: root {table.classes[root]!r} has no program of finite cost "
                "and without a cycle"
            )
    if method == "ilp":
        found = select(table.problem, effort=Effort(time_limit, 0.0))
    else:
        found = _unproven(egraph, table, method)
    certify(table.problem, found)
    choice = {egraph.nodes[key].eclass: key for key in (table.nodes[n] for n in found.chosen)}
    return PlainExtraction(
        found.cost,
        found.bound,
        found.gap,
        found.status,
        time.perf_counter() - started,
        len(egraph.nodes),
        len(table.classes),
        choice,
    )


def _egraph(
    source: SerializedEGraph | str | PathLike[str] | Mapping[str, Any],
) -> SerializedEGraph:
    if isinstance(source, SerializedEGraph):
        return source
    return egraph_of(source) if isinstance(source, Mapping) else read_egraph(Path(source))


def _unproven(egraph: SerializedEGraph, table: Numbered, method: Method) -> Selection:
    """A heuristic solution, with the bound that pruning proves."""
    started = time.perf_counter()
    pruned = prune(table.problem)
    if method == "tree":
        solution = cheapest_trees(egraph, table)
    else:
        solution, _ = greedy(table.problem, pruned)
    order = in_order(table.problem, solution)
    assert order is not None  # each candidate is taken after its inputs
    cost = cost_in_order(table.problem, order)
    bound = min(cost, lower_bound(table.problem, pruned))
    status = status_of(cost, bound, method)
    seconds = time.perf_counter() - started
    return Selection(order, cost, bound, status, "needed classes", seconds)


def cheapest_trees(egraph: SerializedEGraph, table: Numbered) -> Solution:
    """For each class the root of its cheapest tree, in which shared nodes count for each use.

    Classes are settled in order of cost (Knuth, 1977), so there is no cycle.
    """
    problem = table.problem
    place = {c: number for number, c in enumerate(table.classes)}
    children = [
        [place[egraph.nodes[child].eclass] for child in egraph.nodes[key].children]
        for key in table.nodes
    ]
    users: dict[int, list[int]] = {}
    for number, candidate in enumerate(problem.candidates):
        for needed in candidate.inputs:
            users.setdefault(needed, []).append(number)
    waiting = [len(candidate.inputs) for candidate in problem.candidates]
    heap = [(problem.candidates[n].cost, n) for n, count in enumerate(waiting) if count == 0]
    heapq.heapify(heap)
    least: dict[int, float] = {}
    solution: dict[int, int] = {}
    while heap:
        cost, number = heapq.heappop(heap)
        output = problem.candidates[number].output
        if output in solution:
            continue
        solution[output], least[output] = number, cost
        for user in users.get(output, ()):
            waiting[user] -= 1
            if waiting[user] == 0:
                total = problem.candidates[user].cost + sum(least[c] for c in children[user])
                heapq.heappush(heap, (total, user))
    return solution

"""Whole e-graphs of other tools: the methods, what they prove, and how they compare."""

import json
import math
import random
from pathlib import Path
from typing import Any

import pytest

from relax_egraph.errors import ExtractionError
from relax_egraph.extract import Method, extract_egraph

SHARED: dict[str, Any] = {
    "nodes": {
        "top": {"op": "f", "eclass": "top", "children": ["left", "right"], "cost": 0},
        "left": {"op": "g", "eclass": "left", "children": ["big"], "cost": 1},
        "left-alone": {"op": "g", "eclass": "left", "children": [], "cost": 8},
        "right": {"op": "h", "eclass": "right", "children": ["big"], "cost": 1},
        "right-alone": {"op": "h", "eclass": "right", "children": [], "cost": 8},
        "big": {"op": "b", "eclass": "big", "children": [], "cost": 10},
    },
    "root_eclasses": ["top"],
}
"""Sharing the big one saves 4; no one alone would take it."""


def random_document(seed: int) -> dict[str, Any]:
    """A small e-graph with cycles, nodes of no use, and children that are there twice."""
    r = random.Random(seed)
    classes = r.randint(2, 7)
    made: list[tuple[str, dict[str, Any]]] = []
    for c in range(classes):
        for way in range(r.randint(1, 4)):
            made.append(
                (
                    f"{c}.{way}",
                    {
                        "op": "f",
                        "eclass": str(c),
                        "cost": r.choice([0, 0.5, 1, 2, r.uniform(0, 9), math.inf]),
                        "subsumed": r.random() < 0.05,
                    },
                )
            )
    ids = [key for key, _ in made]
    for _, fields in made:
        fields["children"] = r.choices(ids, k=r.choice([0, 0, 1, 2, 2, 3]))
    return {
        "nodes": dict(made),
        "root_eclasses": [str(r.randrange(classes)) for _ in range(r.randint(1, 2))],
    }


def cheapest_of(document: dict[str, Any]) -> float:
    """The least cost of all choices of a node for each class, tried one by one."""
    nodes, best = document["nodes"], math.inf

    def grow(choice: dict[str, str], missing: list[str], cost: float) -> None:
        nonlocal best
        if cost >= best:
            return
        if not missing:
            if acyclic(choice):
                best = cost
            return
        c, *rest = missing
        if c in choice:
            grow(choice, rest, cost)
            return
        for key, fields in nodes.items():
            if fields["eclass"] == c and not fields["subsumed"]:
                children = [nodes[child]["eclass"] for child in fields["children"]]
                grow({**choice, c: key}, rest + children, cost + fields["cost"])

    def acyclic(choice: dict[str, str]) -> bool:
        left = {
            c: {nodes[k]["eclass"] for k in nodes[key]["children"]} for c, key in choice.items()
        }
        while ready := [c for c, needed in left.items() if not needed & left.keys()]:
            for c in ready:
                del left[c]
        return not left

    grow({}, document["root_eclasses"], 0.0)
    return best


def follows(document: dict[str, Any], choice: dict[str, str]) -> bool:
    """Whether each class of `choice` comes after the classes that its node needs."""
    done = set[str]()
    for c, key in choice.items():
        fields = document["nodes"][key]
        if fields["eclass"] != c or fields["subsumed"]:
            return False
        if not {document["nodes"][child]["eclass"] for child in fields["children"]} <= done:
            return False
        done.add(c)
    return set(document["root_eclasses"]) <= done


def test_random_cyclic_egraphs_cost_what_trying_everything_finds() -> None:
    solved = 0
    for seed in range(800):
        document = random_document(seed)
        best = cheapest_of(document)
        if best == math.inf:
            with pytest.raises(ExtractionError, match="has no program of finite cost"):
                extract_egraph(document)
            continue

        found = {m: extract_egraph(document, method=m) for m in ("ilp", "greedy-dag", "tree")}

        assert found["ilp"].cost == pytest.approx(best), seed
        assert found["ilp"].status == "optimal", seed
        for each in found.values():
            assert follows(document, dict(each.choice)), seed
            assert each.bound <= best * (1 + 1e-9) <= each.cost * (1 + 2e-9), seed
        solved += 1
    assert solved >= 500


def test_sharing_is_paid_once() -> None:
    assert {m: extract_egraph(SHARED, method=m).cost for m in ("ilp", "tree")} == {
        "ilp": 12,
        "tree": 16,
    }


def test_all_that_is_known_is_told() -> None:
    found = extract_egraph(SHARED)

    assert found.as_dict() == {
        "cost": 12,
        "bound": 12,
        "gap": 0,
        "status": "optimal",
        "seconds": found.seconds,
        "nodes": 6,
        "classes": 4,
        "choice": {"big": "big", "left": "left", "right": "right", "top": "top"},
    }


def test_a_method_that_proves_little_says_its_gap() -> None:
    found = extract_egraph(SHARED, method="tree")

    assert found.status == f"gap {100 * found.gap:.1f} %, tree"
    assert found.bound < 12 < found.cost


def test_trees_too_large_to_count_are_extracted() -> None:
    nodes: dict[str, Any] = {"0": {"op": "x", "eclass": "0", "cost": 1.5}}
    for n in range(1, 3000):
        nodes[str(n)] = {"op": "f", "eclass": str(n), "children": [str(n - 1)] * 2}
    document = {"nodes": nodes, "root_eclasses": ["2999"]}

    assert extract_egraph(document, method="tree").cost == 3000.5


def test_a_root_that_only_a_cycle_makes_is_refused(tmp_path: Path) -> None:
    loop = {"op": "f", "eclass": "A", "children": ["a"], "cost": 0}
    path = tmp_path / "loop.json"
    path.write_text(json.dumps({"nodes": {"a": loop}, "root_eclasses": ["A"]}))

    with pytest.raises(ExtractionError) as caught:
        extract_egraph(path)

    fault = "root 'A' has no program of finite cost and without a cycle"
    assert str(caught.value) == f"{path}: {fault}"


def test_wrong_use_is_refused() -> None:
    method: Any = "best"
    with pytest.raises(ValueError, match="there is no method 'best': needs one of ilp, greedy-"):
        extract_egraph(SHARED, method=method)
    with pytest.raises(ValueError, match="a time limit of nan seconds: needs one that is not neg"):
        extract_egraph(SHARED, time_limit=math.nan)


@pytest.mark.parametrize("method", ["ilp", "greedy-dag", "tree"])
def test_costs_of_zero_are_extracted(method: Method) -> None:
    free = {key: {**fields, "cost": 0} for key, fields in SHARED["nodes"].items()}

    found = extract_egraph({**SHARED, "nodes": free}, method=method)

    assert (found.cost, found.bound, found.gap, found.status) == (0, 0, 0, "optimal")

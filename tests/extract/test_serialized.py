"""E-graphs in JSON are read as they are meant, and refused with the place of the fault."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.errors import ExtractionError, RelaxEgraphError, TextError
from relax_egraph.extract import extract_egraph, read_egraph
from relax_egraph.extract.problem import Candidate, Problem
from relax_egraph.extract.serialized import SerializedNode, egraph_of, numbered


def node(eclass: str, *children: str, cost: Any = 1.0, **more: Any) -> dict[str, Any]:
    return {"op": "f", "eclass": eclass, "children": list(children), "cost": cost, **more}


def document(*roots: str, **nodes: Any) -> dict[str, Any]:
    return {"nodes": nodes, "root_eclasses": list(roots)}


def test_children_name_nodes_and_mean_their_classes() -> None:
    read = egraph_of(
        document("A", a1=node("A", "b2", "b1"), b1=node("B", cost=2), b2=node("B", cost=0.5))
    )

    table = numbered(read)

    assert table.classes == ("A", "B")
    assert table.problem == Problem(
        (
            Candidate(0, frozenset({1}), 1.0),
            Candidate(1, frozenset(), 2.0),
            Candidate(1, frozenset(), 0.5),
        ),
        (0,),
    )


def test_nodes_that_are_subsumed_or_cost_infinitely_much_are_no_candidates() -> None:
    read = egraph_of(
        document(
            "A",
            a1=node("A", subsumed=True),
            a2=node("A", cost=math.inf),
            a3=node("A", cost=10**400),
            a4=node("A", cost=3),
        )
    )

    assert numbered(read).nodes == ("a4",)


def test_what_the_form_lets_out_has_its_defaults() -> None:
    read = egraph_of({"nodes": {"a": {"op": "x", "eclass": "A"}}, "root_eclasses": ["A", "A"]})

    assert read.nodes == {"a": SerializedNode("x", (), "A", 1.0, False)}
    assert numbered(read).problem.roots == (0,)


A = {"op": "x", "eclass": "A"}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (7, 'the document is 7: needs {"nodes": .., "root_eclasses": [..]}'),
        ({"root_eclasses": []}, "there is no 'nodes'"),
        ({"nodes": {}}, "there is no 'root_eclasses'"),
        ({"nodes": [], "root_eclasses": []}, "'nodes' is a list: needs an object of nodes by their "
         "ids"),
        ({"nodes": {"a": A}, "root_eclasses": "A"}, "'root_eclasses' is \"A\": needs a list of ids "
         "of classes"),
        ({"nodes": {"a": A}, "root_eclasses": []}, "'root_eclasses' is empty: needs what to "
         "extract"),
        ({"nodes": {"a": A}, "root_eclasses": [None]}, "a root is null: needs a string"),
        (document("a", a=A), "root 'a' is no class of a node: needs canonical ids; node 'a' is of "
         "class 'A'"),
        (document("B", a=A), "root 'B' is no class of a node: needs canonical ids"),
        (document("A", a=7), 'node \'a\' is 7: needs {"op", "children", "eclass", "cost"}'),
        (document("A", a={"eclass": "A"}), "node 'a': there is no 'op'"),
        (document("A", a={"op": "x"}), "node 'a': there is no 'eclass'"),
        (document("A", a={**A, "eclass": 3}), "node 'a': 'eclass' is 3: needs a string"),
        (document("A", a={**A, "op": None}), "node 'a': 'op' is null: needs a string"),
        (document("A", a={**A, "children": "b"}), "node 'a': 'children' is \"b\": needs a list of "
         "ids of nodes"),
        (document("A", a={**A, "children": [1]}), "node 'a': a child is 1: needs a string"),
        (document("A", a=node("A", "b")), "node 'a': child 'b' is no id of a node"),
        (document("A", a=node("A", "A")), "node 'a': child 'A' is no id of a node, but the id of a "
         "class"),
        (document("A", a=node("A", cost=-1)), "node 'a': 'cost' is -1: needs a number that is not "
         "negative"),
        (document("A", a=node("A", cost=-math.inf)), "node 'a': 'cost' is -inf: needs a number "
         "that is not negative"),
        (document("A", a=node("A", cost=math.nan)), "node 'a': 'cost' is nan: needs a number that "
         "is not negative"),
        (document("A", a=node("A", cost="1")), "node 'a': 'cost' is \"1\": needs a number"),
        (document("A", a=node("A", cost=None)), "node 'a': 'cost' is null: needs a number"),
        (document("A", a=node("A", cost=True)), "node 'a': 'cost' is true: needs a number"),
        (document("A", a=node("A", subsumed=0)), "node 'a': 'subsumed' is 0: needs true or false"),
        (document("A", a=node("A", cost=1e308), b=node("A", cost=1e308)), "the costs add up to "
         "more than 1.8e308: needs smaller ones"),
    ],
)  # fmt: skip
def test_what_is_no_egraph_is_refused(given: object, fault: str) -> None:
    with pytest.raises(ExtractionError) as caught:
        egraph_of(given, "some.json")

    assert str(caught.value) == f"some.json: {fault}"


def test_what_is_no_json_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text('{"nodes": {},\n "root_eclasses": [,]}\n')

    with pytest.raises(TextError) as caught:
        read_egraph(path)

    assert str(caught.value) == (
        f"{path}:2:20: no JSON: Expecting value\n"
        '     "root_eclasses": [,]}\n'
        "                       ^"
    )


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b'{"nodes": "\xff"}', "byte 11 is no UTF-8: needs JSON"),
        (b'{"nodes": {}, "nodes": {}}', "the key 'nodes' is there twice in one object"),
        (b"[" * 100_000, "nested too deeply: needs an e-graph"),
    ],
)
def test_a_file_of_another_kind_is_refused(content: bytes, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)

    with pytest.raises(ExtractionError) as caught:
        read_egraph(path)

    assert str(caught.value) == f"{path}: {fault}"


def test_numbers_of_any_length_are_read(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    long = "9" * 5000
    path.write_text(
        f'{{"nodes": {{"a": {{"op": "x", "eclass": "A", "cost": {long}}}, '
        '"b": {"op": "y", "eclass": "A", "cost": 7}}, "root_eclasses": ["A"]}'
    )

    assert extract_egraph(path).choice == {"A": "b"}


ids = st.sampled_from(["a", "b", "c", "d", "\ud800"])
costs = st.one_of(
    st.floats(min_value=0, allow_nan=False),
    st.integers(0, 9),
    st.sampled_from([0.0, 5e-324, 1e300, 10**400]),
)
good_nodes = st.fixed_dictionaries(
    {"op": ids, "eclass": ids},
    optional={"children": st.lists(ids, max_size=3), "cost": costs, "subsumed": st.booleans()},
)
junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(), st.integers(), st.text(max_size=3)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def some(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly good."""
    return st.integers(0, 19).flatmap(lambda n: good if n else junk)


documents = some(
    st.fixed_dictionaries(
        {
            "nodes": some(st.dictionaries(ids, some(good_nodes), min_size=3)),
            "root_eclasses": some(st.lists(ids, min_size=1, max_size=2)),
        }
    )
)


@given(documents, st.sampled_from(["ilp", "greedy-dag", "tree"]))
def test_any_document_is_extracted_or_refused(given: Any, method: Any) -> None:
    try:
        found = extract_egraph(given if isinstance(given, dict) else {}, method=method)
    except ExtractionError:
        return

    egraph = egraph_of(given)
    assert set(egraph.roots) <= found.choice.keys()
    assert all(egraph.nodes[key].eclass == c for c, key in found.choice.items())
    assert 0 <= found.bound <= found.cost < math.inf


@given(given=documents)
def test_a_document_is_the_same_from_a_file(
    given: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "document.json"
    path.write_text(json.dumps(given), "utf-8")
    try:
        expected = egraph_of(given, str(path))
    except ExtractionError:
        with pytest.raises(ExtractionError):
            read_egraph(path)
        return

    assert read_egraph(path) == expected


@given(content=st.binary(max_size=40) | st.text('{}[]",:1eE-.\\ntf ', max_size=40).map(str.encode))
def test_any_bytes_are_refused(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.json"
    path.write_bytes(content)

    with pytest.raises(RelaxEgraphError):
        read_egraph(path)

"""The growth of an e-graph ends in the e-graph that egglog computed."""

from collections.abc import Iterable

import pytest

import relax_egraph as rx
from relax_egraph.egraph.node import LOAD, STORE, Node
from relax_egraph.egraph.recording.recording import record
from relax_egraph.egraph.view import ClassId, ENode
from relax_egraph.play.asked import Asked
from relax_egraph.play.examples import Example, examples
from relax_egraph.play.growth import Growth
from relax_egraph.play.saturated import saturated_classes


@pytest.mark.parametrize("example", examples(), ids=lambda e: e.name)
def test_the_last_step_is_the_saturated_e_graph(example: Example) -> None:
    question = Asked("steps", example.program, example.rules)
    (region,) = rx.explain(question.module(), **question.options).regions
    (run,) = region.runs

    with run.again():
        *_, last = Growth(run.view).steps(record(run))

    def shown(c: ClassId, nodes: Iterable[ENode]) -> set[ENode]:
        """The nodes of a class as a view has them: none over itself, and one of each two orders."""
        tensors = (n for n in nodes if n.op not in (LOAD, STORE) and c not in n.operands)
        return {
            Node(n.op, tuple(sorted(n.operands)), n.attrs) if n.op in ("add", "multiply") else n
            for n in tensors
        }

    known = saturated_classes(last, region.became, region.view)
    grown: dict[ClassId, set[ENode]] = {}
    for c, entries in last.classes.items():
        if c in known:
            nodes = (e.node for e in entries if all(k in known for k in e.node.operands))
            grown.setdefault(known[c], set()).update(n.over(known.__getitem__) for n in nodes)
    assert len(set(known.values())) == len(known)
    assert {c: shown(c, nodes) for c, nodes in grown.items()} == {
        c: shown(c, eclass.nodes)
        for c, eclass in region.view.classes.items()
        if eclass.sort != "kernel"
    }

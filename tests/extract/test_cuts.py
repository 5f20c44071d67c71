"""Cuts are the kernels that a class can end, and extraction misses none that is better."""

import itertools
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.egraph.node import LOAD, Node
from relax_egraph.egraph.view import ClassId, View
from relax_egraph.extract import REFERENCE_PROFILE, extract
from relax_egraph.extract.catalogue import Catalogue
from relax_egraph.extract.certificate import cheapest
from relax_egraph.extract.choices import ChoiceTable, choice_table
from relax_egraph.extract.components import components
from relax_egraph.extract.cut import TOGETHER, Cut, Term, grow, trace
from relax_egraph.extract.cuts import Bounds
from relax_egraph.extract.offers import Offers
from relax_egraph.extract.pricing import Pricing
from relax_egraph.extract.problem import Candidate, Problem
from relax_egraph.ir.kernel import Kernel
from tests.extract.test_graph import Graph, Library

WIDE = Bounds(accepted=1000, refused=1000, tried=10000, leaves=100, steps=100)
UNARY = ("negative", "tanh", "abs")
BINARY = ("add", "multiply", "subtract")
NUMPY = {"negative": np.negative, "tanh": np.tanh, "abs": np.abs} | {
    name: getattr(np, name) for name in BINARY
}

Array = npt.NDArray[np.float64]


@st.composite
def graphs(draw: st.DrawFn, most: int = 6) -> tuple[Graph, tuple[ClassId, ...]]:
    """A few operators on two leaves, with other forms of some; the last ones are the roots."""
    g = Graph()
    made = [g.leaf(1000), g.leaf(1000)]
    for _ in range(draw(st.integers(1, most))):
        name = draw(st.sampled_from(UNARY + BINARY))
        x, y = draw(st.sampled_from(made)), draw(st.sampled_from(made))
        c = g.op(name, x, y) if name in BINARY else g.op(name, x)
        made.append(c)
        form = draw(st.integers(0, 3))
        if form == 0 and name in ("add", "multiply"):
            g.op(name, y, x, into=c)
        elif form == 1:
            g.op("negative", g.op("negative", c), into=c)
        elif form == 2 and name == "subtract":
            g.op("add", x, g.op("negative", y), into=c)
    return g, tuple(made[-draw(st.integers(1, 2)) :])


def searched(view: View, bounds: Bounds) -> tuple[ChoiceTable, Catalogue]:
    catalogue = Catalogue(view.classes, Offers(Library(), Pricing(REFERENCE_PROFILE)))
    return choice_table(view, catalogue, bounds), catalogue


def all_cuts(view: View, catalogue: Catalogue, *tops: ClassId) -> Iterator[Cut]:
    """Every cut that ends at the kernel classes `tops`, by trying all terms of all classes."""
    several = Term(-1, Node(TOGETHER), -2, tops)

    def extend(terms: Mapping[ClassId, Term], open_: tuple[ClassId, ...]) -> Iterator[Cut]:
        if not open_:
            if _is_acyclic(terms):
                yield trace(tops[0], terms) if len(tops) == 1 else trace(-1, {**terms, -1: several})
            return
        c, *rest = open_
        if c in terms:
            yield from extend(terms, tuple(rest))
            return
        for node in view.classes[c].nodes:
            term = catalogue.term(c, node)
            yield from extend({**terms, c: term}, (*rest, *term.children))

    yield from extend({}, tops)


def _is_acyclic(terms: Mapping[ClassId, Term]) -> bool:
    found = components({c: term.children for c, term in terms.items()})
    return all(len(members) == 1 for members in found) and not any(
        c in term.children for c, term in terms.items()
    )


@given(graphs(most=4))
@settings(max_examples=60, deadline=None)
def test_within_wide_bounds_no_cut_is_missed(case: tuple[Graph, tuple[ClassId, ...]]) -> None:
    g, roots = case
    view = g.view(*roots)

    table, catalogue = searched(view, WIDE)

    for top, found in table.cuts.items():
        every = list(all_cuts(view, catalogue, top))
        kept = [(frozenset(w.cut.leaves), w.cut.seconds) for w in found.kept]
        assert set(kept) <= {(frozenset(cut.leaves), cut.seconds) for cut in every}
        for cut in every:
            assert any(
                leaves - {0, 1} <= frozenset(cut.leaves) and seconds <= cut.seconds * (1 + 1e-12)
                for leaves, seconds in kept
            )


@given(graphs(most=4))
@settings(max_examples=60, deadline=None)
def test_extraction_is_the_best_of_all_choices_of_all_kernels_of_one_output(
    case: tuple[Graph, tuple[ClassId, ...]],
) -> None:
    g, roots = case
    view = g.view(*roots)
    catalogue = searched(view, WIDE)[1]
    candidates: list[Candidate] = []
    for c in g.nodes:
        for node in view.classes[c].nodes:
            if node.op == "leaf":
                candidates.append(Candidate(c, frozenset(), 0.0))
            elif node.op == "store":
                for cut in all_cuts(view, catalogue, node.operands[0]):
                    offer = catalogue.offer(cut) if cut.steps else None
                    if offer is not None:
                        candidates.append(Candidate(c, frozenset(cut.leaves), offer.seconds))

    found = extract(view, Library(most_outputs=1))

    assert found.cost == pytest.approx(cheapest(Problem(tuple(candidates), roots)), rel=1e-6)
    assert found.status == "optimal"


@given(graphs(most=10), st.sampled_from((Bounds(), Bounds(2, 1, 2), Bounds(leaves=1, steps=2))))
@settings(max_examples=80, deadline=None)
def test_what_is_extracted_computes_the_roots(
    case: tuple[Graph, tuple[ClassId, ...]], bounds: Bounds
) -> None:
    g, roots = case
    leaves = {0: np.linspace(-1.0, 1.0, 7), 1: np.linspace(0.5, 2.0, 7)}

    found = extract(g.view(*roots), Library(), bounds=bounds)

    values: dict[ClassId, Array] = {}
    for choice in found.program:
        assert not values.keys() & set(choice.outputs)
        operands = [values[c] for c in choice.inputs]
        if isinstance(choice.how, Kernel):
            values.update(zip(choice.outputs, run(choice.how, operands), strict=True))
        else:
            values[choice.outputs[0]] = leaves[choice.outputs[0]]
    for root in roots:
        np.testing.assert_allclose(values[root], expected(g, root, leaves), rtol=1e-9)


def run(kernel: Kernel, operands: list[Array]) -> list[Array]:
    values = list(operands)
    for step in kernel.steps:
        values.append(NUMPY[step.op.name](*(values[v] for v in step.values)))
    return [values[o] for o in kernel.outputs]


def expected(g: Graph, c: ClassId, leaves: Mapping[ClassId, Array]) -> Array:
    """The value of class `c` by the first node of each class, which is how it was written."""
    if c in leaves:
        return leaves[c]
    node = g.nodes[c][0]
    return NUMPY[node.op](*(expected(g, k, leaves) for k in node.operands))


def chain(length: int) -> tuple[Graph, ClassId]:
    g = Graph()
    x = g.leaf(1000)
    for k in range(length):
        x = g.op(UNARY[k % 3], x)
    return g, x


def test_a_long_chain_is_one_kernel() -> None:
    g, x = chain(40)

    found = extract(g.view(x), Library())

    kernel = found.program[-1].how
    assert isinstance(kernel, Kernel)
    assert len(found.program) == 2
    assert len(kernel.steps) == 40


def test_what_meets_a_bound_is_counted() -> None:
    g, x = chain(10)

    found = extract(g.view(x), Library(), bounds=Bounds(steps=4))

    sizes = [len(c.how.steps) for c in found.program if isinstance(c.how, Kernel)]
    assert sum(sizes) == 10
    assert max(sizes) <= 4
    assert found.dropped > 0


def test_combinations_do_not_explode() -> None:
    g = Graph()
    row = [g.leaf(1000) for _ in range(8)]
    for _ in range(6):
        row = [g.op("add", x, y) for x, y in itertools.pairwise((*row, row[0]))]
    library = Library()

    found = extract(g.view(*row), library)

    assert found.dropped > 0
    assert found.kernels == len(library.asked) < 8 * 6 * 40


def test_the_first_part_decides_how_a_class_is_made() -> None:
    node = Node("negative")
    low = Term(1, node, 0, source=9)
    high = Term(1, node, 1, children=(2,))
    other = Term(2, node, 0, source=8)
    left = grow(Term(3, node, 2, children=(1,)), [trace(1, {1: low})])
    right = grow(Term(4, node, 3, children=(1,)), [trace(1, {1: high, 2: other})])
    assert left is not None
    assert right is not None

    both = grow(Term(5, node, 4, children=(3, 4)), [left, right])

    assert both is not None
    assert both.leaves == (9,)
    assert [(term.owner, operands) for term, operands in both.steps] == [
        (3, (-1,)),
        (4, (-1,)),
        (5, (0, 1)),
    ]


def test_a_cut_does_not_grow_through_its_own_class() -> None:
    node = Node("negative")
    below = trace(1, {1: Term(1, node, 0, children=(2,)), 2: Term(2, node, 0, source=7)})

    assert grow(Term(2, node, 1, children=(1,)), [below]) is None


def test_a_class_is_loaded_once() -> None:
    node = Node(LOAD, (7,))
    terms = {1: Term(1, node, -1, source=7), 2: Term(2, node, 5, children=(1, 1))}

    cut = trace(2, terms)

    assert cut.leaves == (7,)
    assert cut.structure({7: 3}) == ((3,), ((5, (-1, -1)),))


def test_components_come_after_what_they_reach() -> None:
    graph = {0: [1], 1: [2], 2: [1, 3], 3: [], 4: [0, 3], 5: [5]}

    found = components(graph)

    assert [sorted(members) for members in found] == [[3], [1, 2], [0], [4], [5]]

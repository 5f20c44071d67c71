"""Broadcasts of constants: repeated within kernels, stored where a program needs them in memory."""

from relax_egraph.extract import baseline_cost, extract
from relax_egraph.extract.cost import OPAQUE
from relax_egraph.lower.library import Library as CompilersLibrary
from tests.extract.test_graph import Graph, Library, N, kernels


def test_a_small_one_is_stored() -> None:
    g = Graph()
    ones = g.op("broadcast_to", g.scalar(1.0), (2, 3))

    found = extract(g.view(ones, g.opaque(ones, shape=(2, 3))), Library())

    assert kernels(found) == []
    assert found.cost == OPAQUE


def test_a_large_one_is_computed() -> None:
    g = Graph()
    ones = g.op("broadcast_to", g.scalar(1.0), (1024, 1024))

    assert kernels(extract(g.view(ones), Library())) == ["1 = broadcast_to(0)"]


def test_a_kernel_repeats_elements_as_it_reads() -> None:
    g = Graph()
    y = g.op("add", g.leaf(2, 3), g.op("broadcast_to", g.scalar(1.0), (2, 3)))

    assert kernels(extract(g.view(y), Library())) == ["3 = add(0, broadcast_to(1))"]


def test_an_operator_that_repeats_an_element_is_no_dearer_than_alone() -> None:
    g = Graph()
    value = g.scalar(1.5, "float64")
    filled = g.op("full", (N,), value, dtype="uint32")
    before = baseline_cost(g.view(filled, fused=False), CompilersLibrary())
    whole = g.op("astype", value, dtype="uint32")
    g.op("broadcast_to", whole, (N,), into=filled)

    assert extract(g.view(filled), CompilersLibrary()).cost <= before

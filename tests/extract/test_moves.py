"""Operands that are only moved are read where they lie, by operators that can read them so."""

from relax_egraph.extract import Extraction, extract
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.library import Library
from tests.extract.test_graph import Graph, N, kernels

TOKENS_FIRST = (0, 2, 1, 3)


def extracted(g: Graph, *roots: int, n: int = 1000) -> Extraction:
    return extract(g.view(*roots, fused=False), Library(), hints={"n": n})


def swapped(g: Graph, x: int, into: int | None = None) -> int:
    return g.op("permute_dims", x, axes=TOKENS_FIRST, into=into)


def part(g: Graph, x: int, begin: Dim, end: Dim) -> int:
    return g.op("strided_slice", x, (begin,), (end,), axes=(2,))


def test_slices_of_one_tensor_are_read_there() -> None:
    g = Graph()
    x = g.leaf(2, N, 96)
    heads = [g.op("reshape", part(g, x, k, k + 32), (2, N, 4, 8)) for k in (0, 32, 64)]
    out = g.op("nn.attention", *heads)

    found = extracted(g, out)

    assert [choice.inputs for choice in found.program] == [(), (x,)]


def test_the_result_is_stored_in_another_order() -> None:
    g = Graph()
    q, k, v = (g.leaf(2, N, 4, 8) for _ in range(3))
    out = swapped(g, g.op("nn.attention", q, k, v))

    found = extracted(g, out)

    assert kernels(found) == [f"{out} = permute_dims(nn.attention({q}, {k}, {v}))"]


def test_moves_there_and_back_are_no_way_to_make_a_value() -> None:
    g = Graph()
    x = g.leaf(2, 4, N, 8)
    there = swapped(g, g.op("take", x, g.leaf(4, dtype="int64"), axis=1))
    back = swapped(g, there)
    swapped(g, back, into=there)
    out = g.op("nn.attention", there, there, there)

    found = extracted(g, out)

    assert found.program[-1].outputs == (out,)
    assert found.status == "optimal"


def test_what_is_joined_is_read_where_its_parts_lie_unless_others_need_it() -> None:
    g = Graph()
    q, past, new = g.leaf(1, 1, 4, 8), g.leaf(1, N, 4, 8), g.leaf(1, 1, 4, 8)
    whole = g.op("concat", [past, new], axis=1)
    out = g.op("nn.attention", q, whole, whole)

    alone, beside = (extracted(g, *roots) for roots in ((out,), (out, whole)))

    assert {c.outputs: c.inputs for c in alone.program if c.inputs} == {(out,): (q, past, new)}
    assert {c.outputs: c.inputs for c in beside.program if c.inputs} == {
        (whole,): (past, new),
        (out,): (q, whole),
    }


def test_only_what_the_library_reads_in_place_is() -> None:
    """Values that are columns are copied; keys may be."""
    g = Graph()
    q = g.leaf(1, N, 4, 8)
    columns = g.leaf(1, 4, 8, N)
    moved = g.op("permute_dims", columns, axes=(0, 3, 1, 2))
    values = g.op("permute_dims", g.op("exp", columns), axes=(0, 3, 1, 2))
    out = g.op("nn.attention", q, moved, values)

    found = extracted(g, out)

    assert found.program[-1].inputs == (q, columns, values)

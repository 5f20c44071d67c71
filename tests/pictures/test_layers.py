"""Boxes in layers: apart from each other, below what they read, close to their neighbours."""

from itertools import accumulate, pairwise

from hypothesis import given
from hypothesis import strategies as st

from relax_egraph.pictures.layers import BETWEEN, GAP, apart, places

SIZES = st.tuples(st.floats(1, 400), st.floats(1, 200))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[float, float]], list[list[int]]]:
    sizes = draw(st.lists(SIZES, min_size=1, max_size=12))
    each = st.lists(st.integers(0, len(sizes) - 1), max_size=4)
    return sizes, [draw(each) for _ in sizes]


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[float], list[float]]:
    pairs = draw(st.lists(st.tuples(st.floats(-500, 500), st.floats(0, 300)), max_size=10))
    return [want for want, _ in pairs], [width for _, width in pairs]


@given(graphs())
def test_boxes_do_not_overlap(graph: tuple[list[tuple[float, float]], list[list[int]]]) -> None:
    sizes, reads = graph
    found = places(sizes, reads)

    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(found.corners, sizes, strict=True)]
    for k, (left, top, right, bottom) in enumerate(boxes):
        assert left >= GAP - 1e-6
        assert right <= found.size[0] - GAP + 1e-6
        assert top >= GAP
        assert bottom <= found.size[1] - GAP + 1e-6
        for other in boxes[k + 1 :]:
            beside = other[0] >= right + GAP - 1e-6 or left >= other[2] + GAP - 1e-6
            assert beside or other[1] >= bottom or top >= other[3]


@given(graphs())
def test_a_box_is_below_what_it_reads(
    graph: tuple[list[tuple[float, float]], list[list[int]]],
) -> None:
    sizes, reads = graph
    acyclic = [[k for k in each if k < box] for box, each in enumerate(reads)]
    found = places(sizes, acyclic)

    for box, each in enumerate(acyclic):
        for k in each:
            assert found.corners[box][1] >= found.corners[k][1] + sizes[k][1] + BETWEEN - 1e-6
            assert (k, box) in found.bends


@given(orders(), st.data())
def test_places_in_a_row_are_apart_and_the_closest(
    order: tuple[list[float], list[float]], data: st.DataObject
) -> None:
    wanted, widths = order
    found = apart(wanted, widths)
    least = [GAP + (a + b) / 2 for a, b in pairwise(widths)]
    slack = data.draw(st.lists(st.floats(0, 300), min_size=len(least), max_size=len(least)))
    steps = [a + b for a, b in zip(least, slack, strict=True)]
    other = [*accumulate(steps, initial=data.draw(st.floats(-500, 500)))][: len(wanted)]

    assert all(b - a >= need - 1e-6 for (a, b), need in zip(pairwise(found), least, strict=True))
    assert _distance(found, wanted) <= _distance(other, wanted) * (1 + 1e-9) + 1e-6


def _distance(found: list[float], wanted: list[float]) -> float:
    return sum((a - b) ** 2 for a, b in zip(found, wanted, strict=True))


def test_a_source_is_beside_its_first_user() -> None:
    found = places([(10, 10)] * 4, [[], [0], [], [1, 2]])

    assert [y for _, y in found.corners] == [24, 78, 78, 132]

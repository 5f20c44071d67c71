"""Offsets of tensors with symbolic sizes: never two in one place, and little lost between them."""

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.polynomial import polynomial
from relax_egraph.passes.analyses.byte_sizes import ALIGNMENT, MOST_PARTS, ByteSizes, Extent
from relax_egraph.passes.analyses.offset_packing import Block, largest_live, pack

n, m = dims.symbol("n"), dims.symbol("m")

SIZES: tuple[Dim, ...] = (
    *(n * 256, n * 64, n * 4, n * 12 + 4, m * 256, m * 4, n * m * 4),
    *(0, 64, 100, 5000, dims.mul(dims.floordiv(n, 2), 4), dims.mul(dims.minimum(n, 7), 64)),
)
VALUES = [{"n": a, "m": b} for a, b in ((0, 0), (1, 1), (3, 1000), (1000, 2), (77, 13))]


def block(size: Dim, begin: int, end: int) -> Block:
    return Block(polynomial(dims.canonical(size)), begin, end)


@st.composite
def blocks_of(draw: st.DrawFn, sizes: Sequence[Dim]) -> list[Block]:
    """Some blocks of `sizes`, in 27 steps."""
    found: list[Block] = []
    for _ in range(draw(st.integers(1, 14))):
        begin, length = draw(st.integers(0, 20)), draw(st.integers(0, 6))
        found.append(block(draw(st.sampled_from(sizes)), begin, begin + length))
    return found


def live_at_once(blocks: Sequence[Block], sizes: Sequence[int]) -> int:
    """The most bytes that live at one step."""
    return max(
        sum(s for b, s in zip(blocks, sizes, strict=True) if b.begin <= step <= b.end)
        for step in range(28)
    )


@given(blocks_of(SIZES))
@settings(max_examples=50, deadline=None)
def test_what_lives_at_the_same_time_does_not_overlap(blocks: list[Block]) -> None:
    packing = pack(blocks, ByteSizes())

    for values in VALUES:
        sizes = [b.size.evaluate(values) for b in blocks]
        offsets = [o.evaluate(values) for o in packing.offsets]
        total = packing.size.evaluate(values)
        assert (
            live_at_once(blocks, sizes)
            <= total
            <= sum(-(-s // ALIGNMENT) * ALIGNMENT for s in sizes)
        )
        spans = list(zip(blocks, offsets, sizes, strict=True))
        for k, (a, start, size) in enumerate(spans):
            assert start % ALIGNMENT == 0
            assert 0 <= start <= start + size <= total
            for b, other, length in spans[:k]:
                if a.begin <= b.end and b.begin <= a.end:
                    assert start + size <= other or other + length <= start


@given(blocks_of((n * 256, n * 64, n * 512, 0)))
@settings(max_examples=50, deadline=None)
def test_comparable_sizes_take_little_more_than_what_lives_at_once(blocks: list[Block]) -> None:
    packing = pack(blocks, ByteSizes())

    sizes = [b.size.evaluate({"n": 1000}) for b in blocks]
    assert packing.size.evaluate({"n": 1000}) <= 1.5 * live_at_once(blocks, sizes)


@given(blocks_of(SIZES))
@settings(max_examples=40, deadline=None)
def test_the_largest_live_set_is_found_for_all_sizes(blocks: list[Block]) -> None:
    found = largest_live(blocks, ByteSizes())

    for values in VALUES:
        sizes = [b.size.evaluate(values) for b in blocks]
        most = max(live.evaluate(values) for live in found)
        assert most == live_at_once(blocks, sizes)


def test_the_largest_come_first_and_gaps_are_filled() -> None:
    blocks = [block(n * 64, 0, 1), block(n * 256, 1, 2), block(n * 64, 2, 3), block(128, 0, 3)]

    packing = pack(blocks, ByteSizes())

    assert [dims.text(o.dim()) for o in packing.offsets] == [
        "n * 256",
        "0",
        "n * 256",
        "n * 320",
    ]
    assert dims.text(packing.size.dim()) == "n * 320 + 128"


def test_a_size_that_is_no_multiple_of_a_line_ends_one() -> None:
    packing = pack([block(n * 4, 0, 1), block(n * 4, 0, 1)], ByteSizes())

    assert [dims.text(o.dim()) for o in packing.offsets] == ["0", "((n * 4 + 63) // 64) * 64"]
    assert dims.text(packing.size.dim()) == "n * 4 + ((n * 4 + 63) // 64) * 64"


def test_beside_sizes_that_cannot_be_compared_lies_what_is_behind_both() -> None:
    packing = pack([block(n * 64, 0, 0), block(m * 64, 1, 1), block(64, 0, 1)], ByteSizes())

    assert [dims.text(o.dim()) for o in packing.offsets] == ["0", "0", "max(m, n) * 64"]


@given(st.lists(st.sampled_from([(a, b) for a in range(5) for b in range(-2, 3)]), max_size=20))
@settings(max_examples=20, deadline=None)
def test_the_largest_of_many_ends_is_at_least_each_of_them(counts: list[tuple[int, int]]) -> None:
    """Also where a part of a size may be negative by itself, as ``(n - 9) // 4``."""
    rows = dims.floordiv(n - 9, 4)
    ends = [Extent((polynomial(dims.canonical(a * rows + b * n * m + 9)),)) for a, b in counts]

    largest = ByteSizes().maximum(ends)

    assert len(largest.parts) <= MOST_PARTS
    for values in VALUES:
        assert largest.evaluate(values) >= max((e.evaluate(values) for e in ends), default=0)

"""Loops are split where positions are decided upon, so that they neither compare nor divide."""

from collections.abc import Callable

import pytest

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.legalize.image import pad, pixel_shuffle
from relax_egraph.lower.legalize.rearrange import flip, repeat, tile
from relax_egraph.lower.schedule import schedule
from relax_egraph.tir import te
from relax_egraph.tir.expr import Binary, Select
from relax_egraph.tir.rewrite import expressions, nodes, statements
from relax_egraph.tir.stmt import For, PrimFunc
from tests.support.scheduled import M, N, assert_same_results, loops_of

SIZES = [(0, 3), (3, 0), (1, 1), (2, 7), (5, 17), (3, 40)]


def of(make: Callable[[te.Tensor], te.Tensor], *shape: Dim) -> PrimFunc:
    x = te.placeholder(shape, name="x")
    return te.create_prim_func(x, make(x))


def padded(mode: str, *shape: Dim, width: tuple[int, ...] = (1, 2, 2, 1)) -> PrimFunc:
    return of(lambda x: pad(x, pad_width=width, pad_mode=mode, pad_value=3.0), *shape)


def turned(*shape: Dim) -> PrimFunc:
    """``[-x₂, x₁]`` of the halves of each row, as rotary embeddings turn them."""
    last = shape[-1]
    assert isinstance(last, int)
    half = last // 2

    def value(x: te.Tensor) -> te.Tensor:
        return te.compute(
            shape,
            lambda i, j: te.if_then_else(j < half, -x[i, j + half], x[i, j - half]),
            "turned",
        )

    return of(value, *shape)


def triangle() -> PrimFunc:
    """What is compared are two variables: no border holds for all rows."""
    return of(
        lambda x: te.compute((N, M), lambda i, j: te.select(j <= i, x[i, j], 0.0), "out"), N, M
    )


def in_the_middle() -> PrimFunc:
    """One row and one column are different."""
    return of(
        lambda x: te.compute(
            (9, 40),
            lambda i, j: te.select(
                te.logical_or(te.equal(i, 4), te.not_equal(j, 20)), x[i, j], 1.0
            ),
            "out",
        ),
        9,
        40,
    )


SYMBOLIC = {
    "constant": padded("constant", N, M),
    "replicate": padded("replicate", N, M),
    "rows": padded("constant", N, M, width=(2, 0, 0, 0)),
    "tile": of(lambda x: tile(x, repeats=(2, 3)), N, M),
    "tile narrow": of(lambda x: tile(x, repeats=(2, 8)), N, 3),
    "repeat rows": of(lambda x: repeat(x, repeats=2, axis=0), N, M),
    "repeat": of(lambda x: repeat(x, repeats=3, axis=1), N, M),
    "repeat often": of(lambda x: repeat(x, repeats=32, axis=1), N, M),
    "flip": of(lambda x: flip(x, axis=1), N, M),
    "turned": turned(N, 64),
    "triangle": triangle(),
}

FIXED = {
    "constant": padded("constant", 5, 40),
    "reflect": padded("reflect", 5, 40, width=(2, 3, 4, 4)),
    "reflect narrow": padded("reflect", 3, 4),
    "circular": padded("circular", 5, 40, width=(5, 5, 3, 1)),
    "replicate": padded("replicate", 5, 40),
    "of a cube": padded("constant", 2, 1, 5, 30, width=(0, 0, 0, 0, 1, 1, 1, 1)),
    "of a row": padded("constant", 100, width=(7, 9)),
    "pixels": of(lambda x: pixel_shuffle(x, upscale_factor=2), 1, 8, 3, 20),
    "in the middle": in_the_middle(),
}

SPLIT = {
    **{name: SYMBOLIC[name] for name in ("constant", "tile", "repeat rows", "turned")},
    **{f"fixed {name}": f for name, f in FIXED.items() if name not in ("reflect narrow", "pixels")},
}


@pytest.mark.parametrize("name", SYMBOLIC)
@pytest.mark.parametrize(("n", "m"), SIZES)
def test_pieces_compute_the_same(name: str, n: int, m: int) -> None:
    assert_same_results(SYMBOLIC[name], n=n, m=m)


@pytest.mark.parametrize("name", FIXED)
def test_pieces_of_known_sizes_compute_the_same(name: str) -> None:
    assert_same_results(FIXED[name])


@pytest.mark.parametrize("name", SPLIT)
def test_nothing_is_compared_or_divided_inside_of_the_pieces(name: str) -> None:
    scheduled = schedule(SPLIT[name])

    values = [e for e in expressions(scheduled.body) if e.dtype != "int64"]
    decided = [
        e
        for value in values
        for e in nodes(value)
        if isinstance(e, Select) or (isinstance(e, Binary) and e.kind in ("//", "%", "min", "max"))
    ]
    assert decided == []


def test_a_padded_matrix_is_a_body_and_borders() -> None:
    assert loops_of(schedule(padded("constant", 5, 40))) == [
        ("vectorized", "43"),
        ("parallel", "5"),
        ("vectorized", "2"),
        ("vectorized", "40"),
        ("vectorized", "86"),
    ]


def test_a_repeated_matrix_is_copied_again_and_again() -> None:
    assert loops_of(schedule(SYMBOLIC["tile"])) == [
        ("parallel", "2"),
        ("parallel", "n"),
        ("parallel", "3"),
        ("vectorized", "m"),
    ]


def test_short_rows_stay_whole() -> None:
    assert loops_of(schedule(padded("reflect", 3, 4)))[-1] == ("vectorized", "7")


def test_what_compares_two_loops_stays_whole() -> None:
    assert loops_of(schedule(triangle())) == [("parallel", "n"), ("vectorized", "m")]


@pytest.mark.parametrize("name", SPLIT)
def test_each_loop_has_a_variable_of_its_own(name: str) -> None:
    body = schedule(SPLIT[name]).body

    used = [s.var for s in statements(body) if isinstance(s, For)]
    assert len(set(used)) == len(used)

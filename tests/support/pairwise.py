"""Test parameters: all pairs of values in every run, all combinations in long runs."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(*axes: Sequence[Any]) -> list[Any]:
    """The product of `axes`; points beyond those that cover all pairs are marked as long runs."""
    few = set(_covering(axes))
    return [
        pytest.param(
            *(axis[k] for axis, k in zip(axes, point, strict=True)),
            marks=[] if point in few else pytest.mark.fuzz,
        )
        for point in product(*(range(len(axis)) for axis in axes))
    ]


def pairs(*axes: Sequence[Any]) -> list[tuple[Any, ...]]:
    """A few points of the product of `axes` that cover every pair of values."""
    return [tuple(a[k] for a, k in zip(axes, point, strict=True)) for point in _covering(axes)]


def _covering(axes: Sequence[Sequence[Any]]) -> list[tuple[int, ...]]:
    """Points chosen greedily, each with the most pairs that no earlier point has."""
    everything = list(product(*(range(len(axis)) for axis in axes)))
    chosen, missing = list[tuple[int, ...]](), set[Any]().union(*map(_pairs, everything))
    while missing:
        best = max(everything, key=lambda point: len(_pairs(point) & missing))
        chosen.append(best)
        missing -= _pairs(best)
    return chosen


def _pairs(point: tuple[int, ...]) -> set[Any]:
    return set(combinations(enumerate(point), 2))

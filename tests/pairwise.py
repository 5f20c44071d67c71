"""Parameters of a test: every pair of values in every run, all combinations in the long ones."""

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(*axes: Sequence[Any]) -> list[Any]:
    """The product of `axes`, of which all but few that have every pair of values are long runs.

    Those few are chosen one by one, each for the most pairs that none before it has.
    """
    everything = list(product(*(range(len(axis)) for axis in axes)))
    chosen, missing = list[tuple[int, ...]](), set[Any]().union(*map(_pairs, everything))
    while missing:
        best = max(everything, key=lambda point: len(_pairs(point) & missing))
        chosen.append(best)
        missing -= _pairs(best)
    return [
        pytest.param(
            *(axis[k] for axis, k in zip(axes, point, strict=True)),
            marks=[] if point in chosen else pytest.mark.fuzz,
        )
        for point in everything
    ]


def _pairs(point: tuple[int, ...]) -> set[Any]:
    return set(combinations(enumerate(point), 2))

"""What torch defines of results that it leaves open in part, by operators of its database.

Two results agree if they are equal in what is defined.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

Judge: TypeAlias = Callable[[Any, Sequence[torch.Tensor], Sequence[torch.Tensor]], str]
"""Of a sample, own results and torch's: why they differ, or nothing."""

RELATIVE, ABSOLUTE = 1e-4, 1e-5
"""How far results in float32 may be off: sums have another order."""


def difference(name: str, sample: Any, own: Sequence[Any], expected: Sequence[Any]) -> str:
    """Why results of the operator `name` are not torch's; empty if they are in what is defined."""
    tensors = [value for value in expected if isinstance(value, torch.Tensor)]
    if len(own) == len(tensors):  # numbers of an exported program are no results of it
        expected = tensors
    if len(own) != len(expected):
        return f"{len(own)} results instead of {len(expected)}"
    pairs = [(o, e) for o, e in zip(own, expected, strict=True) if isinstance(e, torch.Tensor)]
    judge = OPEN.get(name, _equal)
    return judge(sample, [o for o, _ in pairs], [e.detach() for _, e in pairs])


def _equal(_: Any, own: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str:
    for result, want in zip(own, expected, strict=True):
        try:
            torch.testing.assert_close(
                result, want, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True, check_stride=False
            )
        except AssertionError as error:
            return "wrong result: " + " ".join(str(error).split())[:200]
    return ""


def _alike(_: Any, own: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str:
    """Dtypes and shapes agree: the elements are whatever was in memory."""
    kinds = [[(x.dtype, tuple(x.shape)) for x in some] for some in (own, expected)]
    return "" if kinds[0] == kinds[1] else f"wrong result: {kinds[0]} instead of {kinds[1]}"


def _grown(sample: Any, own: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str:
    """The elements that the operand had agree, those that it grew by are whatever was in memory."""
    kept = sample.input.numel()
    heads = [[x.reshape(-1)[:kept] for x in some] for some in (own, expected)]
    return _alike(sample, own, expected) or _equal(sample, *heads)


def _at_places(*, axis: int, default: int = -1, distinct: bool = False) -> Judge:
    """Values agree, and so do those at the places, which are the last result.

    The axis is argument `axis` of the sample, or else `default`.  Places of a sort are `distinct`.
    """

    def judged(sample: Any, own: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> str:
        if len(expected) == 1 and not distinct:
            return _equal(sample, own, expected)
        if problem := _equal(sample, own[:-1], expected[:-1]) or _alike(sample, own, expected):
            return problem
        x, places, wanted = sample.input, own[-1], expected[-1]
        if not x.ndim:
            return _equal(sample, [places], [wanted])
        given = sample.args[axis] if len(sample.args) > axis else sample.kwargs.get("dim", default)
        if places.ndim < x.ndim:
            places, wanted = places.unsqueeze(given), wanted.unsqueeze(given)
        if places.numel() and not bool(((places >= 0) & (places < x.shape[given])).all()):
            return "wrong result: places are outside of the axis"
        if distinct and not bool((places.sort(given).values.diff(dim=given) > 0).all()):
            return "wrong result: a place is there twice"
        return _equal(sample, [x.gather(given, places)], [x.gather(given, wanted)])

    return judged


OPEN: Mapping[str, Judge] = {
    # elements without a value
    **dict.fromkeys(
        (
            "empty",
            "empty_like",
            "empty_permuted",
            "empty_strided",
            "new_empty",
            "new_empty_strided",
        ),
        _alike,
    ),
    "resize_": _grown,
    "resize_as_": _grown,
    # any one of equal elements
    "kthvalue": _at_places(axis=1),
    "median": _at_places(axis=0),
    "mode": _at_places(axis=0),
    "nanmedian": _at_places(axis=0),
    # equal elements in any order
    "argsort": _at_places(axis=0, distinct=True),
    "sort": _at_places(axis=0, distinct=True),
    "topk": _at_places(axis=1, distinct=True),
}
"""Operators with results that torch does not say all of."""

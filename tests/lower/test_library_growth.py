"""A kernel that is accepted has no part that is refused for good."""

import pytest

from relax_egraph.ir.kernel import Kernel
from relax_egraph.lower.library import Library
from tests.lower.test_library import ACCEPTED
from tests.support.drafts import Draft


@pytest.mark.parametrize("name", ACCEPTED)
def test_every_part_of_an_accepted_kernel_is_accepted_or_may_grow(name: str) -> None:
    library, (kernel, _) = Library(), ACCEPTED[name]

    parts = [below(kernel, k) for k in range(len(kernel.steps))]

    for part in parts:
        operators = frozenset(step.op.name for step in part.steps)
        assert library.schedule_of(part) is not None or library.may_grow(operators), operators


def below(kernel: Kernel, number: int) -> Kernel:
    """The kernel that computes step `number` of `kernel` alone."""
    count, needed = len(kernel.inputs), {number}
    for k in range(number, -1, -1):
        if k in needed:
            needed |= {v - count for v in kernel.steps[k].values if v >= count}
    inputs = {v for k in needed for v in kernel.steps[k].values if v < count}
    draft, numbers = Draft(), dict[int, int]()
    for v in sorted(inputs):
        numbers[v] = draft.input(kernel.inputs[v])
    for k in sorted(needed):
        step = kernel.steps[k]
        operands = [
            numbers[o]
            if isinstance(o, int)
            else [numbers[v] for v in o]
            if isinstance(o, tuple)
            else o.values or ()
            for o in step.operands
        ]
        numbers[count + k] = draft.do(step.op.name, *operands, **dict(step.attrs))
    return draft.kernel(numbers[count + number])


@pytest.mark.parametrize(
    ("operators", "may"),
    [
        ("permute_dims reshape", True),
        ("concat strided_slice nn.attention", True),
        ("reshape add", False),
        ("matmul add", False),
        ("sum permute_dims", False),
    ],
)
def test_only_refused_movements_may_grow(operators: str, may: bool) -> None:
    assert Library().may_grow(frozenset(operators.split())) is may

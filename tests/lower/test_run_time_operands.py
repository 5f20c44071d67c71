"""Operators that run as packed functions refuse what does not fit, by errors of ours only."""

from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest

from relax_egraph.errors import RelaxEgraphError, RunError
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.op import OPS, complete_attrs
from relax_egraph.ir.reference import REFERENCE
from relax_egraph.ir.run_time import NO_VALUE, PREFIX, at_run_time
from tests.support.ops import SAMPLERS
from tests.support.ops.case import Draw

CASES, CHANGES = 2, 8

WRONG: tuple[Any, ...] = (
    *(np.array(5), np.array([]), np.array([2**62, -(2**62)]), np.array(np.nan), np.array("x")),
    *(np.array([[np.inf]], np.float32), np.array([True]), np.array(-1), np.zeros((0, 2))),
    *("", NO_VALUE, "reflect", None, (), (0,), (-1, 2**63), (1.5, float("nan")), object()),
    *(0, -1, 2**70, float("nan"), True, ((np.array(1),),)),
)


def passed(value: Attr) -> Any:
    """An attribute as the packed function gets it."""
    return NO_VALUE if value is None else value


def calls(name: str) -> Iterator[list[Any]]:
    """What an operator takes at run time, with one or two values replaced, left out or repeated."""
    random = Random(name)
    op = OPS[name]
    for _ in range(CASES):
        case = SAMPLERS[name](Draw(random))
        right = [*case.operands, *map(passed, complete_attrs(op, case.attrs).values())]
        for _ in range(CHANGES):
            values = list(right)
            for _ in range(random.choice((1, 1, 2))):
                place = random.randrange(len(values)) if values else 0
                match random.randrange(6):
                    case 0:
                        del values[place : place + 1]
                    case 1:
                        values.insert(place, random.choice(WRONG))
                    case _:
                        values[place : place + 1] = [random.choice(WRONG)]
            yield values


@pytest.mark.parametrize("name", sorted(set(SAMPLERS) & set(REFERENCE)))
def test_what_does_not_fit_is_refused_by_an_error_of_ours(name: str) -> None:
    run = at_run_time(f"{PREFIX}{name}")
    assert run is not None

    for values in calls(name):
        with suppress(RelaxEgraphError):
            run(*values)


def test_an_attribute_of_another_kind_is_named() -> None:
    run = at_run_time("relax.run.strided_slice")
    assert run is not None

    x, first = np.zeros((4, 4), np.float32), np.array([0])
    with pytest.raises(RunError) as error:
        run(x, first, np.array([2]), np.array(0), np.array([1]), False)

    message = 'R.strided_slice: axes is R.Tensor((), "int64"), needs ints'
    assert str(error.value) == message

"""Tests of passes, by module texts before and after."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from relax_egraph.build import build
from relax_egraph.ir.evaluate import evaluate
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.structural import assert_structural_equal
from relax_egraph.ir.well_formed import assert_well_formed
from relax_egraph.passes import Pass
from relax_egraph.script import parse
from relax_egraph.vm import VirtualMachine
from tests.support.rounding import assert_same


def becomes(transform: Pass, before: str, after: str) -> IRModule:
    """Assert that `transform` turns `before` into `after`, well-formed and a fixed point."""
    changed = transform(parse(before))

    assert_structural_equal(changed, parse(after))
    assert_well_formed(changed)
    assert_structural_equal(transform(changed), changed)
    return changed


def stays(transform: Pass, text: str) -> None:
    """Assert that the module is returned unchanged."""
    module = parse(text)

    assert transform(module) is module


def same_value(
    before: IRModule, after: IRModule, *args: Any, packed: Mapping[str, Any] | None = None
) -> Any:
    """Assert that ``main`` of both modules computes the same; returns the result."""
    expected = evaluate(before, "main", *args, packed=packed)

    equal_values(evaluate(after, "main", *args, packed=packed), expected)
    return expected


def runs_as_evaluated(text: str, *args: Any, name: str = "main", tolerance: float = 1e-6) -> Any:
    """Assert that the built function computes the same as evaluation; returns the result."""
    module = parse(text)
    assert_well_formed(module)

    expected = evaluate(module, name, *args)
    result = VirtualMachine(build(module))[name](*args)

    np.testing.assert_allclose(result, expected, rtol=tolerance, strict=True)
    return result


def equal_values(actual: Any, expected: Any) -> None:
    """Assert that both are the same tensors, or tuples of them."""
    if isinstance(expected, tuple):
        assert len(actual) == len(expected)
        for f, e in zip(actual, expected, strict=True):
            equal_values(f, e)
    else:
        assert_same(actual, expected)


def floats(*shape: int) -> Any:
    """Random float32, the same in every call."""
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)

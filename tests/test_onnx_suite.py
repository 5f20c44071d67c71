"""A sample of ONNX's public suite; `make conformance` runs all of it."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from bench.onnx_cases import LIGHT, cases
from bench.onnx_conformance import Outcome, outcome

EACH = 20
"""Of the cases in the order of their names, one of so many."""


@cache
def by_name() -> Mapping[str, Any]:
    """The cases of the suite."""
    return {case.name: case for case in cases() if case.kind != LIGHT}


SAMPLE = sorted(by_name())[::EACH]

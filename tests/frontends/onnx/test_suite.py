"""A sample of ONNX's public suite passes; `make conformance` runs all of it."""

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from bench.onnx_cases import LIGHT, cases, is_core
from bench.onnx_conformance import Outcome, outcome, reported
from tests.support.onnx_models import model, node, value

FAILURES = Path(__file__).parents[3] / "bench" / "onnx_conformance.json"
EACH, PARTS = 38, 2
"""Of the cases in the order of their names, one of so many, in so many tests."""


@cache
def sample() -> Sequence[Any]:
    """Cases that pass."""
    failing = {failure["name"] for failure in json.loads(FAILURES.read_text())["failures"]}
    small = sorted((c for c in cases() if c.kind != LIGHT), key=lambda case: case.name)
    return [case for case in small[::EACH] if case.name not in failing]


@pytest.mark.parametrize("part", range(PARTS))
def test_a_sample_of_the_suite(part: int) -> None:
    with np.errstate(all="ignore"):
        outcomes = [outcome(case) for case in sample()[part::PARTS]]

    assert len(outcomes) > 20
    assert [o for o in outcomes if o.reason] == []


def test_a_wrong_result_is_one() -> None:
    (case,) = cases(["test_abs"])[:1]
    ((given, wanted),) = case.data_sets
    case.data_sets = [(given, [wanted[0] + 1])]

    assert outcome(case).reason.startswith("wrong result: Not equal to tolerance")


def test_core_cases_are_of_plain_dtypes_and_onnx_itself() -> None:
    plain = model([node("Abs", "x", "y")], [value("x", [1])], [value("y", [1])])
    own = helper.make_node("Abs", ["x"], ["y"], domain="own")
    another = model([own], [value("x", [1])], [value("y", [1])])
    texts = onnx.ModelProto()
    texts.CopyFrom(plain)
    texts.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.STRING

    assert [is_core(m) for m in (plain, another, texts)] == [True, False, False]


def test_what_is_reported() -> None:
    outcomes = [Outcome("b", True, ""), Outcome("c", False, "no"), Outcome("a", True, "why")]

    assert reported(outcomes) == {
        "all": {"passed": 1, "of": 3},
        "core": {"passed": 1, "of": 2},
        "failures": [
            {"name": "a", "core": True, "reason": "why"},
            {"name": "c", "core": False, "reason": "no"},
        ],
    }

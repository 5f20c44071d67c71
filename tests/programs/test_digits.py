"""The demo: what it promises of the digit classifier."""

import numpy as np
import pytest

import relax_egraph as rx
from examples.digits import demo
from examples.digits.model import Digits, build_model
from relax_egraph.optimize.explanation import Explanation


@pytest.fixture(scope="module")
def digits() -> Digits:
    return Digits.load()


@pytest.fixture(scope="module")
def report(digits: Digits) -> Explanation:
    return rx.explain(build_model(digits.weights))


def test_two_fused_functions_are_left_and_no_transpose(report: Explanation) -> None:
    script = report.module.script()

    assert list(report.module.functions) == ["fused_matmul_add_relu", "fused_matmul_add", "main"]
    assert "permute_dims" not in script


def test_it_is_proven_to_be_the_cheapest_program(report: Explanation) -> None:
    assert [r.extraction.status for r in report.regions] == ["optimal"]
    assert report.gap == 0
    assert report.cost < report.cost_before


@pytest.mark.parametrize("n", [0, 1, 7, 1797])
def test_every_prediction_is_numpys(digits: Digits, report: Explanation, n: int) -> None:
    main = rx.VirtualMachine(rx.build(report.module))["main"]

    logits = main(digits.images[:n])

    expected = digits.logits(digits.images[:n])
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(logits.argmax(axis=1), expected.argmax(axis=1))


def test_the_demo_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(demo, "ROUNDS", 1)

    status = demo.main()

    assert status == 0
    assert "predictions equal to numpy's on every image" in capsys.readouterr().out

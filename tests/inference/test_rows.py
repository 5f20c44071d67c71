"""Any number of rows through models of any and of a fixed number."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.inference.model import Model
from relax_egraph.inference.rows import rows_per_call, through


def _model(rows: str, folder: Path) -> Model:
    text = f"""
@R.function
def main(x: R.Tensor(({rows}, 2), "float32"), y: R.Tensor(({rows}, 2), "float32")):
    gv = R.subtract(x, y)
    return gv
"""
    path = folder / "model.rxe"
    rx.build(rx.parse(text)).save(path)
    return Model(path)


@pytest.fixture(scope="module", params=['"n"', "4", "1"])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Model:
    return _model(request.param, tmp_path_factory.mktemp("rows"))


@given(count=st.integers(0, 13))
def test_every_number_of_rows_has_its_results(model: Model, count: int) -> None:
    x = np.arange(2 * count, dtype=np.float32).reshape(count, 2)

    results = through(model, {"x": x, "y": -x})

    assert results["output_0"].dtype == np.float32
    np.testing.assert_array_equal(results["output_0"], 2 * x)


def test_a_model_has_any_or_a_fixed_number_of_rows(tmp_path: Path) -> None:
    assert rows_per_call(_model('"n"', tmp_path)) is None
    assert rows_per_call(_model("4", tmp_path)) == 4


def test_inputs_with_different_numbers_of_rows_are_refused(tmp_path: Path) -> None:
    x = np.zeros((6, 2), np.float32)

    with pytest.raises(RunError, match="their numbers of rows: 6 of x, 5 of y"):
        through(_model("4", tmp_path), {"x": x, "y": x[:5]})


def test_a_model_without_a_batch_dimension_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "scalar.rxe"
    text = (
        "@R.function\ndef main(x: R.Tensor(('n',), 'float32')):\n    gv = R.sum(x)\n    return gv"
    )
    rx.build(rx.parse(text)).save(path)

    with pytest.raises(RunError, match="has no batch dimension: needs a first extent that all"):
        rows_per_call(Model(path))

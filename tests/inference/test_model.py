"""A saved model as a table of rows."""

from pathlib import Path

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import ExecutableError, RunError, UnknownFunction
from relax_egraph.inference.model import Model
from relax_egraph.inference.tensor import Tensor

ROWS = """
@R.function
def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")):
    with R.dataflow():
        lv = R.add(x, y)
        gv = (lv, R.sum(lv, axis=[1]))
        R.output(gv)
    return gv
"""


def _saved(text: str, folder: Path) -> Path:
    path = folder / "rows.rxe"
    rx.build(rx.optimize(rx.parse(text))).save(path)
    return path


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _saved(ROWS, tmp_path_factory.mktemp("model"))


def test_inputs_results_and_the_batch_have_names(rows: Path) -> None:
    model = Model(rows, outputs=["total", "sum"])

    assert model.inputs == (Tensor("x", "float32", ("n", 3)), Tensor("y", "float32", ("n", 3)))
    assert model.outputs == (Tensor("total", "float32", ("n", 3)), Tensor("sum", "float32", ("n",)))
    assert (model.name, model.batch, model.bounds) == ("rows", "n", ())
    assert repr(model) == (
        "<Model rows: x: (n, 3) of float32; y: (n, 3) of float32"
        " -> total: (n, 3) of float32; sum: (n,) of float32>"
    )


def test_a_call_returns_results_by_name(rows: Path) -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)

    results = Model(rows)({"y": 2 * x, "x": x})

    assert list(results) == ["output_0", "output_1"]
    np.testing.assert_array_equal(results["output_0"], 3 * x)
    np.testing.assert_array_equal(results["output_1"], (3 * x).sum(1))


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        ({"x": X}, "input y is missing: needs y: (n, 3) of float32"),
        ({"x": X, "y": X, "z": X}, "there is no input z: needs x, y"),
        (
            {"x": X, "y": X.astype(np.float64)},
            "input y: (2, 3) of float64: needs y: (n, 3) of float32",
        ),
        ({"x": X[:, :2], "y": X}, "input x: (2, 2) of float32: needs x: (n, 3) of float32"),
        ({"x": X[0], "y": X}, "input x: (3,) of float32: needs x: (n, 3) of float32"),
    ],
)
def test_a_wrong_input_is_named(rows: Path, inputs: dict[str, np.ndarray], sentence: str) -> None:
    with pytest.raises(RunError) as raised:
        Model(rows)(inputs)

    assert str(raised.value) == sentence


def test_rows_that_differ_in_number_are_an_error(rows: Path) -> None:
    with pytest.raises(RunError, match="n"):
        Model(rows)({"x": X, "y": X[:1]})


def test_what_cannot_be_served_is_said(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownFunction, match="other"):
        Model(rows, "other")
    with pytest.raises(RunError, match="the outputs are named a, a: needs 2 names, each once"):
        Model(rows, outputs=["a", "a"])
    with pytest.raises(ExecutableError, match="SHA-256"):
        Model(rows, digest="0" * 64)
    no_tensor = _saved("@R.function\ndef main(x: R.Shape(['n'])):\n    return x", tmp_path)
    with pytest.raises(RunError, match=r"x is R\.Shape.*: needs a tensor whose rank"):
        Model(no_tensor)


@pytest.mark.parametrize(
    ("signature", "batch"),
    [
        ('x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 3), "float32")', "n"),
        ('x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")', None),
        ('x: R.Tensor(("n", "n"), "float32"), y: R.Tensor(("n", "n"), "float32")', None),
        ('x: R.Tensor(("n", 3), "float32"), y: R.Tensor((3,), "float32")', None),
    ],
)
def test_rows_are_joined_only_along_one_symbol_of_all(
    signature: str, batch: str | None, tmp_path: Path
) -> None:
    text = f"@R.function\ndef main({signature}):\n    gv = R.add(x, y)\n    return gv"

    assert Model(_saved(text, tmp_path)).batch == batch


def test_plans_of_ranges_have_bounds(tmp_path: Path) -> None:
    """For few rows one product with W1·W2 is the faster way, for many rows two small ones."""
    random = np.random.default_rng(0)
    weights = [random.normal(size=s).astype(np.float32) for s in ((128, 16), (16, 128))]
    low_rank = rx.parse(
        """
@R.function
def main(x: R.Tensor(("n", 128), "float32")):
    with R.dataflow():
        lv0 = R.matmul(x, metadata["relax.expr.Constant"][0])
        gv0 = R.matmul(lv0, metadata["relax.expr.Constant"][1])
        R.output(gv0)
    return gv0
""",
        constants=weights,
    )
    path = tmp_path / "plans.rxe"
    rx.build(rx.optimize(low_rank, variants={"n": [(1, 1), (2, 64), (65, None)]})).save(path)

    assert Model(path).bounds == (64,)

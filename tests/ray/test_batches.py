"""Tables through a saved model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from tests.ray.squares import Array, check, rows, save_model

data = pytest.importorskip("ray.data", reason="needs the extra [ray]")

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # those of Ray
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "squares.rxe"
    save_model(path)
    return path


def table(count: int) -> Any:
    return data.range(count, override_num_blocks=4).map_batches(rows)


def _wide(batch: Mapping[str, Array]) -> dict[str, Array]:
    return {"x": batch["image"].astype(np.float64)}


def test_results_take_the_place_of_what_is_read(model: Path, tmp_path: Path) -> None:
    table(1000).write_parquet(str(tmp_path / "in"))
    read = data.read_parquet(str(tmp_path / "in"))

    mapped = rx.ray.map_batches(
        read, model, columns={"x": "image"}, outputs=["square", "sum"], actors=2, batch_size=64
    )
    mapped.write_parquet(str(tmp_path / "out"))

    found = data.read_parquet(str(tmp_path / "out")).sort("key").to_pandas()
    assert sorted(found.columns) == ["key", "square", "sum"]
    assert found["key"].tolist() == list(range(1000))
    check(found["key"].to_numpy(), np.stack(found["square"]), found["sum"].to_numpy())


def test_a_column_of_the_name_of_an_input_is_read_and_results_are_numbered(model: Path) -> None:
    named = table(10).rename_columns({"image": "x"})

    found = rx.ray.map_batches(named, model).sort("key").take_batch(10)

    assert sorted(found) == ["key", "output_0", "output_1"]
    check(found["key"], found["output_0"], found["output_1"])


def test_calls_of_one_actor_share_its_process(model: Path) -> None:
    read = table(4096).rename_columns({"image": "x"}).materialize()

    mapped = rx.ray.map_batches(read, model, outputs=["square", "sum"], calls=2, batch_size=16)

    found = mapped.sort("key").to_pandas()
    assert found["key"].tolist() == list(range(4096))
    check(found["key"].to_numpy(), np.stack(found["square"]), found["sum"].to_numpy())


def test_columns_that_are_known_are_checked_before_anything_runs(model: Path) -> None:
    known = table(10).materialize()

    with pytest.raises(RunError, match="input x reads column x: there are key, image"):
        rx.ray.map_batches(known, model)
    with pytest.raises(RunError, match="columns: there is no input y: needs x"):
        rx.ray.map_batches(known, model, columns={"y": "image"})
    with pytest.raises(RunError, match="there is a column key, as a result: name it by outputs="):
        rx.ray.map_batches(known, model, columns={"x": "image"}, outputs=["key", "sum"])


def test_rows_of_another_dtype_fail_with_the_sentence_of_the_model(model: Path) -> None:
    wide = table(10).map_batches(_wide)

    with pytest.raises(Exception, match=r"input x: \(10, 3\) of float64: needs x: \(n, 3\) of flo"):
        rx.ray.map_batches(wide.materialize(), model).materialize()


@pytest.mark.parametrize("rows", ['"n"', "4"])
def test_a_model_whose_rows_depend_on_each_other_is_refused_before_anything_runs(
    rows: str, tmp_path: Path
) -> None:
    path = tmp_path / "centred.rxe"
    text = f"""
@R.function
def main(x: R.Tensor(({rows}, 3), "float32")):
    with R.dataflow():
        gv = (R.negative(x), R.subtract(x, R.mean(x, axis=[0], keepdims=True)))
        R.output(gv)
    return gv
"""
    rx.build(rx.parse(text)).save(path)

    with pytest.raises(RunError) as raised:
        rx.ray.map_batches(table(10), path, columns={"x": "image"}, outputs=["minus", "centred"])

    assert str(raised.value) == (
        f"model {path}: a row of centred depends on the other rows of its batch: needs independent "
        "rows, as batches are any rows of the table"
    )

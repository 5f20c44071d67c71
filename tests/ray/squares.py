"""A small model, a table for it, and its results: for the tests of `map_batches`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import relax_egraph as rx

Array = np.ndarray[Any, Any]

TEXT = """
@R.function
def main(x: R.Tensor(("n", 3), "float32")):
    with R.dataflow():
        gv = (R.multiply(x, x), R.sum(x, axis=[1]))
        R.output(gv)
    return gv
"""


def save_model(path: Path) -> None:
    """Write the model, which returns squares and sums of rows."""
    rx.build(rx.optimize(rx.parse(TEXT))).save(path)


def rows(batch: Mapping[str, Array]) -> dict[str, Array]:
    """The keys of a batch of ``ray.data.range``, and an image that follows from each."""
    key = batch["id"]
    return {"key": key, "image": np.stack([key, -key, 2 * key], 1).astype(np.float32)}


def check(key: Array, square: Array, total: Array) -> None:
    """Raise ``AssertionError`` unless squares and sums are those of the images of `key`."""
    image = rows({"id": key})["image"]
    np.testing.assert_array_equal(square, image**2)
    np.testing.assert_array_equal(total, image.sum(1))

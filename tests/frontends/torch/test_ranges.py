"""Bounds that a user gives for sizes: known to rules, and checked by each call."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import relax_egraph as rx
from relax_egraph.errors import RunError
from relax_egraph.ir.module import IRModule

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


class Placed(torch.nn.Module):
    """Rows with an embedding of their places, of which there are 64."""

    def __init__(self) -> None:
        super().__init__()
        self.places = torch.nn.Embedding.from_pretrained(torch.arange(512.0).reshape(64, 8))

    def forward(self, x: Any) -> Any:
        return x + self.places(torch.arange(x.shape[0]))


def _imported(**bounds: int) -> IRModule:
    batch = torch.export.Dim("batch", **bounds)
    program = torch.export.export(Placed(), (torch.randn(7, 8),), dynamic_shapes=({0: batch},))
    return rx.from_torch(program)


def _call(module: IRModule, rows: int) -> Any:
    return rx.VirtualMachine(rx.build(module))["main"](np.ones((rows, 8), "float32"))


@pytest.mark.parametrize(("most", "is_proven"), [(64, True), (65, False)])
def test_the_bounds_of_a_size_are_known(most: int, is_proven: bool) -> None:
    module = _imported(min=4, max=most)

    assert ("R.check_indices" not in module.script()) == is_proven
    for rows in (4, 9, 64):
        wanted = np.arange(8 * rows, dtype="float32").reshape(rows, 8) + 1
        np.testing.assert_array_equal(_call(rx.optimize(module), rows), wanted)


REFUSED: Mapping[int, str] = {
    3: "the dimension batch is 3, needs 4 or more",
    65: "the dimension batch is 65, needs 64 or less",
}


@pytest.mark.parametrize("rows", REFUSED)
def test_a_size_out_of_its_bounds_is_refused(rows: int) -> None:
    module = _imported(min=4, max=64)

    for program in (module, rx.optimize(module), rx.optimize(module, assume=["batch <= 64"])):
        with pytest.raises(RunError, match=REFUSED[rows]):
            _call(program, rows)


def test_sizes_without_bounds_are_not_checked() -> None:
    assert "match_cast(R.shape" not in _imported().script()

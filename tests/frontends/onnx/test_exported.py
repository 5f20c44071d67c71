"""Shape arithmetic and files as exporters of whole networks write them."""

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

import relax_egraph as rx
from relax_egraph.errors import RunError
from tests.support.onnx_models import Array, model, node, value


def floats(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_pads_that_are_turned_around() -> None:
    """(left, right, top, bottom) of the last axes first become (begins…, ends…) of all axes."""
    zeros = numpy_helper.from_array(np.zeros(1, np.int64))
    imported = rx.from_onnx(
        model(
            [
                node("ConstantOfShape", "four", "none", value=zeros),
                node("Concat", "said none", "all", axis=0),
                node("Reshape", "all pairs", "paired"),
                node("Slice", "paired last first axis back", "turned"),
                node("Transpose", "turned", "split", perm=[1, 0]),
                node("Reshape", "split flat", "pads"),
                node("Pad", "x pads", "y"),
            ],
            [value("x", ["batch", 3, 8, 8])],
            [value("y", ["batch", 3, "h", "w"])],
            {
                "four": np.array([4]),
                "said": np.array([0, 1, 2, 3]),
                "pairs": np.array([-1, 2]),
                "last": np.array([-1]),
                "first": np.array([-(2**63) + 1]),
                "axis": np.array([0]),
                "back": np.array([-1]),
                "flat": np.array([-1]),
            },
        )
    )

    assert '-> R.Tensor(("batch", 3, 13, 9), "float32")' in imported.script()


def test_a_product_divided_by_its_factor() -> None:
    """A floor division, in parts: tokens are ``(batch · tokens - rest) / batch``."""
    imported = rx.from_onnx(
        model(
            [
                node("Shape", "x", "batch", start=0, end=1),
                node("Size", "x", "size"),
                node("Mod", "size batch", "rest"),
                node("Sub", "size rest", "most"),
                node("Div", "most batch", "tokens"),
                node("Concat", "tokens batch", "shape", axis=0),
                node("Reshape", "x shape", "y"),
            ],
            [value("x", ["batch", "tokens"])],
            [value("y", ["a", "b"])],
        )
    )

    assert '-> R.Tensor(("tokens", "batch"), "float32")' in imported.script()


@pytest.mark.parametrize("padding", [0, 1, 2, 3])
def test_weights_that_lie_askew(tmp_path: Path, padding: int) -> None:
    """Wherever in its file a tensor lies, kernels can read it."""
    w = floats(64, 64)
    proto = model(
        [node("MatMul", "x w", "y")], [value("x", ["n", 64])], [value("y", ["n", 64])], {"w": w}
    )
    proto.producer_name = "." * (1 + padding)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString(deterministic=True))
    x = floats(2, 64)

    result = rx.VirtualMachine(rx.build(rx.from_onnx(path)))["main"](x)

    np.testing.assert_allclose(result, x @ w, 1e-4, 1e-5)


def embeddings() -> rx.IRModule:
    """Rows of a table at the tokens, and the first rows of a table of 8 positions beside them."""
    return rx.from_onnx(
        model(
            [
                node("Gather", "words ids", "word"),
                node("Shape", "ids", "length", start=1, end=2),
                node("Slice", "positions zero length one", "position"),
                node("Add", "word position", "embedded"),
                node("MatMul", "embedded weight", "hidden"),
                node("Shape", "hidden", "shape"),
                node("Slice", "shape zero two zero", "leading"),
                node("Concat", "leading heads", "split", axis=0),
                node("Reshape", "hidden split", "y"),
            ],
            [value("ids", ["batch", "length"], "int64")],
            [value("y", ["batch", "length", 2, 2])],
            {
                "words": floats(10, 4),
                "positions": floats(1, 8, 4),
                "weight": floats(4, 4),
                "zero": np.array([0]),
                "one": np.array([1]),
                "two": np.array([2]),
                "heads": np.array([2, 2]),
            },
        )
    )


def test_positions_that_are_learned_bound_the_length() -> None:
    imported = embeddings()
    told = rx.explain(imported)
    executable = rx.build(told.module)
    machine, before = rx.VirtualMachine(executable), rx.VirtualMachine(rx.build(imported))

    assert list(map(str, told.demands)) == ["length <= 8 (add, position)"]
    assert "relax.run." not in executable.as_text()
    for batch, length in ((2, 5), (1, 1), (3, 8), (2, 0)):
        ids = np.arange(batch * length).reshape(batch, length) % 10
        np.testing.assert_allclose(machine["main"](ids), before["main"](ids), rtol=1e-5)
    for run in (machine, before):
        with pytest.raises(RunError) as refusal:
            run["main"](np.zeros((2, 9), np.int64))
        assert str(refusal.value) == (
            'R.add of R.Tensor((2, 9, 4), "float32"), R.Tensor((1, 8, 4), "float32"): '
            "the shapes do not broadcast"
        )

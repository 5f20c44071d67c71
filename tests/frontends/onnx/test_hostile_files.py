"""Broken and hostile weights and files are refused by one clear error, and none is read outside."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import relax_egraph as rx
from tests.support.onnx_models import in_words, node, one, refusal

HUGE = 2**63 - 1


def weighted(change: dict[str, Any]) -> onnx.ModelProto:
    """A model whose weight of 4 × 4 numbers has other fields."""
    proto = one(node("MatMul", "x w", "y"), {"w": np.ones((4, 4), np.float32)})
    tensor = proto.graph.initializer[0]
    for name, changed in change.items():
        tensor.ClearField(name)
        if isinstance(changed, list):
            getattr(tensor, name).extend(changed)
        else:
            setattr(tensor, name, changed)
    return proto


@pytest.mark.parametrize(
    "change",
    [
        {"raw_data": b"1234567"},
        {"raw_data": b""},
        {"raw_data": b"", "float_data": [1.0] * 15},
        {"dims": [HUGE, HUGE]},
        {"dims": [2**62, 0]},
        {"dims": [4, -4]},
        {"dims": [1] * 10_000},
        {"data_type": 0},
        {"data_type": onnx.TensorProto.STRING},
        {"data_type": onnx.TensorProto.INT4},
        {"data_type": 1000},
        {"data_type": onnx.TensorProto.FLOAT16, "raw_data": b"", "int32_data": [10**9] * 16},
    ],
)
def test_weights_that_do_not_read(change: dict[str, Any]) -> None:
    text = refusal(weighted(change))

    assert "'w'" in text or "are not supported" in text


def test_texts_that_are_none() -> None:
    data = one(node("Relu", "x", "y", name="relu")).SerializeToString()
    broken = onnx.ModelProto.FromString(data.replace(b"relu", b"r\xff\xfeu"))

    assert refusal(broken) == "the name of a NodeProto is no text: b'r\\xff\\xfeu'"


def test_sparse_weights() -> None:
    proto = one(node("MatMul", "x w", "y", name="product"))
    proto.graph.sparse_initializer.add().values.name = "w"

    assert in_words(refusal(proto)) == (
        "product (MatMul, opset 21): its operand 'w' is not the output of an earlier node"
    )


# --- files ------------------------------------------------------------------------------


def beside(folder: Path, location: str, **more: str) -> Path:
    """A model in `folder` whose weight is said to be at `location`."""
    proto = weighted({"raw_data": b"", "data_location": onnx.TensorProto.EXTERNAL})
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    for key, text in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=text)
    (folder / "model.onnx").write_bytes(proto.SerializeToString())
    return folder / "model.onnx"


OUTSIDE = ["../w", "/dev/zero", "/etc/passwd", "link", "linked/w", "inside/../../w", "./..//w"]


@pytest.mark.parametrize("location", OUTSIDE)
def test_data_outside_of_the_folder(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "models"
    (folder / "inside").mkdir(parents=True)
    (tmp_path / "w").write_bytes(bytes(64))
    (folder / "link").symlink_to("../w")
    (folder / "linked").symlink_to(tmp_path)

    assert refusal(beside(folder, location)) == (
        f"tensor 'w' is in {location!r}, outside of the model's folder"
    )


@pytest.mark.parametrize("location", ["", ".", "none", "fifo", "circle", "a" * 5000, "\0", "a\0b"])
def test_data_that_are_no_file(tmp_path: Path, location: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "circle").symlink_to("circle")

    assert refusal(beside(tmp_path, location)) == f"tensor 'w' is in {location!r}, which is no file"


@pytest.mark.parametrize(
    "place",
    [
        {"offset": "65"},
        {"offset": "-1"},
        {"offset": str(2**70)},
        {"offset": "one"},
        {"offset": "9" * 6000},
        {"length": "0"},
        {"length": "-64"},
        {"length": str(2**70)},
    ],
)
def test_data_at_no_place(tmp_path: Path, place: dict[str, str]) -> None:
    (tmp_path / "w").write_bytes(bytes(128))

    assert refusal(beside(tmp_path, "w", **place)).startswith("tensor 'w' ")


def test_data_that_overlap_are_not_copied_again_and_again(tmp_path: Path) -> None:
    """A thousand tensors of a megabyte, each at another odd place of the same file."""
    (tmp_path / "w").write_bytes(bytes(1 << 20))
    proto = weighted({"data_location": onnx.TensorProto.EXTERNAL})
    for k in range(1000):
        tensor = proto.graph.initializer.add(name=f"w{k}", data_type=1, dims=[(1 << 18) - 1000])
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, text in {"location": "w", "offset": str(4 * k + 1)}.items():
            tensor.external_data.add(key=key, value=text)
    del proto.graph.initializer[0]
    (tmp_path / "model.onnx").write_bytes(proto.SerializeToString())

    text = refusal(tmp_path / "model.onnx")

    assert text == "tensor 'w2' is unaligned and overlaps others: 3133728 bytes to copy"


def test_models_that_are_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    for path in (tmp_path / "fifo", Path("/dev/zero")):
        assert refusal(path) == f"{path} is no regular file"
    for path in (tmp_path, tmp_path / "none.onnx"):
        with pytest.raises(OSError, match="directory"):
            rx.from_onnx(path)


def test_no_part_of_a_file_is_a_model(tmp_path: Path) -> None:
    """Cut off anywhere before its opset, a file is refused."""
    path = tmp_path / "model.onnx"
    proto = one(node("Relu", "x", "y"))
    whole = proto.SerializeToString()
    for end in range(len(whole) - sum(2 + o.ByteSize() for o in proto.opset_import)):
        path.write_bytes(whole[:end])
        assert refusal(path)

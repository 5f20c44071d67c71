"""ONNX models become modules that compute the same, with their dimensions' names."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import relax_egraph as rx
from relax_egraph.errors import ModelError
from relax_egraph.ir.evaluate import evaluate
from tests.support.onnx_models import Array, model, node, value

RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_model_of_any_batch() -> None:
    w, b = floats(8, 3), floats(3)
    imported = rx.from_onnx(
        model(
            [node("MatMul", "x w", "xw"), node("Add", "xw b", "sum"), node("Relu", "sum", "y")],
            [value("x", ["batch", 8])],
            [value("y", ["batch", 3])],
            {"w": w, "b": b},
        )
    )

    assert (
        imported.script()
        == """\
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("batch", 8), "float32")) -> R.Tensor(("batch", 3), "float32"):
        batch = T.int64()
        with R.dataflow():
            xw: R.Tensor((batch, 3), "float32") = R.matmul(x, metadata["relax.expr.Constant"][0])
            sum: R.Tensor((batch, 3), "float32") = R.add(xw, metadata["relax.expr.Constant"][1])
            y: R.Tensor((batch, 3), "float32") = R.nn.relu(sum)
            R.output(y)
        return y
"""
    )
    main = rx.VirtualMachine(rx.build(rx.optimize(imported)))["main"]
    for n in (0, 1, 5):
        x = floats(n, 8)
        np.testing.assert_allclose(main(x), np.maximum(x @ w + b, 0), 1e-5, 1e-6)


def test_computed_shapes_are_known() -> None:
    """(batch, tokens, 12) becomes (batch, tokens, 4, 3): no shape is left to compute."""
    imported = rx.from_onnx(
        model(
            [
                node("Shape", "x", "shape"),
                node("Gather", "shape zero", "batch", axis=0),
                node("Gather", "shape one", "tokens", axis=0),
                node("Unsqueeze", "batch axis", "b"),
                node("Unsqueeze", "tokens axis", "t"),
                node("Concat", "b t heads", "wanted", axis=0),
                node("Reshape", "x wanted", "split"),
                node("Transpose", "split", "y", perm=[0, 2, 1, 3]),
            ],
            [value("x", ["batch", "tokens", 12])],
            [value("y", [None] * 4)],
            {
                "zero": np.array(0),
                "one": np.array(1),
                "axis": np.array([0]),
                "heads": np.array([4, -1]),
            },
        )
    )

    assert imported.script().splitlines()[8:13] == [
        "        with R.dataflow():",
        '            split: R.Tensor((batch, tokens, 4, 3), "float32") = R.reshape(',
        "                x, R.shape([batch, tokens, 4, 3])",
        "            )",
        '            y: R.Tensor((batch, 4, tokens, 3), "float32") = '
        "R.permute_dims(split, axes=[0, 2, 1, 3])",
    ]


def test_extents_may_be_given_otherwise() -> None:
    proto = model([node("Relu", "x", "y")], [value("x", ["batch", 3])], [value("y", ["batch", 3])])

    given = rx.from_onnx(proto, shapes={"x": (2, "n")})

    assert 'x: R.Tensor((2, "n"), "float32")' in given.script()


def test_sums_of_names_are_sums() -> None:
    imported = rx.from_onnx(
        model(
            [node("Concat", "past x", "y", axis=0), node("Add", "y mask", "z")],
            [value("past", ["p"]), value("x", ["s"]), value("mask", ["p + s"])],
            [value("z", [None])],
        )
    )

    assert 'mask: R.Tensor(("p + s",), "float32")' in imported.script()
    assert 'R.Tensor(("p + s",), "float32"):' in imported.script()


def test_a_shape_of_run_time_gets_symbols() -> None:
    imported = rx.from_onnx(
        model(
            [node("Reshape", "x shape", "split"), node("Exp", "split", "y")],
            [value("x", ["n", 6]), value("shape", [3], "int64")],
            [value("y", [None] * 3)],
        )
    )

    main = rx.VirtualMachine(rx.build(rx.optimize(imported)))["main"]
    x = floats(4, 6)
    for shape, result in (([0, 3, -1], (4, 3, 2)), ([-1, 1, 1], (24, 1, 1))):
        np.testing.assert_allclose(main(x, np.array(shape)), np.exp(x).reshape(result), 1e-5)
    assert imported.script().splitlines()[-3:-1] == [
        '            y: R.Tensor((split_0, split_1, split_2), "float32") = R.exp(split14)',
        "            R.output(y)",
    ]


def test_attributes_of_run_time() -> None:
    imported = rx.from_onnx(
        model(
            [node("TopK", "x k", "values places", axis=1), node("Tile", "values times", "y")],
            [value("x", ["n", 7]), value("k", [1], "int64"), value("times", [2], "int64")],
            [value("y", [None, None])],
        )
    )

    main = rx.VirtualMachine(rx.build(rx.optimize(imported)))["main"]
    x = floats(3, 7)
    best = -np.sort(-x, axis=1)[:, :2]
    np.testing.assert_array_equal(main(x, np.array([2]), np.array([1, 3])), np.tile(best, (1, 3)))


def test_branches_read_what_is_around_them() -> None:
    then = helper.make_graph([node("Add", "x two", "a")], "then", [], [value("a", [None])])
    other = helper.make_graph([node("Mul", "x scale", "b")], "else", [], [value("b", [None])])
    imported = rx.from_onnx(
        model(
            [node("If", "condition", "y", then_branch=then, else_branch=other)],
            [value("condition", [], "bool"), value("x", ["n"]), value("scale", [])],
            [value("y", ["n"])],
            {"two": np.array(2, np.float32)},
        )
    )

    x, scale = floats(5), np.float32(3)
    main = rx.VirtualMachine(rx.build(rx.optimize(imported)))["main"]
    for condition, expected in ((True, x + 2), (False, x * 3)):
        np.testing.assert_array_equal(main(np.array(condition), x, np.array(scale)), expected)
        np.testing.assert_array_equal(
            evaluate(imported, "main", np.array(condition), x, np.array(scale)), expected
        )


def test_functions_of_the_model() -> None:
    scaled = helper.make_function(
        "own",
        "Scaled",
        ["v"],
        ["w"],
        [
            helper.make_node("Constant", [], ["c"]),
            node("Mul", "v c", "w"),
        ],
        [helper.make_opsetid("", 21)],
        ["by"],
    )
    reference = onnx.AttributeProto(
        name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT
    )
    scaled.node[0].attribute.append(reference)
    imported = rx.from_onnx(
        model(
            [
                helper.make_node("Scaled", ["x"], ["t"], domain="own", by=2.0),
                helper.make_node("Scaled", ["t"], ["y"], domain="own", by=0.25),
            ],
            [value("x", ["n"])],
            [value("y", ["n"])],
            functions=[scaled],
        )
    )

    x = floats(4)
    np.testing.assert_array_equal(evaluate(imported, "main", x), x * np.float32(0.5))


def test_all_that_has_no_counterpart_is_said_at_once() -> None:
    proto = model(
        [
            node("Mystery", "x", "a", name="first"),
            node("Relu", "a", "b"),
            node("Gather", "x x", "c", name="second"),
            node("Add", "b nowhere", "y"),
        ],
        [value("x", ["n"])],
        [value("y", ["n"])],
    )

    with pytest.raises(ModelError) as raised:
        rx.from_onnx(proto)

    assert str(raised.value) == (
        "the model has 2 nodes that cannot be converted:\n"
        "  first (Mystery, opset 21): opset 21 has no operator Mystery\n"
        '  second (Gather, opset 21): R.take of R.Tensor((n,), "float32") and '
        'R.Tensor((n,), "float32"): needs indices of integers'
    )


def test_names_that_are_none_of_ours() -> None:
    proto = model(
        [node("Add", "input.1 0", "/out/Add:0"), node("Relu", "/out/Add:0", "class")],
        [value("input.1", ["batch size"]), value("0", ["batch size"])],
        [value("class", ["batch size"])],
    )

    text = rx.from_onnx(proto).script()

    assert text.splitlines()[3:11] == [
        "    def main(",
        '        input_1: R.Tensor(("batch_size",), "float32"),',
        '        v0: R.Tensor(("batch_size",), "float32"),',
        '    ) -> R.Tensor(("batch_size",), "float32"):',
        "        batch_size = T.int64()",
        "        with R.dataflow():",
        '            out_Add_0: R.Tensor((batch_size,), "float32") = R.add(input_1, v0)',
        '            vclass: R.Tensor((batch_size,), "float32") = R.nn.relu(out_Add_0)',
    ]


def test_weights_of_a_file_are_mapped(tmp_path: Path) -> None:
    w = floats(64, 64)
    proto = model(
        [node("MatMul", "x w", "y")], [value("x", ["n", 64])], [value("y", ["n", 64])], {"w": w}
    )
    path = tmp_path / "model.onnx"
    onnx.save(proto, path)

    imported = rx.from_onnx(path)

    x = floats(2, 64)
    np.testing.assert_allclose(evaluate(imported, "main", x), x @ w, 1e-4, 1e-5)
    main = rx.VirtualMachine(rx.build(rx.optimize(imported)))["main"]
    np.testing.assert_allclose(main(x), x @ w, 1e-4, 1e-5)


def external(tmp_path: Path, location: str, **more: str) -> Path:
    """A model whose weight of 16 numbers is said to be at `location`."""
    w = floats(4, 4)
    proto = model(
        [node("MatMul", "x w", "y")], [value("x", ["n", 4])], [value("y", ["n", 4])], {"w": w}
    )
    tensor = proto.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in {"location": location, **more}.items():
        tensor.external_data.add(key=key, value=text)
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(w.tobytes())
    (folder / "inside.bin").write_bytes(b"1234" + w.tobytes())
    (folder / "link.bin").symlink_to(tmp_path / "outside.bin")
    onnx.save(proto, folder / "model.onnx")
    return folder / "model.onnx"


def test_external_data_beside_the_model(tmp_path: Path) -> None:
    path = external(tmp_path, "inside.bin", offset="4")

    imported = rx.from_onnx(path)

    w = np.frombuffer((path.parent / "inside.bin").read_bytes()[4:], np.float32).reshape(4, 4)
    np.testing.assert_allclose(
        evaluate(imported, "main", np.eye(4, dtype=np.float32)), w, 1e-6, 1e-6
    )


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", "link.bin"])
def test_nothing_outside_of_the_folder_is_read(tmp_path: Path, location: str) -> None:
    with pytest.raises(ModelError) as raised:
        rx.from_onnx(external(tmp_path, location))

    assert str(raised.value) == (f"tensor 'w' is in {location!r}, outside of the model's folder")


def test_external_data_that_are_not_there(tmp_path: Path) -> None:
    path = external(tmp_path, "inside.bin", offset="64")

    with pytest.raises(ModelError) as raised:
        rx.from_onnx(path)

    assert str(raised.value) == (
        "tensor 'w' of 64 bytes is declared as 64 bytes at 64 of inside.bin, which has 68"
    )


def test_what_is_no_model(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(b"\x07not a model")

    with pytest.raises(ModelError, match="is malformed: no field can begin at byte 0"):
        rx.from_onnx(path)


def test_weights_in_constants_and_branches_too(tmp_path: Path) -> None:
    """Large tensors are cut out wherever they are, also within subgraphs and attributes."""
    w = floats(40, 40)
    big = numpy_helper.from_array(w, "big")
    then = helper.make_graph(
        [helper.make_node("Constant", [], ["c"], value=big), node("MatMul", "x c", "a")],
        "then",
        [],
        [value("a", [None, None])],
    )
    other = helper.make_graph([node("MatMul", "x w", "b")], "other", [], [value("b", [None] * 2)])
    other.initializer.append(numpy_helper.from_array(w.T.copy(), "w"))
    proto = model(
        [node("If", "condition", "y", then_branch=then, else_branch=other)],
        [value("condition", [], "bool"), value("x", ["n", 40])],
        [value("y", ["n", 40])],
    )
    onnx.save(proto, tmp_path / "model.onnx")

    imported = rx.from_onnx(tmp_path / "model.onnx")

    x = floats(2, 40)
    for condition, expected in ((True, x @ w), (False, x @ w.T)):
        np.testing.assert_allclose(
            evaluate(imported, "main", np.array(condition), x), expected, 1e-4, 1e-5
        )

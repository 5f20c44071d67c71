"""Small models that cover the front end, as the originals of damaged models."""

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tests.support.onnx_models import model, node, value


def network() -> onnx.ModelProto:
    """Convolution, normalisation, pooling and a dense layer."""
    random = np.random.default_rng(0)
    weights = {
        "k": random.standard_normal((4, 3, 3, 3)).astype(np.float32),
        **{n: np.ones(4, np.float32) for n in ("scale", "bias", "mean", "variance")},
        "w": random.standard_normal((64, 5)).astype(np.float32),
        "b": np.zeros(5, np.float32),
    }
    return model(
        [
            node("Conv", "x k", "c", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[1, 1]),
            node("BatchNormalization", "c scale bias mean variance", "n", epsilon=1e-5),
            node("Relu", "n", "r"),
            node("MaxPool", "r", "p", kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
            node("AveragePool", "p", "a", kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1]),
            node("Flatten", "a", "f", axis=1),
            node("Gemm", "f w b", "g", alpha=0.5),
            node("Softmax", "g", "y", axis=-1),
        ],
        [value("x", ["batch", 3, 8, 8])],
        [value("y", ["batch", 5])],
        weights,
    )


def computed_shapes() -> onnx.ModelProto:
    """Shape arithmetic, most of which is folded."""
    numbers = {
        **{"zero": np.array(0), "one": np.array(1), "axis": np.array([0])},
        **{"heads": np.array([4, -1]), "first": np.array([0]), "last": np.array([2])},
        **{"pair": np.array([1, 1]), "twice": np.array([2])},
    }
    return model(
        [
            node("Shape", "x", "shape", start=0, end=3),
            node("Gather", "shape zero", "batch", axis=0),
            node("Unsqueeze", "batch axis", "b"),
            node("Slice", "shape first last", "both"),
            node("Mul", "both pair", "same"),
            node("Concat", "same heads", "wanted", axis=0),
            node("Reshape", "x wanted", "split"),
            node("Transpose", "split", "t", perm=[0, 2, 1, 3]),
            node("Tile", "b twice", "bb"),
            node("ReduceProd", "bb", "square", keepdims=0),
            node("Range", "zero square one", "counted"),
            node("Cast", "counted", "c", to=onnx.TensorProto.FLOAT),
            node("Size", "c", "size"),
            node("Expand", "size pair", "sizes"),
            node("Squeeze", "sizes", "s"),
            node("Equal", "s one", "is_one"),
            node("Where", "is_one one s", "chosen"),
            node("ConstantOfShape", "both", "zeros"),
        ],
        [value("x", ["batch", "tokens", 12])],
        [
            value("t", [None] * 4),
            value("c", [None]),
            value("chosen", [], "int64"),
            value("zeros", ["batch", "tokens"]),
        ],
        numbers,
    )


def run_time() -> onnx.ModelProto:
    """Shapes, axes, counts and widths that are inputs."""
    return model(
        [
            node("Reshape", "x shape", "r"),
            node("TopK", "r k", "top places", axis=1),
            node("Pad", "top pads", "padded", mode="constant"),
            node("Tile", "padded times", "tiled"),
            node("Slice", "tiled starts ends axes steps", "s"),
            node("ReduceSum", "s axes", "sum", keepdims=1),
            node("Split", "s sizes", "a b", axis=0),
            node("Resize", "image _ scales", "big", mode="linear"),
            node("OneHot", "places depth onoff", "hot", axis=-1),
        ],
        [
            value("x", ["n", 6]),
            value("shape", [2], "int64"),
            value("k", [1], "int64"),
            value("pads", [4], "int64"),
            *(value(n, [2], "int64") for n in ("times", "sizes")),
            *(value(n, [1], "int64") for n in ("starts", "ends", "axes", "steps")),
            value("image", [1, 1, 4, 4]),
            value("scales", [4]),
            value("depth", [], "int64"),
            value("onoff", [2]),
        ],
        [value(n, [None] * 2) for n in ("sum", "a", "b")]
        + [value("big", [None] * 4), value("hot", [None] * 3)],
    )


def branches() -> onnx.ModelProto:
    """A conditional in a conditional, which reads values of the enclosing graph."""
    deep = helper.make_graph([node("Neg", "x", "d")], "deep", [], [value("d", [None])])
    flat = helper.make_graph([node("Abs", "x", "e")], "flat", [], [value("e", [None])])
    then = helper.make_graph(
        [node("If", "other", "t", then_branch=deep, else_branch=flat), node("Add", "t two", "a")],
        "then",
        [],
        [value("a", [None])],
        [numpy_helper.from_array(np.array(2, np.float32), "two")],
    )
    other = helper.make_graph([node("Mul", "x scale", "b")], "else", [], [value("b", [None])])
    return model(
        [node("If", "condition", "y", then_branch=then, else_branch=other)],
        [value(n, [], "bool") for n in ("condition", "other")]
        + [value("x", ["n"]), value("scale", [])],
        [value("y", ["n"])],
    )


def loops() -> onnx.ModelProto:
    """A loop whose state grows, and a scan."""
    body = helper.make_graph(
        [
            node("Identity", "go_on", "goes_on"),
            node("Concat", "state x", "longer", axis=0),
            node("ReduceSum", "longer", "total", keepdims=0),
        ],
        "body",
        [value("turn", [], "int64"), value("go_on", [], "bool"), value("state", [None])],
        [value("goes_on", [], "bool"), value("longer", [None]), value("total", [])],
    )
    turn = helper.make_graph(
        [node("Add", "sum row", "next"), node("Identity", "next", "copy")],
        "turn",
        [value("sum", [3]), value("row", [3])],
        [value("next", [3]), value("copy", [3])],
    )
    return model(
        [
            node("Loop", "turns yes x", "grown totals", body=body),
            node("Scan", "start rows", "last sums", body=turn, num_scan_inputs=1),
        ],
        [
            value("turns", [], "int64"),
            value("yes", [], "bool"),
            value("x", ["n"]),
            value("start", [3]),
            value("rows", ["m", 3]),
        ],
        [value("grown", [None]), value("totals", [None]), value("last", [3]), value("sums", None)],
    )


def functions() -> onnx.ModelProto:
    """Functions of the model, one of which calls the other, with attributes."""
    constant = helper.make_node("Constant", [], ["c"])
    constant.attribute.append(
        onnx.AttributeProto(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    scaled = helper.make_function(
        "own", "Scaled", ["v"], ["w"], [constant, node("Mul", "v c", "w")], opsets, ["by"]
    )
    twice = helper.make_function(
        *("own", "Twice", ["v"], ["w"]),
        [
            helper.make_node("Scaled", ["v"], ["t"], domain="own", by=2.0),
            helper.make_node("Scaled", ["t"], ["w"], domain="own", by=0.25),
        ],
        opsets,
    )
    return model(
        [
            helper.make_node("Twice", ["x"], ["t"], domain="own"),
            node("Gelu", "t", "g", approximate="tanh"),
            node("Celu", "g", "c", alpha=2.0),
            node("MeanVarianceNormalization", "c", "m", axes=[1]),
            node("CenterCropPad", "m size", "y", axes=[1]),
        ],
        [value("x", ["n", 6])],
        [value("y", ["n", 4])],
        {"size": np.array([4])},
        functions=[scaled, twice],
    )


def sequences() -> onnx.ModelProto:
    """Sequences and optionals."""
    return model(
        [
            node("SequenceConstruct", "x y", "two"),
            node("SequenceInsert", "two x at", "three"),
            node("SequenceErase", "three at", "less"),
            node("SequenceAt", "less at", "one"),
            node("SequenceLength", "less", "count"),
            node("ConcatFromSequence", "less", "whole", axis=0),
            node("SplitToSequence", "whole sizes", "parts", axis=0),
            node("Optional", "one", "maybe"),
            node("OptionalHasElement", "maybe", "has"),
            node("OptionalGetElement", "maybe", "got"),
        ],
        [value("x", ["n", 2]), value("y", ["n", 2]), value("sizes", ["k"], "int64")],
        [
            *(value("count", [], "int64"), value("has", [], "bool"), value("got", ["n", 2])),
            helper.make_tensor_sequence_value_info("parts", onnx.TensorProto.FLOAT, None),
        ],
        {"at": np.array(1)},
    )


def transformer() -> onnx.ModelProto:
    """Attention as one operator, layer normalisation, and as products."""
    random = np.random.default_rng(0)
    weights = {n: random.standard_normal((8, 8)).astype(np.float32) for n in ("q", "k", "v")}
    weights |= {"scale": np.ones(8, np.float32), "bias": np.zeros(8, np.float32)}
    return model(
        [
            node("LayerNormalization", "x scale bias", "n", axis=-1, epsilon=1e-5),
            *(node("MatMul", f"n {w}", f"n{w}") for w in "qkv"),
            node("Attention", "nq nk nv", "a", q_num_heads=2, kv_num_heads=2),
            node("Einsum", "a x", "e", equation="bij,bkj->bik"),
            node("Softmax", "e", "s", axis=-1),
            node("MatMul", "s x", "m"),
            node("RMSNormalization", "m scale", "y", axis=-1),
        ],
        [value("x", ["batch", "tokens", 8])],
        [value("y", ["batch", "tokens", 8])],
        weights,
        opset=23,
    )


def indices() -> onnx.ModelProto:
    """Gathering, scattering, sorting and what depends on data."""
    return model(
        [
            node("Gather", "x i", "g", axis=0),
            node("GatherElements", "x j", "e", axis=1),
            node("GatherND", "x j", "d", batch_dims=0),
            node("ScatterElements", "x j x", "s", axis=0, reduction="add"),
            node("ScatterND", "x n g", "t"),
            node("CumSum", "x zero", "c", exclusive=1, reverse=1),
            node("ArgMax", "c", "places", axis=1, keepdims=0, select_last_index=1),
            node("NonZero", "x", "nonzero"),
            node("Unique", "places", "unique", sorted=1),
            node("Trilu", "x zero", "upper", upper=1),
            node("EyeLike", "x", "eye", k=1),
            node("ReverseSequence", "x lengths", "r", batch_axis=1, time_axis=0),
        ],
        [
            value("x", [4, 2]),
            value("i", ["m"], "int64"),
            value("j", [4, 2], "int64"),
            value("n", ["m", 1], "int64"),
            value("lengths", [2], "int64"),
        ],
        [value(n, None) for n in ("e", "d", "s", "t", "upper", "eye", "r")]
        + [value(n, None, "int64") for n in ("nonzero", "unique")],
        {"zero": np.array(0)},
    )


def recurrent() -> onnx.ModelProto:
    """The three recurrent networks."""
    random = np.random.default_rng(0)
    gates = {"rnn": 1, "gru": 3, "lstm": 4}
    weights = {
        f"{kind}_{part}": random.standard_normal((1, n * 4, width)).astype(np.float32)
        for kind, n in gates.items()
        for part, width in (("w", 3), ("r", 4))
    }
    return model(
        [
            node("RNN", "x rnn_w rnn_r", "a", hidden_size=4, activations=["Tanh"]),
            node("GRU", "x gru_w gru_r", "b", hidden_size=4, linear_before_reset=1),
            node("LSTM", "x lstm_w lstm_r", "c last", hidden_size=4, direction="forward"),
        ],
        [value("x", ["t", 2, 3])],
        [value(n, None) for n in ("a", "b", "c", "last")],
        weights,
    )


def quantized() -> onnx.ModelProto:
    """Quantised products, casts, and operators on several dtypes."""
    weights = {
        "scale": np.array(0.5, np.float32),
        "point": np.array(3, np.uint8),
        "w": np.arange(12, dtype=np.uint8).reshape(4, 3),
    }
    return model(
        [
            node("QuantizeLinear", "x scale point", "q"),
            node("MatMulInteger", "q w point point", "i"),
            node("QLinearMatMul", "q scale point w scale point scale point", "m"),
            node("DequantizeLinear", "m scale point", "f"),
            node("DynamicQuantizeLinear", "x", "dq dscale dpoint"),
            node("Cast", "f", "half", to=onnx.TensorProto.FLOAT16),
            node("CastLike", "half x", "back"),
            node("BitShift", "q q", "shifted", direction="LEFT"),
            node("Clip", "back scale", "clipped"),
            node("Pow", "clipped i", "power"),
            node("Mod", "i i", "rest", fmod=0),
        ],
        [value("x", ["n", 4])],
        [
            value("power", ["n", 3]),
            value("rest", ["n", 3], "int32"),
            *(value(n, ["n", 4], "uint8") for n in ("dq", "shifted")),
        ],
        weights,
    )


def large_weights() -> onnx.ModelProto:
    """Weights that stay in the file, of a node and of an initializer, in an old opset."""
    w = np.linspace(-1, 1, 1600, dtype=np.float32).reshape(40, 40)
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(w, "c"))
    return model(
        [
            constant,
            node("MatMul", "x c", "a"),
            node("MatMul", "a w", "b"),
            node("Slice", "b", "s", starts=[1], ends=[9], axes=[1]),
            node("Squeeze", "s", "q", axes=[0]),
            node("Pad", "q", "p", pads=[1, 1], mode="reflect"),
            node("Clip", "p", "l", min=0.0, max=6.0),
            node("Upsample", "image factors", "big", mode="nearest"),
            node("Dropout", "l", "y", ratio=0.5),
        ],
        [value("x", [1, 40]), value("image", [1, 1, 2, 2])],
        [value("y", [None]), value("big", [None] * 4)],
        {"w": w.T.copy(), "factors": np.array([1, 1, 2, 2], np.float32)},
        opset=9,
    )


SAMPLES: tuple[Callable[[], onnx.ModelProto], ...] = (
    network,
    computed_shapes,
    run_time,
    branches,
    loops,
    functions,
    sequences,
    transformer,
    indices,
    recurrent,
    quantized,
    large_weights,
)


@cache
def samples() -> Mapping[str, onnx.ModelProto]:
    """All samples, by name."""
    return {make.__name__: make() for make in SAMPLES}

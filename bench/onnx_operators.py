"""The operators of modules as ONNX nodes, as far as workloads use them."""

from collections.abc import Mapping

import numpy as np

from bench.onnx_nodes import Write, Writer, extents_of, integers, numbers_of, onnx, tensor_of
from bench.onnx_windows import WINDOWS
from bench.program import GET, NotRunnable, Step


def write_step(writer: Writer, step: Step) -> None:
    """Add the nodes of `step`; raises `NotRunnable` for an unsupported operator."""
    if step.operator not in _OPERATORS:
        raise NotRunnable(f"no operator {step.operator}")
    _OPERATORS[step.operator](writer, step)


def _plain(kind: str) -> Write:
    return lambda writer, step: writer.node(kind, writer.operands(step), writer.result(step))


def _permute_dims(writer: Writer, step: Step) -> None:
    axes = step.attrs["axes"]
    order = {} if axes is None else {"perm": axes}
    writer.node("Transpose", writer.operands(step), writer.result(step), **order)


def _softmax(writer: Writer, step: Step) -> None:
    axis = step.attrs["axis"]
    writer.node("Softmax", writer.operands(step), writer.result(step), axis=axis)


def _layer_norm(writer: Writer, step: Step) -> None:
    last, epsilon = _last(step), step.attrs["epsilon"]
    operands, result = writer.operands(step), writer.result(step)
    writer.node("LayerNormalization", operands, result, axis=last, epsilon=epsilon)


def _rms_norm(writer: Writer, step: Step) -> None:
    """An RMS norm in several nodes, as exporters write it: both peers know the pattern."""
    (x, weight), result = writer.operands(step), writer.result(step)
    two = writer.tensor(f"{result}_two", np.array(2, np.float32))
    axes = writer.numbers(step, "axes", (_last(step),))
    small = writer.tensor(f"{result}_epsilon", np.array(step.attrs["epsilon"], np.float32))
    square = writer.node("Pow", [x, two], f"{result}_square")
    mean = writer.node("ReduceMean", [square, axes], f"{result}_mean", keepdims=1)
    above = writer.node("Add", [mean, small], f"{result}_above")
    root = writer.node("Sqrt", [above], f"{result}_root")
    scaled = writer.node("Div", [x, root], f"{result}_scaled")
    writer.node("Mul", [scaled, weight], result)


def _last(step: Step) -> int:
    if step.attrs["axes"] != (-1,):
        raise NotRunnable(f"axes {step.attrs['axes']}: needs (-1,)")
    return -1


def _silu(writer: Writer, step: Step) -> None:
    (x,), result = writer.operands(step), writer.result(step)
    writer.node("Mul", [x, writer.node("Sigmoid", [x], f"{result}_share")], result)


def _reduction(kind: str) -> Write:
    def write(writer: Writer, step: Step) -> None:
        axes, kept = step.attrs["axis"], step.attrs["keepdims"]
        axes_operand = [] if axes is None else [writer.numbers(step, "axes", integers(axes))]
        operands, result = writer.operands(step), writer.result(step)
        writer.node(kind, [*operands, *axes_operand], result, keepdims=int(bool(kept)))

    return write


def _expand_dims(writer: Writer, step: Step) -> None:
    axes = writer.numbers(step, "axes", integers(step.attrs["axis"]))
    writer.node("Unsqueeze", [*writer.operands(step), axes], writer.result(step))


def _astype(writer: Writer, step: Step) -> None:
    dtype = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(str(step.attrs["dtype"])))
    writer.node("Cast", writer.operands(step), writer.result(step), to=dtype)


def _reshape(writer: Writer, step: Step) -> None:
    """A reshape; a symbolic extent is that of the operand at its place, or the rest."""
    x, shape = step.operands
    before, after = extents_of(x), extents_of(shape)
    pairs = zip(after, (*before, *(None for _ in after)), strict=False)
    target = tuple(d if isinstance(d, int) else 0 if d == old else -1 for d, old in pairs)
    if target.count(-1) > 1:
        raise NotRunnable(f"reshape of {before} to {after}: needs one extent that is left")
    target_name = writer.numbers(step, "shape", target)
    writer.node("Reshape", [writer.names[tensor_of(x)], target_name], writer.result(step))


def _broadcast_to(writer: Writer, step: Step) -> None:
    """A broadcast; extents of the operand become 1, which keeps them."""
    x, shape = step.operands
    before, after = extents_of(x), extents_of(shape)
    old = (*(None for _ in after[len(before) :]), *before)
    target = tuple(1 if d == o else d for d, o in zip(after, old, strict=True))
    if not all(isinstance(d, int) for d in target):
        raise NotRunnable(f"broadcast_to of {before} to {after}: needs extents that are numbers")
    target_name = writer.numbers(step, "shape", tuple(d for d in target if isinstance(d, int)))
    writer.node("Expand", [writer.names[tensor_of(x)], target_name], writer.result(step))


def _strided_slice(writer: Writer, step: Step) -> None:
    x, begin, end = step.operands
    axes = integers(step.attrs["axes"])
    strides = step.attrs["strides"]
    parts = {
        "begin": numbers_of(begin),
        "end": numbers_of(end),
        "axes": axes,
        "strides": (1,) * len(axes) if strides is None else integers(strides),
    }
    bounds = [writer.numbers(step, use, values) for use, values in parts.items()]
    writer.node("Slice", [writer.names[tensor_of(x)], *bounds], writer.result(step))


def _ones(writer: Writer, step: Step) -> None:
    (shape,) = step.operands
    shape_name = writer.numbers(step, "shape", numbers_of(shape))
    one = onnx.numpy_helper.from_array(np.ones(1, np.dtype(str(step.attrs["dtype"]))))
    writer.node("ConstantOfShape", [shape_name], writer.result(step), value=one)


def _tril(writer: Writer, step: Step) -> None:
    writer.node("Trilu", writer.operands(step), writer.result(step), upper=0)


def _concat(writer: Writer, step: Step) -> None:
    axis = step.attrs["axis"]
    writer.node("Concat", writer.operands(step), writer.result(step), axis=axis)


def _batch_norm(writer: Writer, step: Step) -> None:
    if step.attrs["training"] or step.attrs["axis"] != 1:
        raise NotRunnable("batch_norm: needs inference, along axis 1")
    epsilon = step.attrs["epsilon"]
    operands, result = writer.operands(step), writer.result(step)
    writer.node("BatchNormalization", operands, result, epsilon=epsilon)


def _first(writer: Writer, step: Step) -> None:
    """Field 0 of a tuple is the single output of the node."""
    if step.attrs["index"] != 0:
        raise NotRunnable(f"field {step.attrs['index']} of a tuple: needs the first")
    writer.node("Identity", writer.operands(step), writer.result(step))


_OPERATORS: Mapping[str, Write] = {
    "add": _plain("Add"),
    "subtract": _plain("Sub"),
    "multiply": _plain("Mul"),
    "divide": _plain("Div"),
    "power": _plain("Pow"),
    "negative": _plain("Neg"),
    "sqrt": _plain("Sqrt"),
    "exp": _plain("Exp"),
    "erf": _plain("Erf"),
    "tanh": _plain("Tanh"),
    "sigmoid": _plain("Sigmoid"),
    "where": _plain("Where"),
    "matmul": _plain("MatMul"),
    "sum": _reduction("ReduceSum"),
    "max": _reduction("ReduceMax"),
    "maximum": _plain("Max"),
    "mean": _reduction("ReduceMean"),
    "astype": _astype,
    "ones": _ones,
    "tril": _tril,
    "concat": _concat,
    "reshape": _reshape,
    "expand_dims": _expand_dims,
    "permute_dims": _permute_dims,
    "broadcast_to": _broadcast_to,
    "strided_slice": _strided_slice,
    "nn.relu": _plain("Relu"),
    "nn.gelu": _plain("Gelu"),
    "nn.silu": _silu,
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
    "nn.batch_norm": _batch_norm,
    GET: _first,
    **WINDOWS,
}

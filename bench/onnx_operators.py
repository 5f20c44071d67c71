"""The operators of modules as ONNX nodes, as far as workloads use them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

from bench.program import GET, Array, NotRunnable, Operand, Step
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr, Constant, ShapeExpr, Var
from relax_egraph.ir.struct_info import TensorStructInfo

onnx: Any = import_module("onnx")  # optional: absent when types are checked


@dataclass(frozen=True, slots=True)
class Writer:
    """The nodes so far, and the tensors that they read beside the parameters.

    `names` are of all values of the program.  `appended` maps a grown cache to its parameter and
    the appended row.
    """

    names: Mapping[Var | Constant, str]
    nodes: list[Any]
    tensors: dict[str, Array]
    appended: dict[str, tuple[str, str]]

    def step(self, step: Step) -> None:
        """Add the nodes of `step`; raises `NotRunnable` for an unsupported operator."""
        if step.operator not in _OPERATORS:
            raise NotRunnable(f"no operator {step.operator}")
        _OPERATORS[step.operator](self, step)

    def node(self, kind: str, operands: list[str], result: str, *more: str, **attrs: Attr) -> str:
        """Add a node with the output `result`, and `more`; returns `result`."""
        self.nodes.append(onnx.helper.make_node(kind, operands, [result, *more], **attrs))
        return result

    def reshaped(self, x: str, result: str, shape: tuple[int, ...]) -> str:
        """Add a node that reshapes `x`; returns `result`."""
        shape_name = self.tensor(f"{result}_shape", np.array(shape, np.int64))
        return self.node("Reshape", [x, shape_name], result)

    def tensor(self, name: str, data: Array) -> str:
        """Add a tensor; returns `name`."""
        self.tensors[name] = data
        return name

    def result(self, step: Step) -> str:
        """The name of the result of `step`."""
        return self.names[step.result]

    def operands(self, step: Step) -> list[str]:
        """The names of the operands of `step`, with tuples flattened; all are tensors."""
        return [self._name(operand) for operand in _flat(step.operands)]

    def _name(self, operand: Operand) -> str:
        if not isinstance(operand, Var | Constant):
            raise NotRunnable(f"an operand is {operand}: needs a tensor")
        return self.names[operand]

    def numbers(self, step: Step, use: str, values: tuple[int, ...]) -> str:
        """A tensor of integers, for one `use` by `step`."""
        return self.tensor(f"{self.result(step)}_{use}", np.array(values, np.int64))


_Write = Callable[[Writer, Step], object]


def _flat(operands: tuple[Operand, ...]) -> list[Operand]:
    return [o for each in operands for o in (_flat(each) if isinstance(each, tuple) else [each])]


def extents_of(operand: Operand) -> tuple[Dim, ...]:
    """The extents of a tensor or a shape."""
    if isinstance(operand, ShapeExpr):
        return operand.values
    assert isinstance(operand, Var | Constant)
    info = operand.struct_info
    assert isinstance(info, TensorStructInfo)
    assert info.dims is not None
    return info.dims


def _plain(kind: str) -> _Write:
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


def _reduction(kind: str) -> _Write:
    def write(writer: Writer, step: Step) -> None:
        axes, kept = step.attrs["axis"], step.attrs["keepdims"]
        axes_operand = [] if axes is None else [writer.numbers(step, "axes", _integers(axes))]
        operands, result = writer.operands(step), writer.result(step)
        writer.node(kind, [*operands, *axes_operand], result, keepdims=int(bool(kept)))

    return write


def _integers(attr: Attr) -> tuple[int, ...]:
    assert isinstance(attr, tuple)
    return tuple(int(e) for e in attr if isinstance(e, int))


def _expand_dims(writer: Writer, step: Step) -> None:
    axes = writer.numbers(step, "axes", _integers(step.attrs["axis"]))
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
    writer.node("Reshape", [writer.names[_tensor(x)], target_name], writer.result(step))


def _broadcast_to(writer: Writer, step: Step) -> None:
    """A broadcast; extents of the operand become 1, which keeps them."""
    x, shape = step.operands
    before, after = extents_of(x), extents_of(shape)
    old = (*(None for _ in after[len(before) :]), *before)
    target = tuple(1 if d == o else d for d, o in zip(after, old, strict=True))
    if not all(isinstance(d, int) for d in target):
        raise NotRunnable(f"broadcast_to of {before} to {after}: needs extents that are numbers")
    target_name = writer.numbers(step, "shape", tuple(d for d in target if isinstance(d, int)))
    writer.node("Expand", [writer.names[_tensor(x)], target_name], writer.result(step))


def _strided_slice(writer: Writer, step: Step) -> None:
    x, begin, end = step.operands
    axes = _integers(step.attrs["axes"])
    strides = step.attrs["strides"]
    parts = {
        "begin": _numbers_of(begin),
        "end": _numbers_of(end),
        "axes": axes,
        "strides": (1,) * len(axes) if strides is None else _integers(strides),
    }
    bounds = [writer.numbers(step, use, values) for use, values in parts.items()]
    writer.node("Slice", [writer.names[_tensor(x)], *bounds], writer.result(step))


def _ones(writer: Writer, step: Step) -> None:
    (shape,) = step.operands
    shape_name = writer.numbers(step, "shape", _numbers_of(shape))
    one = onnx.numpy_helper.from_array(np.ones(1, np.dtype(str(step.attrs["dtype"]))))
    writer.node("ConstantOfShape", [shape_name], writer.result(step), value=one)


def _numbers_of(shape: Operand) -> tuple[int, ...]:
    extents = extents_of(shape)
    if not all(isinstance(d, int) for d in extents):
        raise NotRunnable(f"shape {extents}: needs numbers")
    return tuple(d for d in extents if isinstance(d, int))


def _tensor(operand: Operand) -> Var | Constant:
    assert isinstance(operand, Var | Constant)
    return operand


def _tril(writer: Writer, step: Step) -> None:
    writer.node("Trilu", writer.operands(step), writer.result(step), upper=0)


def _concat(writer: Writer, step: Step) -> None:
    axis = step.attrs["axis"]
    writer.node("Concat", writer.operands(step), writer.result(step), axis=axis)


def _conv2d(writer: Writer, step: Step) -> None:
    a = step.attrs
    if (a["data_layout"], a["kernel_layout"]) != ("NCHW", "OIHW"):
        raise NotRunnable(f"{a['data_layout']}, {a['kernel_layout']}: needs NCHW, OIHW")
    writer.node(
        "Conv",
        writer.operands(step),
        writer.result(step),
        strides=a["strides"],
        pads=_pads(a["padding"]),
        dilations=a["dilation"],
        group=a["groups"],
    )


def _conv2d_transpose(writer: Writer, step: Step) -> None:
    a = step.attrs
    writer.node(
        "ConvTranspose",
        writer.operands(step),
        writer.result(step),
        strides=a["strides"],
        pads=_pads(a["padding"]),
        group=a["groups"],
    )


def _max_pool2d(writer: Writer, step: Step) -> None:
    a = step.attrs
    writer.node(
        "MaxPool",
        writer.operands(step),
        writer.result(step),
        kernel_shape=a["pool_size"],
        strides=a["strides"],
        pads=_pads(a["padding"]),
    )


def _avg_pool2d(writer: Writer, step: Step) -> None:
    a = step.attrs
    writer.node(
        "AveragePool",
        writer.operands(step),
        writer.result(step),
        kernel_shape=a["pool_size"],
        strides=a["strides"],
        pads=_pads(a["padding"]),
        count_include_pad=int(bool(a["count_include_pad"])),
    )


def _resize2d(writer: Writer, step: Step) -> None:
    x, size = step.operands
    a = step.attrs
    extents = (*_numbers_of(x)[:2], *_numbers_of(size))
    sizes = writer.numbers(step, "sizes", extents)
    is_linear = a["method"] == "linear"
    writer.node(
        "Resize",
        [writer.names[_tensor(x)], "", "", sizes],
        writer.result(step),
        mode="linear" if is_linear else "nearest",
        coordinate_transformation_mode=a["coordinate_transformation_mode"],
        **({} if is_linear else {"nearest_mode": a["rounding_method"]}),
    )


def _pads(padding: Attr) -> tuple[int, ...]:
    """The padding before both axes, then after them."""
    values = _integers(padding)
    return values * 2 if len(values) == 2 else values


def _global_mean(writer: Writer, step: Step) -> None:
    if step.attrs["output_size"] != (1, 1):
        raise NotRunnable(f"output_size {step.attrs['output_size']}: needs (1, 1)")
    writer.node("GlobalAveragePool", writer.operands(step), writer.result(step))


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


_OPERATORS: Mapping[str, _Write] = {
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
    "nn.conv2d": _conv2d,
    "nn.batch_norm": _batch_norm,
    "nn.conv2d_transpose": _conv2d_transpose,
    "nn.max_pool2d": _max_pool2d,
    "nn.avg_pool2d": _avg_pool2d,
    "image.resize2d": _resize2d,
    "nn.adaptive_avg_pool2d": _global_mean,
    GET: _first,
}

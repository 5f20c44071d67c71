"""Convolutions, pooling and resizing as ONNX nodes."""

from collections.abc import Mapping

from bench.onnx_nodes import Write, Writer, integers, numbers_of, tensor_of
from bench.program import NotRunnable, Step
from relax_egraph.ir.expr import Attr


def _conv2d(writer: Writer, step: Step) -> None:
    a = step.attrs
    if (a["data_layout"], a["kernel_layout"]) != ("NCHW", "OIHW"):
        raise NotRunnable(f"{a['data_layout']}, {a['kernel_layout']}: needs NCHW, OIHW")
    _window(writer, step, "Conv", dilations=a["dilation"], group=a["groups"])


def _conv2d_transpose(writer: Writer, step: Step) -> None:
    _window(writer, step, "ConvTranspose", group=step.attrs["groups"])


def _max_pool2d(writer: Writer, step: Step) -> None:
    _window(writer, step, "MaxPool", kernel_shape=step.attrs["pool_size"])


def _avg_pool2d(writer: Writer, step: Step) -> None:
    counted = int(bool(step.attrs["count_include_pad"]))
    size = step.attrs["pool_size"]
    _window(writer, step, "AveragePool", kernel_shape=size, count_include_pad=counted)


def _window(writer: Writer, step: Step, kind: str, **attrs: Attr) -> None:
    """Add the node of a window that moves over its operand by strides."""
    strides, pads = step.attrs["strides"], _pads(step.attrs["padding"])
    operands, result = writer.operands(step), writer.result(step)
    writer.node(kind, operands, result, strides=strides, pads=pads, **attrs)


def _resize2d(writer: Writer, step: Step) -> None:
    x, size = step.operands
    a = step.attrs
    extents = (*numbers_of(x)[:2], *numbers_of(size))
    sizes = writer.numbers(step, "sizes", extents)
    is_linear = a["method"] == "linear"
    writer.node(
        "Resize",
        [writer.names[tensor_of(x)], "", "", sizes],
        writer.result(step),
        mode="linear" if is_linear else "nearest",
        coordinate_transformation_mode=a["coordinate_transformation_mode"],
        **({} if is_linear else {"nearest_mode": a["rounding_method"]}),
    )


def _pads(padding: Attr) -> tuple[int, ...]:
    """The padding before both axes, then after them."""
    values = integers(padding)
    return values * 2 if len(values) == 2 else values


def _global_mean(writer: Writer, step: Step) -> None:
    if step.attrs["output_size"] != (1, 1):
        raise NotRunnable(f"output_size {step.attrs['output_size']}: needs (1, 1)")
    writer.node("GlobalAveragePool", writer.operands(step), writer.result(step))


WINDOWS: Mapping[str, Write] = {
    "nn.conv2d": _conv2d,
    "nn.conv2d_transpose": _conv2d_transpose,
    "nn.max_pool2d": _max_pool2d,
    "nn.avg_pool2d": _avg_pool2d,
    "nn.adaptive_avg_pool2d": _global_mean,
    "image.resize2d": _resize2d,
}
"""The functions for operators that read windows of images."""

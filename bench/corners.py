"""Single operators as workloads, beside the large products: short rows, windows, other dtypes."""

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

import numpy as np

from bench.program import Array, program_of
from bench.work import least_bytes, operations
from bench.workloads import Limit, Task, Wanted, Workload, drawn, module_of
from relax_egraph import ir
from relax_egraph.ir.expr import Call, Var

Body: TypeAlias = Callable[..., Call]

AT_LEAST_PEERS: Wanted = {"peer": 1.0}


def corners() -> dict[str, Workload]:
    """All of them, by name."""
    tasks: dict[str, Callable[[], Task]] = {}
    for shape in _SHORT_ROWS:
        tasks[f"softmax {shape}"] = partial(_map, partial(ir.call, "nn.softmax"), shape)
    for name, (body, shape) in _WINDOWS.items():
        tasks[f"{name}, {_by(shape)}"] = partial(_map, body, shape)
    for name, (convolve, shape, weight) in _CONVOLUTIONS.items():
        tasks[f"{name}, {_by(shape)}"] = partial(_convolution, convolve, shape, weight)
    for dtype in ("float64", "int32", "int8"):
        for name, (body, count) in _ELEMENTWISE.items():
            tasks[f"{name}, {dtype} 1024²"] = partial(_typed, body, count, dtype, 1024, "copy")
        for name, body in _REDUCTIONS.items():
            if dtype == "int8" and name.startswith("sum"):
                continue  # it overflows, and peers have none
            tasks[f"{name}, {dtype} 1024²"] = partial(_typed, body, 1, dtype, 1024, "read")
    for name, body in _POWERS.items():
        tasks[f"{name}, float64 64×1024"] = partial(_map, body, (64, 1024), "float64")
    for dtype in ("float64", "int32"):
        product = partial(ir.call, "matmul")
        tasks[f"matmul {dtype} 256³"] = partial(_typed, product, 2, dtype, 256, "arithmetic")
    return {name: Workload(name, AT_LEAST_PEERS, make) for name, make in tasks.items()}


def _resized(method: str, size: tuple[int, int]) -> Body:
    modes = {"nearest_neighbor": ("asymmetric", "floor"), "linear": ("half_pixel", "round")}
    coordinates, rounding = modes[method]

    def body(x: Var) -> Call:
        return ir.call(
            "image.resize2d",
            x,
            ir.shape(size),
            method=method,
            coordinate_transformation_mode=coordinates,
            rounding_method=rounding,
        )

    return body


def _pooled(kind: str, size: int, stride: int, padding: int = 0) -> Body:
    windows = {"pool_size": (size, size), "strides": (stride, stride)}
    return partial(ir.call, f"nn.{kind}_pool2d", padding=(padding, padding), **windows)


def _convolved(**attrs: int) -> Body:
    """A convolution; each attribute is for both axes, `groups` is one number."""
    groups = attrs.pop("groups", 1)
    both = {name: (value, value) for name, value in attrs.items()}
    return partial(ir.call, "nn.conv2d", groups=groups, **both)


def _transposed(stride: int, padding: int) -> Body:
    return partial(
        ir.call, "nn.conv2d_transpose", strides=(stride, stride), padding=(padding, padding)
    )


_SHORT_ROWS = ((4096, 8), (8192, 49), (1024, 100))
_WINDOWS: Mapping[str, tuple[Body, tuple[int, int, int]]] = {
    "max 2×2 s2": (_pooled("max", 2, 2), (64, 112, 112)),
    "max 3×3 s2": (_pooled("max", 3, 2, 1), (64, 112, 112)),
    "mean 2×2 s2": (_pooled("avg", 2, 2), (128, 56, 56)),
    "mean 3×3 s2": (_pooled("avg", 3, 2, 1), (64, 112, 112)),
    "mean of all": (partial(ir.call, "nn.adaptive_avg_pool2d", output_size=(1, 1)), (2048, 7, 7)),
    "max of all": (partial(ir.call, "max", axis=(2, 3), keepdims=True), (2048, 7, 7)),
    "resize linear to 112²": (_resized("linear", (112, 112)), (64, 56, 56)),
    "resize linear to 240×320": (_resized("linear", (240, 320)), (3, 480, 640)),
    "resize nearest to 56²": (_resized("nearest_neighbor", (56, 56)), (128, 28, 28)),
}
_CONVOLUTIONS: Mapping[str, tuple[Body, tuple[int, int, int], tuple[int, int, int, int]]] = {
    "conv 4×4 transposed, s2": (_transposed(2, 1), (64, 32, 32), (64, 32, 4, 4)),
    "conv 2×2 transposed, s2": (_transposed(2, 0), (128, 28, 28), (128, 64, 2, 2)),
    "conv 3×3, 32 groups": (_convolved(padding=1, groups=32), (128, 56, 56), (128, 4, 3, 3)),
    "conv 1×1, 4 groups": (_convolved(groups=4), (256, 28, 28), (256, 64, 1, 1)),
    "depthwise 3×3": (_convolved(padding=1, groups=144), (144, 56, 56), (144, 1, 3, 3)),
    "depthwise 3×3, s2": (
        _convolved(strides=2, padding=1, groups=96),
        (96, 112, 112),
        (96, 1, 3, 3),
    ),
    "depthwise 5×5": (_convolved(padding=2, groups=240), (240, 14, 14), (240, 1, 5, 5)),
}


def _multiply_add(x: Var, y: Var) -> Call:
    return ir.call("add", ir.call("multiply", x, y), x)


_ELEMENTWISE: Mapping[str, tuple[Body, int]] = {
    "x·y+x": (_multiply_add, 2),
    "max(x, y)": (partial(ir.call, "maximum"), 2),
}
_REDUCTIONS: Mapping[str, Body] = {
    "sum of rows": partial(ir.call, "sum", axis=(1,)),
    "sum of columns": partial(ir.call, "sum", axis=(0,)),
    "max of rows": partial(ir.call, "max", axis=(1,)),
}
_POWERS: Mapping[str, Body] = {
    "exp": partial(ir.call, "exp"),
    "tanh": partial(ir.call, "tanh"),
    "softmax": partial(ir.call, "nn.softmax"),
}


def _by(shape: tuple[int, int, int]) -> str:
    channels, height, width = shape
    return f"{channels}×{height}²" if height == width else f"{channels}×{height}×{width}"


def numbers(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Array:
    """Normal floats, or integers whose products `dtype` holds.

    Sums of products of int32 are beyond the integers that float32 holds, so that a system which
    computes in float32 is wrong.
    """
    if dtype.startswith("float"):
        return drawn(*shape, seed=seed).astype(dtype)
    most = 3000 if dtype == "int32" else 3
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(dtype)


def _map(body: Body, shape: tuple[int, ...], dtype: str = "float32") -> Task:
    """A map, or a reduction of images, that reads its input and writes its result."""
    shape = (1, *shape) if len(shape) == 3 else shape
    module = module_of((shape,), body, dtype)
    inputs = (numbers(shape, dtype),)
    return Task((module,), inputs, "copy", least_bytes(program_of(module), inputs))


def _typed(body: Body, count: int, dtype: str, side: int, limit: Limit) -> Task:
    """`body` of `count` square matrices of `dtype`."""
    shape = (side, side)
    module = module_of((shape,) * count, body, dtype)
    inputs = tuple(numbers(shape, dtype, seed) for seed in range(count))
    program = program_of(module)
    amount = operations(program, inputs) if limit == "arithmetic" else least_bytes(program, inputs)
    return Task((module,), inputs, limit, amount)


def _convolution(
    convolve: Body, shape: tuple[int, int, int], weight: tuple[int, int, int, int]
) -> Task:
    """A convolution of one image with a constant weight."""
    scale = np.float32(1 / math.sqrt(math.prod(weight[1:])))
    kernel = ir.const(drawn(*weight, seed=1) * scale)

    def body(x: Var) -> Call:
        return convolve(x, kernel)

    module = module_of(((1, *shape),), body)
    inputs = (drawn(1, *shape),)
    return Task((module,), inputs, "arithmetic", operations(program_of(module), inputs))

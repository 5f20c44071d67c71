"""torch: its functions one after the other, and its compiler."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from bench.llama import APPEND
from bench.program import Array, NotRunnable, Operators, as_function, passing, plain, program_of
from bench.system import Bind, Bound
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.module import IRModule

torch: Any = import_module("torch")  # optional: absent when types are checked
functional: Any = import_module("torch.nn.functional")


def compiled(module: IRModule, threads: int) -> Bind:
    """`module` as a function of tensors, in eager mode."""
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    function = as_function(program_of(module), _OPERATORS, torch.from_numpy)
    return partial(_bind, function)


def compiled_by_inductor(module: IRModule, threads: int) -> Bind:
    """`module` through ``torch.compile``, which needs a C++ compiler."""
    if not any(map(shutil.which, ("c++", "g++", "clang++"))):
        raise NotRunnable("torch.compile needs a compiler of C++")
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    function = as_function(program_of(module), _OPERATORS, torch.from_numpy)
    return partial(_bind, torch.compile(function))


def _bind(function: Callable[..., Any], inputs: Sequence[Array]) -> Bound:
    run = partial(function, *map(torch.from_numpy, inputs))
    return Bound(run, lambda: np.array(run()))


def _softmax(*, axis: int) -> Callable[[Any], Any]:
    return partial(torch.softmax, dim=axis)


def _layer_norm(*, epsilon: float, **_: object) -> Callable[..., Any]:
    def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
        return functional.layer_norm(x, gamma.shape, gamma, beta, epsilon)

    return layer_norm


def _rms_norm(*, epsilon: float, **_: object) -> Callable[..., Any]:
    def rms_norm(x: Any, weight: Any) -> Any:
        return functional.rms_norm(x, weight.shape, weight, epsilon)

    return rms_norm


def _expand_dims(*, axis: tuple[int, ...]) -> Callable[[Any], Any]:
    def expand_dims(x: Any) -> Any:
        for place in sorted(axis):
            x = x.unsqueeze(place)
        return x

    return expand_dims


def _astype(*, dtype: str) -> Callable[[Any], Any]:
    kind = getattr(torch, dtype)
    return lambda x: x.to(kind)


def _permute_dims(*, axes: tuple[int, ...] | None) -> Callable[[Any], Any]:
    def permute_dims(x: Any) -> Any:
        return x.permute(axes or tuple(reversed(range(x.dim()))))

    return permute_dims


def _strided_slice(*, axes: tuple[int, ...], **_: object) -> Callable[..., Any]:
    def strided_slice(x: Any, begin: tuple[int, ...], end: tuple[int, ...]) -> Any:
        for axis, first, behind in zip(axes, begin, end, strict=True):
            x = x.narrow(axis, first, min(behind, x.shape[axis]) - first)
        return x

    return strided_slice


def _append_row(cache: Any, row: Any) -> Any:
    cache[..., -1:, :] = row
    return cache


def _attention(**attrs: Attr) -> Callable[..., Any]:
    if any(value is not None for value in attrs.values()):
        raise NotRunnable(f"nn.attention with {attrs}: needs no scale and no mask")

    def attention(*operands: Any) -> Any:
        by_heads = (x.transpose(1, 2) for x in operands)
        return functional.scaled_dot_product_attention(*by_heads, enable_gqa=True).transpose(1, 2)

    return attention


def _conv2d(
    *,
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    dilation: tuple[int, ...],
    groups: int,
    **_: object,
) -> Callable[..., Any]:
    def conv2d(x: Any, w: Any) -> Any:
        return functional.conv2d(x, w, None, strides, padding[:2], dilation, groups)

    return conv2d


def _conv2d_transpose(
    *, strides: tuple[int, ...], padding: tuple[int, ...], groups: int, **_: object
) -> Callable[..., Any]:
    def conv2d_transpose(x: Any, w: Any) -> Any:
        return functional.conv_transpose2d(x, w, None, strides, padding[:2], groups=groups)

    return conv2d_transpose


def _batch_norm(*, epsilon: float, **_: object) -> Callable[..., Any]:
    def batch_norm(x: Any, gamma: Any, beta: Any, mean: Any, variance: Any) -> Any:
        return (functional.batch_norm(x, mean, variance, gamma, beta, eps=epsilon),)

    return batch_norm


def _max_pool2d(
    *, pool_size: tuple[int, ...], strides: tuple[int, ...], padding: tuple[int, ...], **_: object
) -> Callable[[Any], Any]:
    before = padding[:2]
    return lambda x: functional.max_pool2d(x, pool_size, strides, before)


def _avg_pool2d(
    *,
    pool_size: tuple[int, ...],
    strides: tuple[int, ...],
    padding: tuple[int, ...],
    count_include_pad: bool,
    **_: object,
) -> Callable[[Any], Any]:
    return partial(
        functional.avg_pool2d,
        kernel_size=pool_size,
        stride=strides,
        padding=padding[:2],
        count_include_pad=count_include_pad,
    )


def _resize2d(*, method: str, **_: object) -> Callable[..., Any]:
    linear = {"mode": "bilinear", "align_corners": False}
    attrs = linear if method == "linear" else {"mode": "nearest"}

    def resize2d(x: Any, size: tuple[int, ...]) -> Any:
        return functional.interpolate(x, size=size, **attrs)

    return resize2d


def _adaptive_avg_pool2d(*, output_size: tuple[int, ...], **_: object) -> Callable[[Any], Any]:
    return partial(functional.adaptive_avg_pool2d, output_size=output_size)


def _ones(*, dtype: str) -> Callable[[tuple[int, ...]], Any]:
    return partial(torch.ones, dtype=getattr(torch, dtype))


_OPERATORS: Operators = {
    APPEND: plain(_append_row),
    "add": plain(torch.add),
    "subtract": plain(torch.sub),
    "multiply": plain(torch.mul),
    "divide": plain(torch.div),
    "power": plain(torch.pow),
    "negative": plain(torch.neg),
    "sqrt": plain(torch.sqrt),
    "exp": plain(torch.exp),
    "erf": plain(torch.erf),
    "tanh": plain(torch.tanh),
    "sigmoid": plain(torch.sigmoid),
    "where": plain(torch.where),
    "matmul": plain(torch.matmul),
    "sum": passing(torch.sum),
    "max": passing(torch.amax),
    "maximum": plain(torch.maximum),
    "mean": passing(torch.mean),
    "astype": _astype,
    "ones": _ones,
    "tril": plain(torch.tril),
    "concat": passing(torch.cat),
    "reshape": plain(torch.reshape),
    "expand_dims": _expand_dims,
    "permute_dims": _permute_dims,
    "broadcast_to": plain(torch.broadcast_to),
    "strided_slice": _strided_slice,
    "nn.relu": plain(torch.relu),
    "nn.gelu": plain(functional.gelu),
    "nn.silu": plain(functional.silu),
    "nn.attention": _attention,
    "nn.softmax": _softmax,
    "nn.layer_norm": _layer_norm,
    "nn.rms_norm": _rms_norm,
    "nn.conv2d": _conv2d,
    "nn.batch_norm": _batch_norm,
    "nn.conv2d_transpose": _conv2d_transpose,
    "nn.max_pool2d": _max_pool2d,
    "nn.avg_pool2d": _avg_pool2d,
    "image.resize2d": _resize2d,
    "nn.adaptive_avg_pool2d": _adaptive_avg_pool2d,
}

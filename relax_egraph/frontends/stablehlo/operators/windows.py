"""Reductions of windows: pools and running sums."""

from dataclasses import dataclass
from itertools import product
from math import prod

from jaxlib.mlir import ir

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.stablehlo.graph import applied
from relax_egraph.frontends.stablehlo.node import Node, like, shape_of
from relax_egraph.frontends.stablehlo.operators.elementwise import combined
from relax_egraph.frontends.stablehlo.operators.padding import padded
from relax_egraph.frontends.stablehlo.operators.reductions import neutral, with_start
from relax_egraph.frontends.stablehlo.reducers import reducer
from relax_egraph.frontends.stablehlo.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr

_MOST_POOLED = 3
"""The most axes that a pool goes over."""

_MOST_PLACES = 256
"""The most places of a window that are read one after the other."""


@dataclass(frozen=True, slots=True)
class Windows:
    """The windows of a tensor, along each of its axes."""

    sizes: tuple[Dim, ...]
    strides: tuple[int, ...]
    spread: tuple[int, ...]
    dilation: tuple[int, ...]
    low: tuple[Dim, ...]
    high: tuple[Dim, ...]

    @property
    def axes(self) -> list[int]:
        """The axes along which a window has more than one element."""
        return [k for k, size in enumerate(self.sizes) if size != 1]


@converts("stablehlo.reduce_window")
def reduce_window(node: Node) -> list[Expr]:
    """Each operand reduced by windows."""
    rank = node.rank(0)
    ones = (1,) * rank
    widths = node.pairs("padding", rank)
    windows = Windows(
        node.integers("window_dimensions"),
        node.integers("window_strides", ones),
        node.integers("base_dilations", ones),
        node.integers("window_dilations", ones),
        tuple(low for low, _ in widths),
        tuple(high for _, high in widths),
    )
    return _each(node, node.operation.regions[0].blocks[0], len(node) // 2, windows)


@converts("@stablehlo.dynamic_reduce_window")
def dynamic_reduce_window(node: Node) -> list[Expr]:
    """The same, with windows that are operands."""
    (callee,) = node.attribute("called_computations")
    block = node.program.function(callee.value).regions[0].blocks[0]
    count = (len(node) - 5) // 2
    first = 2 * count
    widths = node.sizes(first + 4)
    windows = Windows(
        node.sizes(first),
        node.known(first + 1),
        node.known(first + 2),
        node.known(first + 3),
        widths[::2],
        widths[1::2],
    )
    return _each(node, block, count, windows)


def _each(node: Node, block: ir.Block, count: int, windows: Windows) -> list[Expr]:
    names = reducer(block)
    if names is None:
        return _applied(node, block, count, windows)
    return [
        with_start(node, names[k], node[count + k], _reduced(node, names[k], node[k], windows))
        for k in range(count)
    ]


def _applied(node: Node, block: ir.Block, count: int, windows: Windows) -> list[Expr]:
    """The operands reduced by `block`, applied to one place of the windows after the other."""
    starts = [node[count + k] for k in range(count)]
    between = [n - 1 for n in windows.spread]
    padding = zip([node[k] for k in range(count)], starts, strict=True)
    values = [padded(node, v, s, windows.low, windows.high, between) for v, s in padding]
    parts = [parts_of(node, value, windows) for value in values]
    whole = [node.broadcast(s, shape_of(p[0])) for s, p in zip(starts, parts, strict=True)]
    for place in zip(*parts, strict=True):
        whole = applied(block, [*whole, *place], node.program, node.scope)
    return whole


def _reduced(node: Node, name: str, value: Expr, windows: Windows) -> Expr:
    """`value` reduced by windows with the operation `name`, from its neutral element."""
    running = _running(node, name, value, windows)
    if running is not None:
        return running
    fill = like(neutral(name, dtype_of(value)), value)
    if any(n != 1 for n in windows.spread):
        between = [n - 1 for n in windows.spread]
        zeros = (0,) * len(between)
        value = padded(node, value, fill, zeros, zeros, between)
    axes = windows.axes
    sizes = [windows.sizes[k] for k in axes]
    if not all(isinstance(size, int) for size in sizes):
        raise ModelError("a window of symbolic size is only known as a running sum or product")
    others = [k for k in range(len(windows.sizes)) if k not in axes]
    is_pool = 1 <= len(axes) <= _MOST_POOLED and name in ("add", "maximum", "minimum")
    is_pool = is_pool and all(
        (windows.strides[k], windows.low[k], windows.high[k]) == (1, 0, 0) for k in others
    )
    if is_pool and is_float(dtype_of(value)):
        return _pooled(node, name, value, windows)
    value = padded(node, value, fill, windows.low, windows.high)
    whole: Expr | None = None
    for part in parts_of(node, value, windows):
        whole = part if whole is None else combined(node, name, whole, part)
    assert whole is not None
    return whole


def _pooled(node: Node, name: str, value: Expr, windows: Windows) -> Expr:
    """The same by a pool over up to three axes; a sum is a mean of as many as a window has."""
    axes = windows.axes
    others = [k for k in range(len(windows.sizes)) if k not in axes]
    fill = like(neutral(name, dtype_of(value)), value)
    low = [windows.low[k] if k in axes else 0 for k in range(len(windows.sizes))]
    high = [windows.high[k] if k in axes else 0 for k in range(len(windows.sizes))]
    widths = [n for n in (*(low[k] for k in axes), *(high[k] for k in axes)) if isinstance(n, int)]
    sizes = tuple(n for k in axes if isinstance(n := windows.sizes[k], int))
    reach = [(n - 1) * windows.dilation[k] for n, k in zip(sizes, axes, strict=True)]
    fits = all(0 <= n <= most for n, most in zip(widths, [*reach, *reach], strict=False))
    if len(widths) < 2 * len(axes) or not fits:
        value, widths = padded(node, value, fill, low, high), [0] * (2 * len(axes))
    order = [*others, *axes]
    turned = node.permuted(value, order)
    shape = shape_of(turned)
    outer, inner = shape[: len(others)], shape[len(others) :]
    image = node.reshaped(
        turned, (*(outer if len(outer) == 2 else (dims.product(outer), 1)), *inner)
    )
    if name == "minimum":
        image = node.emit("negative", image)
    pool = f"nn.{'avg' if name == 'add' else 'max'}_pool{len(axes)}d"
    pooled = node.emit(
        pool,
        image,
        pool_size=sizes,
        strides=tuple(windows.strides[k] for k in axes),
        padding=tuple(widths),
        dilation=tuple(windows.dilation[k] for k in axes),
        count_include_pad=True,
    )
    if name == "minimum":
        pooled = node.emit("negative", pooled)
    if name == "add":
        pooled = node.emit("multiply", pooled, like(prod(sizes), pooled))
    whole = node.reshaped(pooled, (*outer, *shape_of(pooled)[2:]))
    return node.permuted(whole, sorted(range(len(order)), key=order.__getitem__))


def parts_of(node: Node, value: Expr, windows: Windows) -> list[Expr]:
    """The elements at each place of a window, of all windows of padded `value`."""
    sizes = tuple(n for n in windows.sizes if isinstance(n, int))
    if len(sizes) < len(windows.sizes):
        raise ModelError("a window of symbolic size is only known as a running sum or product")
    if prod(sizes) > _MOST_PLACES:
        raise ModelError(f"windows of {prod(sizes)} elements: needs {_MOST_PLACES} at most")
    shape = shape_of(value)
    reach = [(n - 1) * d for n, d in zip(sizes, windows.dilation, strict=True)]
    parts: list[Expr] = []
    for at in product(*map(range, sizes)):
        begin = [a * d for a, d in zip(at, windows.dilation, strict=True)]
        end = [dims.sub(n, r - b) for n, r, b in zip(shape, reach, begin, strict=True)]
        parts.append(node.sliced(value, begin, end, windows.strides))
    return parts


def _running(node: Node, name: str, value: Expr, windows: Windows) -> Expr | None:
    """A running sum, product or extreme, if the windows are those of one."""
    axes, shape = windows.axes, shape_of(value)
    if len(axes) != 1:
        return None
    axis = axes[0]
    extent = shape[axis]
    plain = (*windows.strides, *windows.spread, *windows.dilation)
    others = [n for k in range(len(shape)) if k != axis for n in (windows.low[k], windows.high[k])]
    if any(n != 1 for n in plain) or any(n != 0 for n in others):
        return None
    width = dims.sub(extent, 1)
    if not dims.equal(windows.sizes[axis], extent):
        return None
    pad = windows.low[axis], windows.high[axis]
    forward = dims.equal(pad[0], width) and pad[1] == 0
    backward = dims.equal(pad[1], width) and pad[0] == 0
    if not forward and not backward:
        return None
    if name in ("add", "multiply") and dtype_of(value) != "bool":
        operator = "cumsum" if name == "add" else "cumprod"
        turned = value if forward else node.emit("flip", value, axis=axis)
        whole = node.emit(operator, turned, axis=axis)
        return whole if forward else node.emit("flip", whole, axis=axis)
    if not isinstance(extent, int):
        return None
    return _doubled(node, name, value, axis, extent, forward=forward)


def _doubled(node: Node, name: str, value: Expr, axis: int, extent: int, *, forward: bool) -> Expr:
    """The running extreme: each step combines windows of twice the size."""
    fill = like(neutral(name, dtype_of(value)), value)
    rank, step = len(shape_of(value)), 1
    while step < extent:
        ahead, behind = [0] * rank, [0] * rank
        ahead[axis], behind[axis] = (step, -step) if forward else (-step, step)
        value = combined(node, name, value, padded(node, value, fill, ahead, behind))
        step *= 2
    return value

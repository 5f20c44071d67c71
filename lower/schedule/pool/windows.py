"""Recognition of reductions over windows, by the indices of their operands."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.index import coefficients
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.stages import Axis, Reduction, Stage
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Binary, Select, TirExpr, TirVar
from relax_egraph.tir.rewrite import loads, rewrite, substitute, variables


@dataclass(frozen=True, slots=True)
class Window:
    """The movement of a window along an axis of data.

    Tap ``r`` at position ``p`` reads `place` ``p · stride + r · dilation - before``; if that may be
    outside `extent`, the window `is_padded`, and reads nothing there.
    """

    position: Axis
    place: TirVar
    size: int
    stride: int
    dilation: int
    before: int
    extent: Dim
    is_padded: bool

    @property
    def reach(self) -> int:
        """The number of places that a window spans."""
        return (self.size - 1) * self.dilation + 1


@dataclass(frozen=True, slots=True)
class Pool:
    """``stage.buffer[…] = combine(value)`` over the places of a window.

    `across` are the windows of the outer axes, `along` that of the innermost axis with a window;
    the `inner` axes after it are contiguous.
    """

    stage: Stage
    reduction: Reduction
    value: TirExpr
    across: tuple[Window, ...]
    along: Window
    inner: tuple[Axis, ...]

    @property
    def rows(self) -> tuple[Axis, ...]:
        """The axes of the result before that of `along`."""
        axes = self.stage.axes
        return axes[: axes.index(self.along.position)]


def match_pool(stage: Stage) -> Pool | None:
    """`stage` as a pool, if its windows have constant sizes and there are several along an axis.

    The axes of its result must be in the order of data.
    """
    reduction = stage.reduction
    if reduction is None:
        return None
    value, tests = _tested(stage.value, reduction)
    windows = _windows(stage, reduction, value, tests)
    if not windows or all(w.position.extent == 1 for w in windows.values()):
        return None
    places: dict[TirExpr, TirExpr] = {index: w.place for index, w in windows.items()}
    inner_value = rewrite(value, lambda e: places.get(e, e))
    window_vars = {w.position.var for w in windows.values()} | {a.var for a in reduction.axes}
    if variables(inner_value) & window_vars or not _in_order(
        stage, inner_value, [*windows.values()]
    ):
        return None
    order = [a.var for a in stage.axes]
    *across, along = sorted(windows.values(), key=lambda w: order.index(w.position.var))
    inner = stage.axes[order.index(along.position.var) + 1 :]
    if len(inner) > 1:
        return None
    return Pool(stage, reduction, inner_value, tuple(across), along, inner)


def _tested(value: TirExpr, reduction: Reduction) -> tuple[TirExpr, list[TirExpr]]:
    """The value inside data, and the conditions for it; outside, the value is `init`."""
    match value:
        case Select(condition=condition, a=inside, b=outside) if outside == reduction.init:
            return inside, [*_conjuncts(condition)]
        case _:
            return value, []


def _conjuncts(condition: TirExpr) -> Iterator[TirExpr]:
    match condition:
        case Binary(kind="and", a=a, b=b):
            yield from _conjuncts(a)
            yield from _conjuncts(b)
        case _:
            yield condition


def _windows(
    stage: Stage, reduction: Reduction, value: TirExpr, tests: Sequence[TirExpr]
) -> Mapping[TirExpr, Window] | None:
    """The windows by their indices; ``None`` if there are others, or other conditions."""
    taps = {a.var: a for a in reduction.axes}
    windows: dict[TirExpr, Window] = {}
    for load in loads(value):
        for index, extent in zip(load.indices, load.buffer.shape, strict=True):
            if index in windows or not variables(index) & taps.keys():
                continue
            window = _window(index, extent, stage.axes, taps)
            if window is None:
                return None
            windows[index] = window
    for test in tests:
        match test:
            case Binary(kind=">=", a=index, b=limit) if index in windows and limit == ZERO:
                pass
            case Binary(kind="<", a=index, b=limit) if (
                index in windows and dim_of(limit) == windows[index].extent
            ):
                pass
            case _:
                return None
        windows[index] = replace(windows[index], is_padded=True)
    used = [v for index in windows for v in variables(index)]
    if len(set(used)) < len(used):
        return None
    return None if any(a.extent != 1 and a.var not in used for a in reduction.axes) else windows


def _window(
    index: TirExpr, extent: Dim, axes: Sequence[Axis], taps: Mapping[TirVar, Axis]
) -> Window | None:
    own = variables(index)
    position = next((a for a in axes if a.var in own), None)
    tap = next(taps[v] for v in own if v in taps)
    if position is None or len(own) != 2 or not isinstance(tap.extent, int) or tap.extent < 1:
        return None
    moves = coefficients(index, (position.var, tap.var))
    start = dim_of(substitute(index, dict.fromkeys(own, ZERO)))
    if moves is None or not isinstance(start, int):
        return None
    stride, dilation = moves
    if not isinstance(stride, int) or not isinstance(dilation, int) or min(stride, dilation) < 1:
        return None
    place = TirVar(f"y_{position.var.name}")
    return Window(position, place, tap.extent, stride, dilation, -start, extent, is_padded=False)


def _in_order(stage: Stage, seen: TirExpr, windows: Sequence[Window]) -> bool:
    """Whether axes that move with a window move with all, in the order of the result's axes."""
    order = {a.var: k for k, a in enumerate(stage.axes)}
    places = {w.place: order[w.position.var] for w in windows}
    order |= places
    for load in loads(seen):
        moving = [v for index in load.indices for v in variables(index)]
        if places.keys().isdisjoint(moving):
            continue
        axes = [order[v] for v in moving if stage.axes[order[v]].extent != 1 or v in places]
        if not places.keys() <= set(moving) or axes != sorted(axes):
            return False
    return True

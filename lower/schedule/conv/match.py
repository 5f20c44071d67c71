"""Recognition of convolutions among the stages, by the indices of their operands."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.conv.convolution import Convolution, Window
from relax_egraph.lower.schedule.index import coefficients
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.affine import dim_of
from relax_egraph.tir.expr import Binary, BufferLoad, Imm, Select, TirExpr, TirVar, binary
from relax_egraph.tir.rewrite import substitute, variables


def match_convolution(stage: Stage, stages: Sequence[Stage]) -> Convolution | None:
    """`stage` as a float32 convolution; the padding of its data may be one of `stages`."""
    match stage.value:
        case Binary(kind="*", a=a, b=b):
            sources = ((_source(a, stages), b), (_source(b, stages), a))
        case Select(condition=condition, a=Binary(kind="*", a=a, b=b), b=Imm(value=0)):
            sources = (((a, condition), b), ((b, condition), a))
        case _:
            return None
    if not stage.sums:
        return None
    for source, weight in sources:
        if source is None or not isinstance(weight, BufferLoad):
            continue
        data, condition = source
        if not isinstance(data, BufferLoad):
            continue
        if match := _convolution(stage, data, condition, weight):
            return match
    return None


def _source(data: TirExpr, stages: Sequence[Stage]) -> tuple[BufferLoad, TirExpr | None] | None:
    """The element that `data` loads, and the condition for which it is not 0."""
    if isinstance(data, BufferLoad):
        padding = next((s for s in stages if s.buffer is data.buffer), None)
        if padding is None or not isinstance(padding.value, Select):
            return data, None
        point = {a.var: i for a, i in zip(padding.axes, data.indices, strict=True)}
        data = substitute(padding.value, point)
    match data:
        case Select(condition=condition, a=BufferLoad() as inside, b=Imm(value=0)):
            return inside, condition
        case _:
            return None


def _convolution(
    stage: Stage, data: BufferLoad, condition: TirExpr | None, weight: BufferLoad
) -> Convolution | None:
    assert stage.reduction is not None
    if {data.dtype, weight.dtype} != {"float32"}:
        return None
    axes = {a.var: a for a in stage.all_axes}
    reduced = {a.var for a in stage.reduction.axes}
    sizes = {i: d for i, d in zip(weight.indices, weight.buffer.shape, strict=True) if i in axes}
    features = [v for v in sizes if v not in reduced]
    plain = all(i in axes or i == ZERO for i in weight.indices)
    if len(features) != 1 or not plain or len(sizes) < sum(i in axes for i in weight.indices):
        return None
    (feature,) = features
    inside = [_unclamped(i) for i in data.indices]
    if not _is_zero_outside(data, inside, condition, axes, feature):
        return None
    windows: list[Window] = []
    places: list[int] = []
    batch: tuple[int, Axis] | None = None
    channel: tuple[int, TirVar, Dim] | None = None
    for place, (index, extent) in enumerate(zip(inside, data.buffer.shape, strict=True)):
        own = variables(index)
        if feature in own or (own <= reduced and len(own) == 1 and channel is None):
            grouped = _channel(index, axes[feature], reduced, sizes)
            if grouped is None or channel is not None:
                return None
            channel = (place, *grouped)
        elif len(own) == 1 and index in axes and not own & reduced and batch is None:
            batch = (place, axes[next(iter(own))])
        else:
            window = _window(index, extent, axes, reduced, sizes)
            if window is None:
                return None
            windows.append(window)
            places.append(place)
    if batch is None or channel is None or not windows:
        return None
    used = [batch[1].var, feature, *(w.position.var for w in windows)]
    if len(set(used)) < len(used) or set(used) != {a.var for a in stage.axes}:
        return None
    taps = [channel[1], *(w.tap for w in windows if w.tap is not None)]
    if len(set(taps)) < len(taps) or any(axes[v].extent != 1 for v in reduced - set(taps)):
        return None
    channels, per_group = sizes.get(channel[1], 1), channel[2]
    if per_group == 0:
        return None
    return Convolution(
        stage=stage,
        data=data.buffer,
        places=(batch[0], channel[0], *places),
        weight=weight,
        batch=batch[1],
        feature=axes[feature],
        channel=channel[1],
        windows=tuple(windows),
        channels=channels,
        features=per_group,
        groups=dims.floordiv(axes[feature].extent, per_group),
    )


def _channel(
    index: TirExpr, feature: Axis, reduced: set[TirVar], sizes: dict[TirVar, Dim]
) -> tuple[TirVar, Dim] | None:
    """The variable of the channel in its group, and the number of features of a group."""
    if isinstance(index, TirVar):
        return (index, feature.extent) if index in reduced else None
    match index:
        case Binary(kind="+", a=start, b=TirVar() as channel) if channel in reduced:
            pass
        case _:
            return None
    channels = sizes.get(channel, 1)
    if channels != 1:
        match start:
            case Binary(kind="*", a=start, b=factor) if dim_of(factor) == channels:
                pass
            case _:
                return None
    match start:
        case TirVar() if start is feature.var:
            return channel, 1
        case Binary(kind="//", a=start, b=divisor) if start is feature.var:
            features = dim_of(divisor)
            return None if features is None else (channel, features)
        case _:
            return None


def _window(
    index: TirExpr,
    extent: Dim,
    axes: dict[TirVar, Axis],
    reduced: set[TirVar],
    sizes: dict[TirVar, Dim],
) -> Window | None:
    own = sorted(variables(index), key=lambda v: v in reduced)
    index, up = _quotient(index)
    steps = coefficients(index, own)
    offset = dim_of(substitute(index, dict.fromkeys(own, ZERO)))
    if not own or len(own) > 2 or own[0] in reduced or (len(own) == 2 and own[1] not in reduced):
        return None
    if steps is None or not all(isinstance(s, int) for s in steps):
        return None
    if not isinstance(offset, int):
        return None
    plain = 1 if up == 1 else -1
    stride, dilation = int(steps[0]), int(steps[1]) if len(own) == 2 else plain
    if stride < 1 or dilation == 0 or ((up > 1 or dilation < 0) and (stride > 1 or dilation > 0)):
        return None
    tap = own[1] if len(own) == 2 else None
    size = sizes.get(tap) if tap is not None else 1
    if size is None:
        return None
    if dilation < 0 and not isinstance(size, int):
        return None
    return Window(axes[own[0]], tap, size, stride, dilation, -offset, extent, up)


def _quotient(index: TirExpr) -> tuple[TirExpr, int]:
    """The dividend and the divisor of `index`; a divisor of 1 if it is no division."""
    match index:
        case Binary(kind="//", a=whole, b=Imm(value=int(divisor))) if divisor > 0:
            return whole, divisor
        case _:
            return index, 1


def _unclamped(index: TirExpr) -> TirExpr:
    match index:
        case Binary(kind="max", a=inner, b=Imm(value=0)):
            return _unclamped(inner)
        case Binary(kind="min", a=inner):
            return inner
        case _:
            return index


def _is_zero_outside(
    data: BufferLoad,
    inside: Sequence[TirExpr],
    condition: TirExpr | None,
    axes: dict[TirVar, Axis],
    feature: TirVar,
) -> bool:
    """Whether `condition` holds exactly for the places of `inside` that are in `data`."""
    places = {_Bound(at, "below"): k for k, at in enumerate(inside)}
    places |= {_Bound(at, "above"): k for k, at in enumerate(inside)}
    for k, at in enumerate(inside):
        whole, up = _quotient(at)
        if up > 1 and feature not in variables(at):
            places[_Bound(binary("%", whole, up), "whole")] = k
    tested = set[_Bound]()
    for part in _conjuncts(condition):
        match part:
            case Binary(kind=">=", a=at, b=Imm(value=0)):
                test = _Bound(at, "below")
            case Binary(kind="<", a=at, b=limit):
                test = _Bound(at, "above")
                if test in places and dim_of(limit) != data.buffer.shape[places[test]]:
                    return False
            case Binary(kind="==", a=at, b=Imm(value=0)):
                test = _Bound(at, "whole")
            case _:
                return False
        if test not in places:
            return False
        tested.add(test)
    return all(
        test in tested or _never_beyond(test, data.buffer.shape[k], axes)
        for test, k in places.items()
    )


@dataclass(frozen=True, slots=True)
class _Bound:
    at: TirExpr
    side: str


def _conjuncts(condition: TirExpr | None) -> Iterator[TirExpr]:
    if isinstance(condition, Binary) and condition.kind == "and":
        yield from _conjuncts(condition.a)
        yield from _conjuncts(condition.b)
    elif condition is not None:
        yield condition


def _never_beyond(test: _Bound, extent: Dim, axes: dict[TirVar, Axis]) -> bool:
    """Whether an index is proven to respect this bound of its axis."""
    own = list(variables(test.at))
    if test.side == "whole":
        return False
    if test.side == "above":
        # Untested indices are inside, like all indices of TIR.
        return True
    steps = coefficients(test.at, own)
    if steps is None:
        return True  # of groups: quotients and products of nonnegative numbers
    least = dim_of(substitute(test.at, dict.fromkeys(own, ZERO)))
    return least is not None and dims.prove_ge(least, 0)

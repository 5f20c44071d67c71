"""Proposals for data movement and reductions: shapes and attributes that fit the known values.

A proposal fills empty slots from either side, operand or result; the operator's struct-info rule
decides whether they fit.
"""

from collections.abc import Callable, Mapping

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.instances.primitives import Fails
from relax_egraph.verify.instances.slots import MISSING, Slots

Propose = Callable[[Slots], None]


def _permute_dims(s: Slots) -> None:
    axes, x, out = s.attr("axes"), s.shape("x"), s.result
    if x is None and out is None:
        x = s.fresh("x", None if axes is None else len(axes))
    rank = len(x if x is not None else out or ())
    if axes is None:
        axes = tuple(s.random.sample(range(rank), rank))
        if s.palette.chance(0.5) and rank >= 2:
            last_two = (*range(rank - 2), rank - 1, rank - 2)
            to_channels_last, back = (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1))
            axes = s.random.choice((last_two, last_two, to_channels_last, back))
        s.choose("axes", axes)
    if x is None and out is not None and sorted(axes) == list(range(rank)):
        s.give("x", tuple(out[axes.index(k)] for k in range(rank)))


def _regrouped(s: Slots, shape: Shape) -> Shape:
    """A shape with mostly the same number of elements."""
    items = list(shape)
    for _ in range(s.random.choice((0, 1, 1, 2, 3))):
        at = s.random.randrange(len(items) + 1)
        pair = items[at : at + 2]
        match s.random.randrange(5):
            case 0:
                items.insert(at, 1)
            case 1 if 1 in items:
                items.remove(1)
            case 2 if len(pair) == 2:
                items[at : at + 2] = [dims.mul(pair[0], pair[1])]
            case 3 if pair and isinstance(pair[0], int) and pair[0] > 1:
                cut = s.random.choice([k for k in range(1, pair[0] + 1) if pair[0] % k == 0])
                items[at : at + 1] = [cut, pair[0] // cut]
            case 4 if len(pair) == 2:
                items[at : at + 2] = reversed(pair)
            case _:
                pass
    return tuple(items)


def _reshape(s: Slots) -> None:
    x, shape = s.shape("x"), s.attr("shape")
    if x is None:
        x = s.give("x", _regrouped(s, shape)) if shape is not None else s.fresh("x")
    if shape is None:
        arg = s.arg("shape")
        s.put(arg, s.hinted(arg, _regrouped(s, x)))


def _broadcast_to(s: Slots) -> None:
    x, shape = s.shape("x"), s.attr("shape")
    if shape is None:
        x = s.fresh("x") if x is None else x
        grown = tuple(s.palette.extent() if d == 1 and s.palette.chance(0.6) else d for d in x)
        front = s.palette.shape(s.random.choice((0, 0, 1, 2)))
        s.choose("shape", (*front, *grown)[-5:] if len(grown) < 5 else grown)
    elif x is None:
        kept = shape[s.random.choice((0, s.random.randint(0, len(shape)))) :]
        p = s.random.choice((0.0, 0.3, 0.7))
        s.give("x", tuple(1 if s.palette.chance(p) else d for d in kept))


def _expand_dims(s: Slots) -> None:
    x, axes, out = s.shape("x"), s.attr("axis"), s.result
    if axes is None:
        units = [k for k, d in enumerate(out or ()) if d == 1]
        if out is not None and x is not None:
            axes = tuple(units[: len(out) - len(x)])
        elif out is not None:
            axes = tuple(sorted(s.random.sample(units, s.random.randint(0, len(units)))))
        else:
            x = s.fresh("x")
            count = s.length(s.arg("axis")) or s.random.choice((1, 1, 2))
            axes = tuple(sorted(s.random.sample(range(len(x) + count), count)))
        s.choose("axis", axes)
    if x is None:
        if out is None:
            s.fresh("x")
        else:
            s.give("x", tuple(d for k, d in enumerate(out) if k not in axes))


def _squeeze(s: Slots) -> None:
    x, axes, out = s.shape("x"), s.attr("axis"), s.result
    if x is None:
        base = s.palette.shape() if out is None else out
        count = s.random.choice((0, 1, 1, 2)) if axes is None else len(axes)
        if axes is None:
            axes = tuple(sorted(s.random.sample(range(len(base) + count), count)))
        rest = iter(base)
        x = s.give("x", tuple(1 if k in axes else next(rest, 1) for k in range(len(base) + count)))
    if s.attr("axis") is None:
        units = [k for k, d in enumerate(x) if d == 1]
        some = sorted(s.random.sample(units, s.random.randint(0, len(units))))
        s.choose("axis", tuple(axes if axes is not None else some))


def _flatten(s: Slots) -> None:
    if s.shape("x") is None:
        s.give("x", s.palette.shape() if s.result is None else _regrouped(s, s.result))


def _reduce(s: Slots) -> None:
    name = s.node.op.operands[0].name if s.node.op else "x"
    x, out, axes = s.shape(name), s.result, s.attr("axis")
    keep = s.choose("keepdims", True, False)
    if x is None and out is None:
        least = max(axes, default=-1) + 1 if isinstance(axes, tuple) else 0
        rank = max(least, len(s.palette.shape()))
        x = s.fresh(name, rank)
    rank = len(x) if x is not None else len(out or ())
    wide = rank if x is not None or keep else rank + (len(axes) if axes is not None else 1)
    if axes is None:
        count = s.length(s.arg("axis"))
        if x is not None or keep:
            count = s.random.choice((1, 1, 1, rank, 2, 0)) if count is None else count
        else:
            count = 1
        units = [k for k in range(rank) if x is not None or not keep or (out or ())[k] == 1]
        spread = range(wide) if x is not None or not keep else units
        axes = tuple(sorted(s.random.sample(spread, min(count, len(spread)))))
        if count == 1 and s.palette.chance(0.5) and spread:
            axes = (spread[-1],)
        s.choose("axis", axes)
    if x is None and out is not None:
        rest = iter(out)
        inside = [s.palette.extent() if k in axes else None for k in range(wide)]
        if keep:
            s.give(name, tuple(d if d is not None else o for d, o in zip(inside, out, strict=True)))
        else:
            s.give(name, tuple(d if d is not None else next(rest, 1) for d in inside))


def _concat(s: Slots) -> None:
    parts = s.tensors("tensors")
    shapes = [s.get(s.problem.shapes[p]) for p in parts]
    known = [shape for shape in shapes if isinstance(shape, tuple)]
    base = known[0] if known else s.result
    axis = s.attr("axis")
    if base is None:
        base = s.palette.shape(s.random.choice((1, 2, 2, 3)) if axis is None else max(axis + 1, 2))
    axis = s.choose("axis", *range(len(base))) if base else s.choose("axis", 0)
    for part in parts:
        if s.get(s.problem.shapes[part]) is not MISSING or axis >= len(base):
            continue
        extent = base[axis] if s.palette.chance(0.4) else s.palette.extent()
        shape = (*base[:axis], extent, *base[axis + 1 :])
        s.put(s.problem.shapes[part], s.hinted(s.problem.shapes[part], shape))


def _stack(s: Slots) -> None:
    parts = s.tensors("tensors")
    known = [v for p in parts if isinstance(v := s.get(s.problem.shapes[p]), tuple)]
    base = known[0] if known else s.palette.shape()
    for part in parts:
        if s.get(s.problem.shapes[part]) is MISSING:
            s.put(s.problem.shapes[part], base)
    if "axis" in {a.name for a in (s.node.op.attrs if s.node.op else ())}:
        s.choose("axis", *range(len(base) + 1))


def _split(s: Slots) -> None:
    axis = s.attr("axis")
    x = s.shape("x")
    if x is None:
        rank = (
            s.random.choice((1, 2, 2, 3, 4))
            if axis is None
            else max(axis + 1, s.random.choice((1, 2, 3)))
        )
        drawn = list(s.palette.shape(rank))
        at = s.random.randrange(rank) if axis is None else axis
        drawn[at] = s.palette.static(1) * s.random.choice((1, 2))
        x = s.give("x", tuple(drawn))
    fit = [k for k, d in enumerate(x) if isinstance(d, int)] or [0]
    axis = s.choose("axis", *fit)
    extent = x[axis] if axis < len(x) else 0
    arg = s.arg("indices_or_sections")
    if s.attr("indices_or_sections") is None and isinstance(extent, int):
        count = s.length(arg)
        count = s.random.choice((1, 1, 2, 3)) if count is None else count
        cuts = tuple(sorted(s.random.randint(0, extent) for _ in range(count)))
        if s.palette.chance(0.5) and extent % (count + 1) == 0:
            cuts = tuple(extent // (count + 1) * (k + 1) for k in range(count))
        s.put(arg, cuts)


def _strided_slice(s: Slots) -> None:
    vectors = [s.arg(name) for name in ("axes", "begin", "end", "strides")]
    known = [len(v) for a in vectors if isinstance(v := s.get(a), tuple)]
    lengths = [n for a in vectors if (n := s.length(a)) is not None]
    count = next(iter((*known, *lengths)), s.random.choice((1, 1, 2)))
    axes = s.attr("axes")
    least = max(axes, default=-1) + 1 if axes is not None else count
    x = s.shape("x") or s.fresh("x", max(least, s.random.choice((1, 2, 3, 4))))
    if axes is None:
        drawn = tuple(sorted(s.random.sample(range(len(x)), min(count, len(x)))))
        axes = s.choose("axes", s.hinted(vectors[0], drawn))
    s.choose("strides", (1,) * count, (1,) * count, (2,) * count)
    here = [x[a] if 0 <= a < len(x) else 1 for a in axes]
    far = 0 if s.attr("assume_inbound") is True else 1
    if s.attr("begin") is None:
        s.put(vectors[1], s.hinted(vectors[1], tuple(_position(s, d, 0, far) for d in here)))
    if s.attr("end") is None:
        s.put(vectors[2], s.hinted(vectors[2], tuple(_position(s, d, d, far) for d in here)))
    is_far = _FAR in (*(s.attr("begin") or ()), *(s.attr("end") or ()))
    s.choose("assume_inbound", *((False,) if is_far else (False, False, True)))


def _position(s: Slots, extent: Dim, usual: Dim, far: int) -> Dim:
    """A begin or end of a slice: `usual`, within the extent, from the end, or far beyond.

    `far` is the weight of the last.
    """
    within = s.random.randint(0, extent if isinstance(extent, int) else 3)
    return s.random.choices(
        (usual, within, -s.random.randint(1, 3), extent, _FAR), (4, 6, 1, 1, far)
    )[0]


_FAR = 2**63 - 1


def _pad(s: Slots) -> None:
    widths, out = s.attr("pad_width"), s.result
    count = None if widths is None else len(widths) // 2
    if s.shape("data") is None and out is not None and count in (None, len(out)):
        if widths is None:
            widths = s.choose("pad_width", tuple(s.random.choice((0, 0, 1)) for _ in (*out, *out)))
        around = [a + b for a, b in zip(widths[::2], widths[1::2], strict=True)]
        s.give("data", tuple(_less(d, width) for d, width in zip(out, around, strict=True)))
    x = s.fresh("data", count)
    s.choose("pad_width", tuple(s.random.choice((0, 0, 1, 2)) for _ in range(2 * len(x))))
    s.choose("pad_mode", "constant", "constant", "reflect", "edge")


def _less(extent: Dim, width: int) -> Dim:
    """The extent without padding of `width`; raises `Fails` unless it is at least 0."""
    if width and not (isinstance(extent, int) and extent >= width):
        raise Fails
    return dims.sub(extent, width)


def _take(s: Slots) -> None:
    axis, x = s.attr("axis"), s.shape("x")
    if x is None:
        x = s.fresh("x", None if axis is None else max(axis + 1, s.random.choice((1, 2, 3))))
    s.choose("axis", *(range(len(x)) or (0,)))
    s.fresh("indices", s.random.choice((0, 1, 1, 2)))


def _tile(s: Slots) -> None:
    x = s.fresh("data")
    s.choose("repeats", tuple(s.random.choice((1, 1, 2, 3)) for _ in x))


MOVEMENT: Mapping[str, Propose] = {
    "permute_dims": _permute_dims,
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "flatten": _flatten,
    **dict.fromkeys(("sum", "max", "min", "mean", "prod", "variance", "std", "median"), _reduce),
    "concat": _concat,
    "stack": _stack,
    "meshgrid": _stack,
    "split": _split,
    "strided_slice": _strided_slice,
    "nn.pad": _pad,
    "take": _take,
    "tile": _tile,
}

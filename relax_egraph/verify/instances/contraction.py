"""Proposals for contractions (products, convolutions, attention), pools, and normalizations."""

from collections.abc import Mapping, Sequence
from functools import partial

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.struct_info import Shape
from relax_egraph.verify.instances.movement import Propose
from relax_egraph.verify.instances.slots import Slots

Letters = dict[str, Dim]
"""Extents by the letter of their axis."""


def _matmul(s: Slots) -> None:
    x, y, out = s.shape("x"), s.shape("y"), s.result
    inner = s.palette.extent()
    if x is None and y is None and out is None:
        x = s.fresh("x", s.random.choice((1, 2, 2, 2, 3, 3, 4)))
    if x is None and y is None and out is not None:
        if len(out) >= 2:
            x = s.give("x", (*out[:-1], inner))
        else:
            x = s.give("x", (*out[:-1], inner) if s.palette.chance(0.5) else (inner,))
    if x is None and y is not None:
        inner = y[-2] if len(y) >= 2 else (y or (1,))[-1]
        rows = (s.palette.extent(),) if out is None else out[-2:-1]
        batch = y[:-2] if out is None else out[:-2]
        if out is None and s.palette.chance(0.3):
            batch = s.palette.shape(s.random.choice((0, 1, 2)))
        s.give("x", (*batch, *rows, inner))
    elif y is None and x is not None:
        inner = (x or (1,))[-1]
        column = s.palette.extent() if not out else out[-1]
        batch = s.random.choice([(), x[:-2], tuple(1 for _ in x[:-2])])
        if out is not None and len(out) > len(x):
            batch = out[:-2]
        alone = (out is None and s.palette.chance(0.1)) or (
            out is not None and len(out) == len(x) - 1 > 0
        )
        s.give("y", (inner,) if alone else (*batch, inner, column))


def _unified(letters: Letters, names: str, shape: Shape | None) -> None:
    """Add the extents of `shape` for the letters in `names`; known extents stay."""
    if shape is not None and len(shape) == len(names):
        for letter, extent in zip(names, shape, strict=True):
            letters.setdefault(letter, extent)


def _attention(s: Slots) -> None:
    letters: Letters = {}
    forms = {"query": "bsnh", "key": "btmh", "value": "btmw"}
    for name, form in forms.items():
        _unified(letters, form, s.shape(name))
    _unified(letters, "bsnw", s.result)
    whole = None if s.left_out("bias") else s.shape("bias")
    _unified(letters, "bnst", whole)
    heads = letters.setdefault("n", s.random.choice((1, 2, 4)))
    letters.setdefault("m", s.random.choice((heads, heads, 1)))
    for letter in "bsthw":
        letters.setdefault(letter, s.palette.extent())
    for name, form in forms.items():
        s.give(name, tuple(letters[k] for k in form))
    if not s.left_out("bias"):
        full = tuple(letters[k] for k in "bnst")
        cut = tuple(1 if s.palette.chance(0.3) else d for d in full[:3])
        s.give("bias", (*cut, full[3]))
    s.choose("scale", 0.5, 1.0, 0.25)
    if s.choose("causal_mask", "", "", "TopLeft", "BottomRight"):
        s.choose("window_size", -1, 1, 3)
    s.choose("window_size", -1)


def _conv(rank: int, transposed: bool, s: Slots) -> None:
    space = "DHW"[3 - rank :]
    usual = f"{'IO' if transposed else 'OI'}{space}"
    backwards = f"N{space}C"
    data_layout = str(s.choose("data_layout", f"NC{space}", f"NC{space}", backwards))
    s.choose("kernel_layout", usual, usual, f"{space}{usual[1::-1]}", f"{usual[:2]}{space}")
    kernel_layout = str(s.attr("kernel_layout"))
    out_layout = str(s.choose("out_layout", "", "", "", backwards) or data_layout)
    s.choose("out_dtype", "")
    letters: Letters = {}
    _unified(letters, data_layout, s.shape("data"))
    weights: Letters = {}
    _unified(weights, kernel_layout, s.shape("weight"))
    outputs: Letters = {}
    _unified(outputs, out_layout, s.result)
    if "N" in outputs:
        letters.setdefault("N", outputs["N"])
        weights.setdefault("O", outputs.get("C", 1))
    groups = s.choose("groups", 1, 1, 1, 2)
    groups = groups if isinstance(groups, int) and groups > 0 else 1
    ones = (1,) * rank
    s.choose("strides", ones, ones, (2,) * rank)
    s.choose("dilation", ones, ones, ones, (2,) * rank)
    padding = s.choose("padding", (0,) * rank, (0,) * 2 * rank, (1,) * 2 * rank, (1,) * rank)
    channels = letters.get("C")
    if channels is None:
        known = weights.get("I")
        each = known if known is not None else s.random.choice((1, 2, 3))
        if transposed:
            channels = each if known is not None else groups * s.random.choice((1, 2))
        else:
            channels = dims.mul(each, groups)
        letters["C"] = channels
    if transposed:
        weights.setdefault("I", channels)
        weights.setdefault("O", s.random.choice((1, 2, 3)))
    else:
        weights.setdefault("I", dims.floordiv(channels, groups))
        weights.setdefault("O", groups * s.random.choice((1, 2, 3)))
    letters.setdefault("N", s.random.choice((1, 2, s.palette.extent())))
    around = padding[0] if isinstance(padding, tuple) and padding else 0
    for letter in space:
        weights.setdefault(letter, s.random.choice((1, 1, 2, 3)))
        size = weights[letter]
        least = size if isinstance(size, int) else 3
        same = outputs.get(letter)
        symbolic = s.palette.extent()
        wide = (
            symbolic
            if not isinstance(symbolic, int) and s.palette.chance(0.5)
            else (least + s.random.randint(0, 3))
        )
        if same is not None:
            wide = dims.sub(dims.add(same, least - 1), 2 * around)
        letters.setdefault(letter, wide)
    s.give("data", tuple(letters.get(k, 1) for k in data_layout))
    s.give("weight", tuple(weights.get(k, 1) for k in kernel_layout))


def _pool(rank: int, s: Slots) -> None:
    space = "DHW"[3 - rank :]
    layout = str(s.choose("layout", f"NC{space}", f"NC{space}", f"N{space}C"))
    s.choose("out_layout", "")
    if s.shape("data") is None:
        small = [s.random.choice((1, 2, 3)), s.random.choice((1, 2, 3))]
        wide = {k: s.random.randint(2, 6) for k in space}
        s.give("data", tuple(wide.get(k, small[k == "C"]) for k in layout))


def _along(parameters: Sequence[str], attribute: str, s: Slots) -> None:
    """Propose `parameters` with the extents of the axes of ``data`` that `attribute` names."""
    data, axes = s.shape("data"), s.attr(attribute)
    rest = s.attr("axes") if attribute == "channel_axis" else None
    if data is None:
        data = s.result
    if data is None:
        named = [*(axes if isinstance(axes, tuple) else (axes,) if axes is not None else ())]
        data = s.palette.shape(
            max([2, *(a + 1 for a in (*named, *(rest or ())))]) + s.random.choice((0, 1, 2))
        )
    data = s.give("data", data)
    rank = len(data)
    if axes is None:
        if attribute == "axes":
            some = tuple(sorted(s.random.sample(range(rank), min(rank, s.random.choice((1, 2))))))
            axes = (
                s.choose("axes", (rank - 1,), (rank - 1,), some) if rank else s.choose("axes", ())
            )
        else:
            free = [k for k in range(rank) if k not in (rest or ())]
            axes = s.choose(attribute, 1, *free) if rank > 1 else s.choose(attribute, 0)
    places = axes if isinstance(axes, tuple) else (axes,)
    extents = tuple(data[a] for a in places if a < rank)
    for name in parameters:
        s.give(name, extents)
    if attribute == "channel_axis" and rest is None:
        others = tuple(k for k in range(rank) if k not in places)
        s.choose("axes", others, others, others[1:])
    if "num_groups" in {a.name for a in (s.node.op.attrs if s.node.op else ())}:
        count = extents[0] if extents and isinstance(extents[0], int) else 1
        s.choose("num_groups", *(k for k in range(1, max(count, 1) + 1) if count % k == 0))
    for name in ("epsilon", "momentum"):
        if name in {a.name for a in (s.node.op.attrs if s.node.op else ())}:
            s.choose(name, 1e-5, 1e-2, 0.1)


CONTRACTION: Mapping[str, Propose] = {
    "matmul": _matmul,
    "nn.attention": _attention,
    "nn.attention_bias": _attention,
    **{f"nn.conv{rank}d": partial(_conv, rank, False) for rank in (1, 2, 3)},
    **{f"nn.conv{rank}d_transpose": partial(_conv, rank, True) for rank in (1, 2, 3)},
    **{
        f"nn.{kind}_pool{rank}d": partial(_pool, rank)
        for kind in ("max", "avg", "adaptive_avg")
        for rank in (1, 2, 3)
    },
    "nn.layer_norm": partial(_along, ("gamma", "beta"), "axes"),
    "nn.rms_norm": partial(_along, ("weight",), "axes"),
    "nn.group_norm": partial(_along, ("gamma", "beta"), "channel_axis"),
    "nn.instance_norm": partial(_along, ("gamma", "beta"), "channel_axis"),
    "nn.batch_norm": partial(_along, ("gamma", "beta", "moving_mean", "moving_var"), "axis"),
}

"""The values of attributes: all of them, for operands of known ranks, or symbols for any number.

Where an attribute is neither, a rule that leaves it open is not proven.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, combinations, permutations, product
from typing import Any, TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import DTYPES
from relax_egraph.ir.op import REQUIRED, AttrParam, Op
from relax_egraph.prove.layouts import ON_IMAGES, orders
from relax_egraph.prove.nodes import Value, shape_of
from relax_egraph.prove.sums import apply

Domain: TypeAlias = Callable[[int], Sequence[Any]]
"""The values of an attribute for a first operand of a rank."""


class Open(Exception):
    """The values of an attribute are not known."""


def _axis(rank: int) -> Sequence[int]:
    return range(rank)


def _new_axis(rank: int) -> Sequence[int]:
    return range(rank + 1)


def _axis_or_any(rank: int) -> Sequence[Any]:
    """An axis; where there is none, any number, at which the operator does not look then."""
    number = dims.symbol("axis")
    return range(rank) or (number, dims.sub(-1, number))


def _permutations(rank: int) -> Sequence[tuple[int, ...]]:
    return tuple(permutations(range(rank)))


def _subsets(rank: int) -> Sequence[tuple[int, ...]]:
    return tuple(c for n in range(rank + 1) for c in combinations(range(rank), n))


def _sequences(rank: int) -> Sequence[tuple[int, ...]]:
    return tuple(p for n in range(rank + 1) for p in permutations(range(rank), n))


def _places(rank: int) -> Sequence[tuple[int, ...]]:
    """Places of up to two new axes."""
    return tuple(
        c for n in range(3) for c in combinations(range(rank + n), n) if max((-1, *c)) < rank + n
    )


def _strides(rank: int) -> Sequence[Any]:
    """Strides of up to all axes: each is any number of 1 or more, or the negative of one."""
    steps = [dims.add(dims.symbol(f"stride_{k}"), 1) for k in range(rank)]
    signs = (s for n in range(rank + 1) for s in product((1, -1), repeat=n))
    return tuple(tuple(dims.mul(a, b) for a, b in zip(steps, s, strict=False)) for s in signs)


_DOMAINS: Mapping[tuple[str, str], Domain] = {
    ("concat", "axis"): lambda rank: (-1, *range(rank)),
    ("stack", "axis"): _new_axis,
    ("one_hot", "axis"): _new_axis,
    ("grad.take_backward", "axis"): lambda rank: (-1, *_new_axis(rank)),
    ("quantize", "axis"): _axis_or_any,
    ("dequantize", "axis"): _axis_or_any,
    ("permute_dims", "axes"): _permutations,
    ("expand_dims", "axis"): _places,
    ("squeeze", "axis"): _subsets,
    ("strided_slice", "axes"): _sequences,
    ("nn.layer_norm", "axes"): _sequences,
    ("nn.rms_norm", "axes"): _sequences,
    ("nn.group_norm", "axes"): _sequences,
    ("nn.instance_norm", "axes"): _sequences,
    ("nn.attention", "causal_mask"): lambda rank: ("", "TopLeft", "BottomRight"),
    ("nn.pad", "pad_mode"): lambda rank: ("constant", "reflect", "replicate", "circular"),
    ("take", "mode"): lambda rank: ("fast", "clip", "wrap", "nan"),
    ("nn.attention_bias", "causal_mask"): lambda rank: ("", "TopLeft", "BottomRight"),
    ("nn.attention", "window_size"): lambda rank: (-1, dims.add(dims.symbol("window"), 1)),
    ("nn.attention_bias", "window_size"): lambda rank: (-1, dims.add(dims.symbol("window"), 1)),
    ("meshgrid", "indexing"): lambda rank: ("ij", "xy"),
    ("strided_slice", "strides"): _strides,
}

_LISTS = frozenset((("tile", "repeats"), ("split", "indices_or_sections"), ("nn.pad", "pad_width")))
"""Attributes that are lists of any numbers of 0 or more."""


def _lists(name: str, rank: int) -> Sequence[tuple[dims.Dim, ...]]:
    """Lists of symbols: a tile adds up to two axes; a split has up to two cuts, which ascend."""
    symbols = [dims.symbol(f"{name.replace('.', '_')}_{k}") for k in range(2 * rank + 2)]
    match name:
        case "tile":
            return tuple(tuple(symbols[:n]) for n in range(rank + 3))
        case "split":
            return tuple(tuple(accumulate(symbols[:n], dims.add)) for n in range(3))
        case _:
            return (tuple(symbols[: 2 * rank]),)


_COUNTS: Mapping[tuple[str, str], int] = {
    ("repeat", "repeats"): 0,
    ("nn.group_norm", "num_groups"): 1,
    ("dist.shard", "parts"): 1,
    ("dist.replicate", "parts"): 1,
}
"""Attributes that are any number, and the least one."""

_OF_ALL = frozenset({"sum", "mean", "max", "min", "prod", "variance", "std"})


def values_of(op: Op, attr: AttrParam, operands: Sequence[Any]) -> Sequence[Any]:
    """All canonical values of an attribute; raises `Open` if they are not known."""
    tensors = [x for o in operands for x in (o if isinstance(o, tuple) else (o,))]
    rank = next((len(shape_of(x)) for x in tensors if isinstance(x, Value)), 0)
    domain = _DOMAINS.get((op.name, attr.name))
    if domain is not None:
        return domain(rank)
    if attr.kind == "bool":
        return (False, True)
    if op.name in _OF_ALL and attr.name == "axis":
        return _subsets(rank)
    if attr.kind == "int" and attr.name in ("axis", "channel_axis"):
        return (-1, *_axis(rank)) if attr.optional else _axis(rank)
    known = orders(op, attr)
    if known is not None:
        return known
    if op.name in ON_IMAGES and attr.name not in ("dtype", "out_dtype"):
        return (apply(f"any {attr.name}"),)
    if attr.name in ("dtype", "out_dtype"):
        return DTYPES if attr.default is REQUIRED or not attr.optional else ("", *DTYPES)
    if (op.name, attr.name) in _LISTS:
        return _lists(op.name, rank)
    if attr.kind == "int" and (op.name, attr.name) in _COUNTS:
        symbol = dims.symbol(f"{attr.name}_of_{op.name.replace('.', '_')}")
        return (dims.add(symbol, _COUNTS[op.name, attr.name]),)
    if attr.kind == "float":
        return (apply(f"any {attr.name} of {op.name} {len(operands)}"),)
    raise Open(f"the attribute {attr.name} of R.{op.name} may have any value")

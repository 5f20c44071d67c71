"""Operators on images, as unknown functions of their operands in canonical order.

What a convolution, a pool or a resize computes is the same for every order of axes: its result in
canonical order is a function of the operands in canonical order and of all other attributes.  That
is all that proofs about orders use; strides, padding and the like may be anything.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from relax_egraph.ir import dims
from relax_egraph.ir.op import AttrParam, Op
from relax_egraph.ir.struct_info import ShapeExpr, TensorStructInfo
from relax_egraph.prove.choices import Impossible
from relax_egraph.prove.nodes import Value, dtype_of, key_of, shape_of
from relax_egraph.prove.tensors import Tensor

ANY = "any order"
"""Stands, among the values of an attribute, for orders that no function of rules knows."""


class AnyOrder(str):
    """An order of axes that an attribute may say, other than all `others`."""

    others: frozenset[str]

    @classmethod
    def of(cls, name: str, others: Sequence[str]) -> "AnyOrder":
        """The order that an attribute says, by the `name` of the attribute."""
        order = cls(f"{ANY} {name}")
        order.others = frozenset(others)
        return order


def may_be_one(a: Any, b: Any) -> bool:
    """Whether two different texts may be one order of axes."""
    pairs = (a, b), (b, a)
    return any(isinstance(x, AnyOrder) and y not in x.others for x, y in pairs)


@dataclass(frozen=True, slots=True)
class Layouts:
    """The letters of an image, and the attributes that say the orders of operands and result."""

    letters: str
    data: str
    kernel: str = ""
    out: str = "out_layout"


_LETTERS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}

ON_IMAGES: Mapping[str, Layouts] = {
    **{
        f"nn.conv{n}d{end}": Layouts(_LETTERS[n], "data_layout", "kernel_layout")
        for n in (1, 2, 3)
        for end in ("", "_transpose")
    },
    **{
        f"nn.{name}{n}d": Layouts(_LETTERS[n], "layout")
        for n in (1, 2, 3)
        for name in ("max_pool", "avg_pool", "adaptive_avg_pool")
    },
    "image.resize2d": Layouts("NCHW", "layout", out=""),
}
"""The operators on images."""

_ORDERS = {
    "NCW": ("NCW", "NWC"),
    "NCHW": ("NCHW", "NHWC"),
    "NCDHW": ("NCDHW", "NDHWC"),
}
_KERNELS = {
    "NCW": ("OIW", "WIO", "IOW"),
    "NCHW": ("OIHW", "HWIO", "HWOI", "OHWI", "IOHW"),
    "NCDHW": ("OIDHW", "DHWIO", "IODHW"),
}
_FIRST_KERNEL = {"NCW": "OIW", "NCHW": "OIHW", "NCDHW": "OIDHW"}


def orders(op: Op, attr: AttrParam) -> Sequence[str] | None:
    """The orders that an attribute says: those of frameworks, and any other."""
    layouts = ON_IMAGES.get(op.name)
    if layouts is None or attr.name not in (layouts.data, layouts.kernel, layouts.out):
        return None
    if attr.name == layouts.kernel:
        return (*_KERNELS[layouts.letters], ANY)
    some = (*_ORDERS[layouts.letters], ANY)
    return ("", *some) if attr.name == layouts.out else some


def order_of(letters: str, layout: str) -> tuple[int, ...] | None:
    """The axis of each letter in a layout; ``None`` for any order, which stays as it is."""
    return None if isinstance(layout, AnyOrder) else tuple(map(layout.index, letters))


@dataclass(frozen=True)
class OnImage:
    """The orders of one application, and the text of everything else."""

    data: tuple[int, ...] | None
    kernel: tuple[int, ...] | None
    out: tuple[int, ...] | None
    others: str


def application(op: Op, attrs: Mapping[str, Any]) -> OnImage:
    """How `op` is applied."""
    layouts = ON_IMAGES[op.name]
    names = (layouts.data, layouts.kernel, layouts.out)
    kernel = attrs.get(layouts.kernel, "")
    letters = layouts.letters
    data = attrs[layouts.data]
    out = attrs.get(layouts.out) or data
    others = ",".join(f"{k}={key_of(v)}" for k, v in attrs.items() if k not in names)
    unknown = [x if isinstance(x, AnyOrder) else "" for x in (data, out, kernel)]
    return OnImage(
        order_of(letters, data),
        order_of(_FIRST_KERNEL[letters], kernel) if kernel else None,
        order_of(letters, out),
        f"{op.name} {others} {unknown}",
    )


def canonical(items: Sequence[Any], order: tuple[int, ...] | None) -> tuple[Any, ...]:
    """The `items` of axes in canonical order."""
    return tuple(items) if order is None else tuple(items[k] for k in order)


def laid_out(items: Sequence[Any], order: tuple[int, ...] | None) -> tuple[Any, ...]:
    """The `items` in the order of a layout: the inverse of `canonical`."""
    if order is None:
        return tuple(items)
    placed = dict(zip(order, items, strict=True))
    return tuple(placed[k] for k in range(len(order)))


def signature(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> str:
    """All that the type of a result depends on, in canonical order; raises `Impossible`."""
    layouts, how = ON_IMAGES[op.name], application(op, attrs)
    tensors = [v for v in operands if isinstance(v, Value)]
    if any(len(shape_of(v)) != len(layouts.letters) for v in tensors[:2]):
        raise Impossible
    orders = (how.data, how.kernel, *(None for _ in tensors))
    shapes = [canonical(shape_of(v), o) for v, o in zip(tensors, orders, strict=False)]
    return f"{how.others} {others_in(operands)} {shapes} {[dtype_of(v) for v in tensors]}"


def info_of(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> TensorStructInfo:
    """The struct info of a result: its extents are a function of those in canonical order.

    An image that is resized has those that the operator says, if their places are known.
    """
    layouts, how = ON_IMAGES[op.name], application(op, attrs)
    text = signature(op, operands, attrs)
    name = f"image_{sha256(text.encode()).hexdigest()[:12]}"
    extents = [dims.symbol(f"{name}_{k}") for k in range(len(layouts.letters))]
    image = operands[0]
    if op.name == "image.resize2d" and how.out is not None:
        extents = [*canonical(shape_of(image), how.data)[:2], *operands[1]]
        if len(extents) != len(layouts.letters):
            raise Impossible
    dtype = attrs.get("out_dtype") or dtype_of(image)
    return TensorStructInfo(ShapeExpr(laid_out(extents, how.out)), dtype, len(extents))


def others_in(operands: Sequence[Any]) -> list[str]:
    """The texts of the operands that are no tensors: shapes and numbers."""
    return [key_of(v) for v in operands if not isinstance(v, Value | Tensor)]

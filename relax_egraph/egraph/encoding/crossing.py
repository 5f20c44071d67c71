"""The layout of images that cross from a region of a block to another.

Regions are optimized one by one, so the layout of a value between them is fixed before.  An image
that convolutions make crosses with channels last, as they read it best; each region may move it.
"""

from collections.abc import Collection, Iterable, Sequence

from relax_egraph.egraph.encoding.encode import reads_of
from relax_egraph.egraph.encoding.regions import Region
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Binding, Call, DataflowVar, TupleGetItem, Var, VarBinding
from relax_egraph.ir.op import Op, complete_attrs
from relax_egraph.ir.struct_info import TensorStructInfo

_TO_LAST, _TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)

_REORDERING = frozenset({"permute_dims", "reshape"})
"""Operators whose results have an order of axes of their own."""


def with_channels_last(regions: Sequence[Region], outputs: Collection[Var]) -> tuple[Region, ...]:
    """`regions` of a block with `outputs`, whose images cross with channels last.

    # region 1                                  # region 1
    y = R.nn.conv2d(x, w)                       y = R.nn.conv2d(x, w)
    # region 2                    -->           y_last = R.permute_dims(y, axes=[0, 2, 3, 1])
    z = R.nn.relu(y)                            # region 2
                                                y = R.permute_dims(y_last, axes=[0, 3, 1, 2])
                                                z = R.nn.relu(y)
    """
    images = _images(b for region in regions for b in region.bindings)
    read = [_read_outside(region, images) for region in regions]
    last = {v: _with_channels_last(v) for reads in read for v in reads}
    return tuple(
        _stored(region, reads, last, outputs) for region, reads in zip(regions, read, strict=True)
    )


def _read_outside(region: Region, images: Collection[Var]) -> list[Var]:
    """The images that `region` reads from other regions."""
    own = {b.var for b in region.bindings}
    reads = (v for b in region.bindings for v in reads_of(b) if isinstance(v, Var))
    return [v for v in dict.fromkeys(reads) if v in images and v not in own]


def _with_channels_last(image: Var) -> VarBinding:
    value = call("permute_dims", image, axes=_TO_LAST)
    return VarBinding(DataflowVar(f"{image.name}_last", value.struct_info), value)


def _stored(
    region: Region,
    reads: Sequence[Var],
    last: dict[Var, VarBinding],
    outputs: Collection[Var],
) -> Region:
    """`region` with the images in `last` stored with channels last, as it `reads` some of them."""
    stored = [v for v in region.outputs if v in last]
    before = [VarBinding(v, call("permute_dims", last[v].var, axes=_TO_FIRST)) for v in reads]
    after = [last[v] for v in stored]
    kept = [v for v in region.outputs if v not in last or v in outputs]
    return Region((*before, *region.bindings, *after), (*kept, *(binding.var for binding in after)))


def _images(bindings: Iterable[Binding]) -> set[Var]:
    """The images with channels first that convolutions make, and what is computed of them."""
    images: set[Var] = set()
    for binding in bindings:
        info = binding.var.struct_info
        is_tensor = isinstance(info, TensorStructInfo)
        if _keeps_order(binding, images) and (not is_tensor or info.ndim == 4):
            images.add(binding.var)
    return images


def _keeps_order(binding: Binding, images: Collection[Var]) -> bool:
    """Whether a convolution makes the value, or an operator that keeps the order of `images`."""
    match binding.value:
        case Call(op=Op(name="nn.conv2d") as op, attrs=attrs):
            known = complete_attrs(op, attrs)
            return known["data_layout"] == "NCHW" and not known["out_layout"]
        case Call(op=Op(name=name)) if name in _REORDERING:
            return False
        case Call(op=Op()) | TupleGetItem():
            return any(v in images for v in reads_of(binding))
        case _:
            return False

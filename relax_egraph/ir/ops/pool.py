"""Pools: the greatest element or the mean of each window, in the namespace ``R.nn``.

The attributes of windows are those of the convolutions.  With `ceil_mode` the last window may stick
out of the padded data; windows that would begin behind the last element are left out, as ONNX has
it, and what sticks out is not counted in a mean.
"""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.pooling import adaptive_pool, adaptively_pooled, pool, pooled
from relax_egraph.ir.ops.window import SPATIAL, check_floating
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo


def _define_pool(
    name: str, rank: int, meaning: str, *, counts_padding: bool, needs_float: bool
) -> None:
    """Define the pool `name` over `rank` spatial axes.

    A maximum is NaN if one element is NaN, and the dtype's least value where a window has no
    element.  A mean is over the elements of the window that lie in the data, with
    `count_include_pad` also in its padding; it is 0 where there are none.
    """

    @op("nn", name=name, meaning=meaning)
    def _(
        data: TensorStructInfo,
        *,
        pool_size: tuple[int, ...] = (1,) * rank,
        strides: tuple[int, ...] = (1,) * rank,
        padding: tuple[int, ...] = (0,) * rank,
        dilation: tuple[int, ...] = (1,) * rank,
        ceil_mode: bool = False,
        count_include_pad: bool = counts_padding,
        layout: str = f"NC{SPATIAL[rank]}",
        out_layout: str | None = None,
    ) -> StructInfo:
        subject = f"R.nn.{name} of {data}"
        if needs_float:
            check_floating(subject, data)
        attributes = pool(
            subject,
            rank,
            pool_size=pool_size,
            strides=strides,
            padding=padding,
            dilation=dilation,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            layout=layout,
            out_layout=out_layout,
        )
        return pooled(subject, attributes, data)


def _define_adaptive_pool(rank: int, meaning: str) -> None:
    """Define the mean over windows that cover `rank` spatial axes.

    ``size`` is the result's extent, `output_size`; without it that of the data.  The mean over no
    element is NaN.
    """
    name = f"adaptive_avg_pool{rank}d"

    @op("nn", name=name, meaning=meaning)
    def _(
        data: TensorStructInfo,
        *,
        output_size: tuple[int, ...] | None = None,
        layout: str = f"NC{SPATIAL[rank]}",
        out_layout: str | None = None,
    ) -> StructInfo:
        subject = f"R.nn.{name} of {data}"
        attributes = adaptive_pool(
            subject, rank, output_size=output_size, layout=layout, out_layout=out_layout
        )
        return adaptively_pooled(subject, attributes, data)


_MAXIMUM = {
    1: "``out[n, c, x] = max data[n, c, x · stride + r · dilation - before]`` over ``r``.",
    2: "``out[n, c, y, x]``: `max_pool1d` over two axes.",
    3: "``out[n, c, z, y, x]``: `max_pool1d` over three axes.",
}
_MEAN = {
    1: "``out[n, c, x] = Σ data[n, c, x · stride + r · dilation - before] / count`` over ``r``.",
    2: "``out[n, c, y, x]``: `avg_pool1d` over two axes.",
    3: "``out[n, c, z, y, x]``: `avg_pool1d` over three axes.",
}
_ADAPTIVE_MEAN = {
    1: "``out[n, c, x] = mean data[n, c, ⌊x · W / size⌋ : ⌈(x + 1) · W / size⌉]``.",
    2: "``out[n, c, y, x]``: `adaptive_avg_pool1d` over two axes.",
    3: "``out[n, c, z, y, x]``: `adaptive_avg_pool1d` over three axes.",
}

for _rank, _meaning in _MAXIMUM.items():
    _define_pool(f"max_pool{_rank}d", _rank, _meaning, counts_padding=False, needs_float=False)
for _rank, _meaning in _MEAN.items():  # as in TVM, padding counts by default, except over two axes
    _define_pool(f"avg_pool{_rank}d", _rank, _meaning, counts_padding=_rank != 2, needs_float=True)
for _rank, _meaning in _ADAPTIVE_MEAN.items():
    _define_adaptive_pool(_rank, _meaning)

"""Pools: the greatest element or the mean of each window, in the namespace ``R.nn``.

The attributes of windows are those of the convolutions.  With `ceil_mode` the last window may stick
out of the padded data; windows that would begin behind the last element are left out, as ONNX has
it, and what sticks out is not counted in a mean.
"""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.pooling import (
    adaptive_pool,
    adaptively_pooled,
    pool,
    pooled,
)
from relax_egraph.ir.ops.window import check_floating
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo


@op("nn")
def max_pool1d(
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1,),
    strides: tuple[int, ...] = (1,),
    padding: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, x] = max data[n, c, x · stride + r · dilation - before]`` over ``r``.

    NaN if one is NaN; the dtype's least value where a window has no element.  `count_include_pad`
    says nothing.
    """
    asked = f"R.nn.max_pool1d of {data}"
    how = pool(
        asked,
        1,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return pooled(asked, how, data)


@op("nn")
def max_pool2d(
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1, 1),
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, y, x]``: `max_pool1d` over two axes."""
    asked = f"R.nn.max_pool2d of {data}"
    how = pool(
        asked,
        2,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return pooled(asked, how, data)


@op("nn")
def max_pool3d(
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1, 1, 1),
    strides: tuple[int, ...] = (1, 1, 1),
    padding: tuple[int, ...] = (0, 0, 0),
    dilation: tuple[int, ...] = (1, 1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCDHW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, z, y, x]``: `max_pool1d` over three axes."""
    asked = f"R.nn.max_pool3d of {data}"
    how = pool(
        asked,
        3,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return pooled(asked, how, data)


@op("nn")
def avg_pool1d(
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1,),
    strides: tuple[int, ...] = (1,),
    padding: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, x] = Σ data[n, c, x · stride + r · dilation - before] / count`` over ``r``.

    `count` is of the elements of the window that lie in data, and with `count_include_pad` in its
    padding; 0 where there are none.  Of floating-point tensors.
    """
    asked = f"R.nn.avg_pool1d of {data}"
    check_floating(asked, data)
    how = pool(
        asked,
        1,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return pooled(asked, how, data)


@op("nn")
def avg_pool2d(
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1, 1),
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = False,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, y, x]``: `avg_pool1d` over two axes."""
    asked = f"R.nn.avg_pool2d of {data}"
    check_floating(asked, data)
    how = pool(
        asked,
        2,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return pooled(asked, how, data)


@op("nn")
def avg_pool3d(
    data: TensorStructInfo,
    *,
    pool_size: tuple[int, ...] = (1, 1, 1),
    strides: tuple[int, ...] = (1, 1, 1),
    padding: tuple[int, ...] = (0, 0, 0),
    dilation: tuple[int, ...] = (1, 1, 1),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    layout: str = "NCDHW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, z, y, x]``: `avg_pool1d` over three axes."""
    asked = f"R.nn.avg_pool3d of {data}"
    check_floating(asked, data)
    how = pool(
        asked,
        3,
        pool_size=pool_size,
        strides=strides,
        padding=padding,
        dilation=dilation,
        ceil_mode=ceil_mode,
        count_include_pad=count_include_pad,
        layout=layout,
        out_layout=out_layout,
    )
    return pooled(asked, how, data)


@op("nn")
def adaptive_avg_pool1d(
    data: TensorStructInfo,
    *,
    output_size: tuple[int, ...] | None = None,
    layout: str = "NCW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, x] = mean data[n, c, ⌊x · W / size⌋ : ⌈(x + 1) · W / size⌉]``.

    ``size`` is the result's extent, `output_size`; without it that of data, ``W``.  NaN over
    nothing.
    """
    asked = f"R.nn.adaptive_avg_pool1d of {data}"
    how = adaptive_pool(asked, 1, output_size=output_size, layout=layout, out_layout=out_layout)
    return adaptively_pooled(asked, how, data)


@op("nn")
def adaptive_avg_pool2d(
    data: TensorStructInfo,
    *,
    output_size: tuple[int, ...] | None = None,
    layout: str = "NCHW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, y, x]``: `adaptive_avg_pool1d` over two axes."""
    asked = f"R.nn.adaptive_avg_pool2d of {data}"
    how = adaptive_pool(asked, 2, output_size=output_size, layout=layout, out_layout=out_layout)
    return adaptively_pooled(asked, how, data)


@op("nn")
def adaptive_avg_pool3d(
    data: TensorStructInfo,
    *,
    output_size: tuple[int, ...] | None = None,
    layout: str = "NCDHW",
    out_layout: str | None = None,
) -> StructInfo:
    """``out[n, c, z, y, x]``: `adaptive_avg_pool1d` over three axes."""
    asked = f"R.nn.adaptive_avg_pool3d of {data}"
    how = adaptive_pool(asked, 3, output_size=output_size, layout=layout, out_layout=out_layout)
    return adaptively_pooled(asked, how, data)

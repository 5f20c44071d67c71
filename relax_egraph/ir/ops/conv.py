"""Convolutions and their transposes, in the namespace ``R.nn``.

One value of `strides`, `dilation`, `padding` or `output_padding` is for all axes; `padding` has one
value for each axis, or those before the axes and then those after them.  Layouts are any order of
their letters.  The operands are converted to `out_dtype` before they are multiplied; none, ``""``
and ``"void"`` say that it is their own dtype.
"""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.convolution import convolution, convolved
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo


@op("nn", fusible=True)
def conv1d(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    strides: tuple[int, ...] = (1,),
    padding: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "OIW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, o, x] = Σ weight[o, i, r] · data[n, i, x · stride + r · dilation - before]``.

    The sum is over ``r`` and the channels ``i`` of the group of ``o``; data is 0 outside of itself.
    """
    asked = f"R.nn.conv1d of {data} and {weight}"
    how = convolution(
        asked,
        1,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return convolved(asked, how, data, weight)


@op("nn", fusible=True)
def conv2d(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "OIHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, o, y, x]``: `conv1d` over two axes."""
    asked = f"R.nn.conv2d of {data} and {weight}"
    how = convolution(
        asked,
        2,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return convolved(asked, how, data, weight)


@op("nn", fusible=True)
def conv3d(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    strides: tuple[int, ...] = (1, 1, 1),
    padding: tuple[int, ...] = (0, 0, 0),
    dilation: tuple[int, ...] = (1, 1, 1),
    groups: int = 1,
    data_layout: str = "NCDHW",
    kernel_layout: str = "OIDHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, o, z, y, x]``: `conv1d` over three axes."""
    asked = f"R.nn.conv3d of {data} and {weight}"
    how = convolution(
        asked,
        3,
        strides=strides,
        padding=padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return convolved(asked, how, data, weight)


@op("nn", fusible=True)
def conv1d_transpose(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    strides: tuple[int, ...] = (1,),
    padding: tuple[int, ...] = (0,),
    output_padding: tuple[int, ...] = (0,),
    dilation: tuple[int, ...] = (1,),
    groups: int = 1,
    data_layout: str = "NCW",
    kernel_layout: str = "IOW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, o, x · stride + r · dilation - before] += data[n, i, x] · weight[i, o, r]``.

    The sum is over ``x``, ``r`` and the channels ``i`` of the group of ``o``: the gradient of
    `conv1d` for its data.  The result has `output_padding` elements more at the end.
    """
    asked = f"R.nn.conv1d_transpose of {data} and {weight}"
    how = convolution(
        asked,
        1,
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return convolved(asked, how, data, weight)


@op("nn", fusible=True)
def conv2d_transpose(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    strides: tuple[int, ...] = (1, 1),
    padding: tuple[int, ...] = (0, 0),
    output_padding: tuple[int, ...] = (0, 0),
    dilation: tuple[int, ...] = (1, 1),
    groups: int = 1,
    data_layout: str = "NCHW",
    kernel_layout: str = "IOHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, o, y, x]``: `conv1d_transpose` over two axes."""
    asked = f"R.nn.conv2d_transpose of {data} and {weight}"
    how = convolution(
        asked,
        2,
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return convolved(asked, how, data, weight)


@op("nn", fusible=True)
def conv3d_transpose(
    data: TensorStructInfo,
    weight: TensorStructInfo,
    *,
    strides: tuple[int, ...] = (1, 1, 1),
    padding: tuple[int, ...] = (0, 0, 0),
    output_padding: tuple[int, ...] = (0, 0, 0),
    dilation: tuple[int, ...] = (1, 1, 1),
    groups: int = 1,
    data_layout: str = "NCDHW",
    kernel_layout: str = "IODHW",
    out_layout: str | None = None,
    out_dtype: str | None = None,
) -> StructInfo:
    """``out[n, o, z, y, x]``: `conv1d_transpose` over three axes."""
    asked = f"R.nn.conv3d_transpose of {data} and {weight}"
    how = convolution(
        asked,
        3,
        strides=strides,
        padding=padding,
        output_padding=output_padding,
        dilation=dilation,
        groups=groups,
        data_layout=data_layout,
        kernel_layout=kernel_layout,
        out_layout=out_layout,
        out_dtype=out_dtype,
    )
    return convolved(asked, how, data, weight)

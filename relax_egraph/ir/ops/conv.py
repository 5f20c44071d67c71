"""Convolutions and their transposes, in the namespace ``R.nn``.

One value of `strides`, `dilation`, `padding` or `output_padding` is for all axes; `padding` has one
value for each axis, or those before the axes and then those after them.  Layouts are any order of
their letters.  The operands are converted to `out_dtype` before they are multiplied; none, ``""``
and ``"void"`` say that it is their own dtype.
"""

from relax_egraph.ir.op import op
from relax_egraph.ir.ops.convolution import convolution, convolved
from relax_egraph.ir.ops.window import SPATIAL
from relax_egraph.ir.struct_info import StructInfo, TensorStructInfo


def _define_convolution(rank: int, meaning: str) -> None:
    """Define the convolution over `rank` spatial axes.

    The sum is over the window and the input channels of the output channel's group; outside of the
    data there are zeros.
    """
    name, letters = f"conv{rank}d", SPATIAL[rank]

    @op("nn", name=name, meaning=meaning, fusible=True)
    def _(
        data: TensorStructInfo,
        weight: TensorStructInfo,
        *,
        strides: tuple[int, ...] = (1,) * rank,
        padding: tuple[int, ...] = (0,) * rank,
        dilation: tuple[int, ...] = (1,) * rank,
        groups: int = 1,
        data_layout: str = f"NC{letters}",
        kernel_layout: str = f"OI{letters}",
        out_layout: str | None = None,
        out_dtype: str | None = None,
    ) -> StructInfo:
        subject = f"R.nn.{name} of {data} and {weight}"
        attributes = convolution(
            subject,
            rank,
            strides=strides,
            padding=padding,
            dilation=dilation,
            groups=groups,
            data_layout=data_layout,
            kernel_layout=kernel_layout,
            out_layout=out_layout,
            out_dtype=out_dtype,
        )
        return convolved(subject, attributes, data, weight)


def _define_transposed_convolution(rank: int, meaning: str) -> None:
    """Define the transposed convolution over `rank` spatial axes.

    It is the gradient of the convolution for its data.  The sum is over the positions of the data,
    the window and the input channels of the output channel's group.  The result has
    `output_padding` elements more at the end.
    """
    name, letters = f"conv{rank}d_transpose", SPATIAL[rank]

    @op("nn", name=name, meaning=meaning, fusible=True)
    def _(
        data: TensorStructInfo,
        weight: TensorStructInfo,
        *,
        strides: tuple[int, ...] = (1,) * rank,
        padding: tuple[int, ...] = (0,) * rank,
        output_padding: tuple[int, ...] = (0,) * rank,
        dilation: tuple[int, ...] = (1,) * rank,
        groups: int = 1,
        data_layout: str = f"NC{letters}",
        kernel_layout: str = f"IO{letters}",
        out_layout: str | None = None,
        out_dtype: str | None = None,
    ) -> StructInfo:
        subject = f"R.nn.{name} of {data} and {weight}"
        attributes = convolution(
            subject,
            rank,
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
        return convolved(subject, attributes, data, weight)


_define_convolution(
    1, "``out[n, o, x] = Σ weight[o, i, r] · data[n, i, x · stride + r · dilation - before]``."
)
_define_convolution(2, "``out[n, o, y, x]``: `conv1d` over two axes.")
_define_convolution(3, "``out[n, o, z, y, x]``: `conv1d` over three axes.")
_define_transposed_convolution(
    1, "``out[n, o, x · stride + r · dilation - before] += data[n, i, x] · weight[i, o, r]``."
)
_define_transposed_convolution(2, "``out[n, o, y, x]``: `conv1d_transpose` over two axes.")
_define_transposed_convolution(3, "``out[n, o, z, y, x]``: `conv1d_transpose` over three axes.")

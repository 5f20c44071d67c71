"""The description of a convolution: its operands, and the movement of its windows."""

from collections.abc import Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.lower.schedule.loops import ZERO
from relax_egraph.lower.schedule.stages import Axis, Stage
from relax_egraph.tir.expr import (
    Binary,
    Buffer,
    BufferLoad,
    Imm,
    Select,
    TirExpr,
    TirVar,
    from_dim,
)
from relax_egraph.tir.rewrite import substitute


@dataclass(frozen=True, slots=True)
class Window:
    """The movement of a window along an axis: its `position` in the result, and its taps.

    Tap ``r`` at position ``p`` reads data at ``p · stride + r · dilation - before``, or 0 if that
    is outside `extent`.  In a transposed convolution, which has a negative `dilation`, that place
    is divided by `up`, and the tap reads 0 if the division has a remainder.
    """

    position: Axis
    tap: TirVar | None
    size: Dim
    stride: int
    dilation: int
    before: int
    extent: Dim
    up: int = 1

    def seen(self, position: TirExpr, tap: TirExpr) -> TirExpr:
        """The place in data."""
        return position * self.stride + (tap * self.dilation - self.before)


@dataclass(frozen=True, slots=True)
class Convolution:
    """``stage.buffer[…] = Σ data · weight`` over the channels of a group and the taps.

    `places` are the positions of the batch, the channel and the axes of the `windows` in the
    indices of `data`.  Each of `groups` has `features` features of `channels` channels; it may
    consist of several `joined` groups, whose features do not depend on each other's channels.  The
    batch begins at an `image` of data.
    """

    stage: Stage
    data: Buffer
    places: tuple[int, ...]
    weight: BufferLoad
    batch: Axis
    feature: Axis
    channel: TirVar
    windows: tuple[Window, ...]
    channels: Dim
    features: Dim
    groups: Dim
    joined: int = 1
    image: TirExpr = ZERO

    @property
    def is_transposed(self) -> bool:
        """Whether it is transposed, so that `phases` splits it into plain ones."""
        return any(w.dilation < 0 for w in self.windows)

    @property
    def taps(self) -> tuple[Dim, ...]:
        """The extents of the window."""
        return tuple(w.size for w in self.windows)

    @property
    def depth(self) -> Dim:
        """The number of products in each element of the result."""
        return dims.mul(dims.product(self.taps), self.channels)

    @property
    def positions(self) -> tuple[Axis, ...]:
        """The axes of the result along which the window moves."""
        return tuple(w.position for w in self.windows)

    def weight_at(self, feature: TirExpr, channel: TirExpr, taps: Sequence[TirExpr]) -> TirExpr:
        """An element of the weight, for a `channel` of its group."""
        group_channels = dims.floordiv(self.channels, self.joined)
        group_channel = channel if self.joined == 1 else channel % from_dim(group_channels)
        point: dict[TirVar, TirExpr] = {self.feature.var: feature, self.channel: group_channel}
        for window, tap in zip(self.windows, taps, strict=True):
            if window.tap is not None:
                point[window.tap] = tap
        element = substitute(self.weight, point)
        if self.joined == 1:
            return element
        group = feature // from_dim(dims.floordiv(self.features, self.joined)) % self.joined
        return Select(
            Binary("==", channel // from_dim(group_channels), group), element, Imm(0.0, "float32")
        )

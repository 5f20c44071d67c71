"""Winograd's minimal filters for 3 × 3 windows: their matrices and their errors.

F(m × m, 3 × 3) computes a tile of m × m results from (m + 2) × (m + 2) places of data.  Data and
window are evaluated at m + 1 points and at infinity, multiplied elementwise, and the products are
interpolated.  (Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015.)

The points of F(4, 3) are 0, ±5/8, ±3/2, all exact in binary: errors are a third of those of 0, ±1,
±2 (Alam et al., Winograd Convolution for Deep Neural Networks: Efficient Point Selection, 2022).

The largest errors against float64, relative to the root mean square of the results, for 64 to 512
channels: for normal numbers, for numbers spread over six decades, and beside a single huge number,
relative to that:

                              normal             spread             huge
    definition, a long sum    3e-6 to 1e-5
    F(2, 3)                   1.4e-6 to 3.7e-6   2.6e-6 to 4.2e-6   1e-7
    F(4, 3)                   7e-6 to 1.6e-5     8e-6 to 2.4e-5     5e-7

The definition is exact for windows without the huge number; a filter errs in its whole tile.
"""

from collections.abc import Sequence
from dataclasses import dataclass

Matrix = Sequence[Sequence[float]]

WINDOW = 3
"""The taps along each side."""


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter for tiles of `step` × `step` results, with its `name`.

    `data`, `weight` and `result` are the matrices of their transforms along both axes, with a row
    for each transformed place.  `error` is a bound on the errors met, relative to the root mean
    square of all results.
    """

    name: str
    step: int
    data: Matrix
    weight: Matrix
    result: Matrix
    error: float

    @property
    def side(self) -> int:
        """The places of data along each side of a tile."""
        return self.step + WINDOW - 1

    @property
    def products(self) -> int:
        """The products for each tile and channel."""
        return self.side * self.side


F2 = Filter(
    name="F(2, 3)",
    step=2,
    data=((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1)),
    weight=((1, 0, 0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0, 0, 1)),
    result=((1, 1, 1, 0), (0, 1, -1, -1)),
    error=5e-6,
)
"""16 products in place of 36, no less accurate."""


def _four(a: float, b: float) -> Filter:
    """F(4, 3) with the points 0, ±a, ±b."""
    p, q = a * a, b * b
    at_a, at_b = 1 / (2 * p * (p - q)), 1 / (2 * q * (q - p))
    return Filter(
        name="F(4, 3)",
        step=4,
        data=(
            (p * q, 0, -p - q, 0, 1, 0),
            (0, -a * q, -q, a, 1, 0),
            (0, a * q, -q, -a, 1, 0),
            (0, -b * p, -p, b, 1, 0),
            (0, b * p, -p, -b, 1, 0),
            (0, p * q, 0, -p - q, 0, 1),
        ),
        weight=(
            (1 / (p * q), 0, 0),
            (at_a, a * at_a, p * at_a),
            (at_a, -a * at_a, p * at_a),
            (at_b, b * at_b, q * at_b),
            (at_b, -b * at_b, q * at_b),
            (0, 0, 1),
        ),
        result=(
            (1, 1, 1, 1, 1, 0),
            (0, a, -a, b, -b, 0),
            (0, p, p, q, q, 0),
            (0, a * p, -a * p, b * q, -b * q, 1),
        ),
        error=3e-5,
    )


F4 = _four(5 / 8, 3 / 2)
"""36 products in place of 144."""

APPROXIMATE = {F4.name: F4.error}
"""The filters less accurate than the definition, with their largest errors."""

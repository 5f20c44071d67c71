"""Float formats: the layout of their bits, and the lengths of series for their precision."""

from dataclasses import dataclass

from relax_egraph.lower.emit.module_text import I32, I64, Type


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A float format: the layout of its bits, and constants of the functions on it."""

    integer: Type
    fraction_bits: int
    bias: int
    root_half: int  # the bits of √½
    smallest_normal: float
    ln2_high: float  # ln 2 = high + low; high ends in zeros, so k · high is exact
    ln2_low: float
    exp_range: tuple[float, float]  # exp is 0 below it, inf above it
    exp_series: tuple[float, ...]  # (eʳ - 1 - r) / r², with the least error of eʳ
    log_terms: int

    @property
    def magic(self) -> float:
        """A sum with this number is rounded to an integer, which its low bits then contain."""
        return 1.5 * 2.0**self.fraction_bits

    @property
    def scale_magic(self) -> float:
        """`magic` plus twice the bias: the low bits of a sum are then positive for any exponent."""
        return self.magic + 2 * self.bias

    @property
    def magic_bits(self) -> int:
        """The bits of `magic`."""
        exponent = self.bias + self.fraction_bits
        return (exponent << self.fraction_bits) | 1 << (self.fraction_bits - 1)


SINGLE = FloatFormat(
    integer=I32,
    fraction_bits=23,
    bias=127,
    root_half=0x3F3504F3,
    smallest_normal=2.0**-126,
    ln2_high=0.693145751953125,
    ln2_low=1.42860682030941723212e-6,
    exp_range=(-104.0, 89.0),
    exp_series=(
        *(0.49999993538, 0.16666520772, 0.041668352072),
        *(8.3686986432e-3, 1.381696788e-3),
    ),
    log_terms=4,
)
DOUBLE = FloatFormat(
    integer=I64,
    fraction_bits=52,
    bias=1023,
    root_half=0x3FE6A09E667F3BCD,
    smallest_normal=2.0**-1022,
    ln2_high=0.6931471803691238,
    ln2_low=1.9082149292705877e-10,
    exp_range=(-746.0, 710.0),
    exp_series=(
        *(0.500000000000001059, 0.166666666666664103, 0.041666666666530457),
        *(8.33333333349589404e-3, 1.38888889435568956e-3, 1.98412695033670598e-4),
        *(2.48014931693855999e-5, 2.75575893723083251e-6, 2.76302248710399946e-7),
        2.49990730156017086e-8,
    ),
    log_terms=9,
)


def format_of(type: Type) -> FloatFormat:
    """The format of the lanes of `type`."""
    return SINGLE if type.element == "float" else DOUBLE

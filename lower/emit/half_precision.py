"""The storage types ``float16`` and ``bfloat16``: conversions between their bits and float32.

Rounding is to nearest even; overflow is infinite, NaN stays NaN (without its payload), and
subnormal numbers are exact.  Without a conversion instruction LLVM would call a run-time library
that does not exist here, so integer arithmetic does it.  The conversions of ``avx512bf16`` are not
used: they flush subnormal numbers to 0.
"""

from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F16, F32, I16, I32
from relax_egraph.lower.emit.target import Target

_SIGN, _INFINITY = 0x8000, 0x7F800000


def from_bits(bits: Value, dtype: str) -> Value:
    """The float32 numbers of the `bits` of `dtype` in lanes of ``i16``."""
    f = bits.function
    if dtype == "float16" and _converts(f.module.target):
        return f.convert("fpext", f.convert("bitcast", bits, F16), F32)
    wide = f.convert("zext", bits, I32)
    if dtype == "bfloat16":
        return f.convert("bitcast", wide << 16, F32)
    size = wide & (_SIGN - 1)
    # Read as a float32, the exponent is too small by 112, also for subnormal numbers.
    scaled = f.convert("bitcast", size << 13, F32) * 2.0**112
    finite = f.convert("bitcast", scaled, I32)
    number = f.select(f.compare(">=", size, 0x7C00), finite | _INFINITY, finite)
    return f.convert("bitcast", number | ((wide & _SIGN) << 16), F32)


def to_bits(value: Value, dtype: str) -> Value:
    """The bits of lanes of float32, rounded to `dtype`, in lanes of ``i16``."""
    f = value.function
    if dtype == "float16" and _converts(f.module.target):
        # Without the fence LLVM would merge it with a rounding from float64, into a library call.
        fenced = f.intrinsic("arithmetic.fence", value, flags="")
        return f.convert("bitcast", f.convert("fptrunc", fenced, F16), I16)
    bits = f.convert("bitcast", value, I32)
    size = bits & 0x7FFFFFFF
    sign = f.binary(">>>", bits ^ size, 16)
    rounded = _to_half(size) if dtype == "float16" else _to_bfloat(size)
    return f.convert("trunc", rounded | sign, I16)


def rounded(value: Value, dtype: str) -> Value:
    """Lanes of float32, rounded to `dtype`."""
    return from_bits(to_bits(value, dtype), dtype)


def _converts(target: Target) -> bool:
    return bool(target.features & {"f16c", "avx512f", "neon"})


def _to_bfloat(size: Value) -> Value:
    f = size.function
    up = _round_up(size, 16)
    return f.select(f.compare(">", size, _INFINITY), 0x7FC0, f.binary(">>>", up, 16))


def _to_half(size: Value) -> Value:
    """The bits of a float16 from those of a float32, both without sign."""
    f = size.function
    # The last bit of the sum with ½ is that of a subnormal number: the addition rounds.
    sum_ = f.convert("bitcast", size, F32) + 0.5
    tiny = f.convert("bitcast", sum_, I32) - 0x3F000000
    normal = f.binary(">>>", _round_up(size, 13) - (112 << 23), 13)
    finite = f.select(f.compare("<", size, 113 << 23), tiny, normal)
    beyond = f.select(f.compare(">", size, _INFINITY), f.const(size.type, 0x7E00), 0x7C00)
    return f.select(f.compare(">=", size, 143 << 23), beyond, finite)


def _round_up(size: Value, bits: int) -> Value:
    """`size` plus an increment such that truncating `bits` rounds to nearest even."""
    odd = size.function.binary(">>>", size, bits) & 1
    return size + odd + ((1 << (bits - 1)) - 1)

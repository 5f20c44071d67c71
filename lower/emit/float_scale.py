"""Scaling by powers of two, and its inverse: the exponents of floats on lanes.

AVX-512 has instructions for it; other targets use integer arithmetic on the bits.
"""

from relax_egraph.lower.emit.float_format import FloatFormat, format_of
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.lane_functions import in_pairs, polynomial
from relax_egraph.lower.emit.module_text import I32, Type
from relax_egraph.lower.emit.target import AVX512
from relax_egraph.lower.emit.vector import shuffle

_ROUND_AS_SET = 4
"""The rounding mode of the control register."""

_BELOW_FLOOR = 9
"""The immediate of ``reduce`` for ``x - ⌊x⌋`` without exceptions."""

_ABOVE_FLOOR = (
    *(1.0, 0.6931517124176025, 0.240159273147583),
    *(0.05581866204738617, 0.008991008624434471, 0.0018793134950101376),
)
"""2ˣ on [0, 1), with the least relative error (9e-8) of polynomials exact at both ends."""

_AROUND_WHOLE = (
    *(1.0, 0.6931470036506653, 0.24022242426872253),
    *(0.05550733581185341, 0.009671512059867382, 0.0013264719163998961),
)
"""2ˣ on ±½, with the least relative error (1.1e-7) of polynomials exact at 0."""


def scaled(value: Value, shifted: Value) -> Value:
    """``value · 2ᵏ``, where `shifted` is ``FloatFormat.scale_magic + k`` for an integer ``k``."""
    f, form = value.function, format_of(value.type)
    if _is_register(value):
        exponent = f.binary("-", shifted, form.scale_magic, flags="")
        return _instruction("scalef", value, exponent)
    # Two steps with normal factors, since the result may be subnormal.  Each half of k + 2·bias is
    # the exponent of a factor; the shift drops the other bits.
    bits = f.convert("bitcast", shifted, form.integer)
    half = f.binary(">>>", bits, 1)
    for part in (half, bits - half):
        value = value * f.convert("bitcast", part << form.fraction_bits, value.type.scalar)
    return value


def power_of_two(x: Value) -> Value:
    """``2ˣ`` for a float32 ``x ≤ 0``; 2 ulp, and exact at 0."""
    f, form = x.function, format_of(x.type)
    if _is_register(x):
        rest = _instruction("reduce", x, immediate=_BELOW_FLOOR)
        return _instruction("scalef", polynomial(rest, _ABOVE_FLOOR), x)
    lowest = float(-form.bias - form.fraction_bits)  # 2ˣ is 0 here
    x = f.select(f.compare("<", x, lowest), lowest, x)
    # The result may be subnormal: the factor is lifted to a normal number, and the series lowered.
    lift = form.bias // 2
    magic = form.magic + form.bias + lift
    shifted = f.binary("+", x, magic, flags="")
    rest = x - f.binary("-", shifted, magic, flags="")
    exponent = f.convert("bitcast", shifted, form.integer) << form.fraction_bits
    # Rows of a softmax wait for this chain: it is short, for an operation more.
    lowered = in_pairs(rest, [c * 2.0**-lift for c in _AROUND_WHOLE], 3)
    return lowered * f.convert("bitcast", exponent, x.type.scalar)


def whole_number(shifted: Value, form: FloatFormat) -> Value:
    """The integer ``k`` of ``shifted = FloatFormat.scale_magic + k``."""
    bits = shifted.function.convert("bitcast", shifted, form.integer)
    return bits - (form.magic_bits + 2 * form.bias)


def split(x: Value) -> tuple[Value, Value]:
    """``m`` and ``e`` of ``x = m·2ᵉ`` with ``√½ ≤ m < √2``; `x` is positive and finite."""
    f, form = x.function, format_of(x.type)
    if _is_register(x):
        exponent = _instruction("getexp", x * 0.5**0.5) + 1.0
        return _instruction("scalef", x, 0.0 - exponent), exponent
    tiny = f.compare("<", x, form.smallest_normal)
    lift = form.fraction_bits + 1
    bits = f.convert("bitcast", f.select(tiny, x * 2.0**lift, x), form.integer)
    power = (bits - form.root_half) >> form.fraction_bits
    mantissa = f.convert("bitcast", bits - (power << form.fraction_bits), x.type.scalar)
    added = f.select(tiny, float(lift), f.const(x.type, 0))
    return mantissa, f.convert("sitofp", power, x.type.scalar) - added


def _is_register(value: Value) -> bool:
    """Whether `value` fills one or several AVX-512 registers."""
    type = value.type
    return value.function.module.target.features >= AVX512 and type.bits * type.lanes % 512 == 0


def _instruction(name: str, *args: Value, immediate: int | None = None) -> Value:
    """The AVX-512 instruction `name` on all lanes."""
    f, type = args[0].function, args[0].type
    if type.bits * type.lanes > 512:
        half = type.lanes // 2
        parts = (range(half), range(half, type.lanes))
        low, high = (
            _instruction(name, *(shuffle(a, a, part) for a in args), immediate=immediate)
            for part in parts
        )
        return shuffle(low, high, range(type.lanes))
    suffix = "ps" if type.element == "float" else "pd"
    mask = f.const(Type(f"i{type.lanes}"), -1)
    rounding = f.const(I32, _ROUND_AS_SET)
    immediates = () if immediate is None else (f.const(I32, immediate),)
    operands = (*args, *immediates, f.const(type, 0), mask, rounding)
    return f.call_value(f"llvm.x86.avx512.mask.{name}.{suffix}.512", type, *operands)

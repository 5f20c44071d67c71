"""The machine code of each scalar float function, by its name in `tir.functions`."""

from collections.abc import Callable, Mapping
from math import inf

from relax_egraph.lower.emit import vector_hyperbolic, vector_math, vector_trigonometry
from relax_egraph.lower.emit.instructions import Value

Code = Callable[..., Value]


def _instruction(name: str) -> Code:
    """The LLVM intrinsic `name`, which is an instruction or a short expansion."""

    def apply(*args: Value) -> Value:
        return args[0].function.intrinsic(name, *args)

    return apply


def _fma(a: Value, b: Value, c: Value) -> Value:
    return a.function.fma(a, b, c)


def _fmod(a: Value, b: Value) -> Value:
    return a.function.binary("frem", a, b, flags="")


def _is_finite(x: Value) -> Value:
    f = x.function
    return f.compare("<", f.intrinsic("fabs", x), inf)


def _is_infinite(x: Value) -> Value:
    f = x.function
    return f.compare("==", f.intrinsic("fabs", x), inf)


def _is_nan(x: Value) -> Value:
    return x.function.compare("!=", x, x)


FLOATS: Mapping[str, Code] = {
    "abs": _instruction("fabs"),
    "ceil": _instruction("ceil"),
    "copysign": _instruction("copysign"),
    "erf": vector_math.erf,
    "exp": vector_math.exp,
    "exp_nonpositive": vector_math.exp_nonpositive,
    "expm1": vector_math.expm1,
    "floor": _instruction("floor"),
    "fma": _fma,
    "fmod": _fmod,
    "isfinite": _is_finite,
    "isinf": _is_infinite,
    "isnan": _is_nan,
    "log": vector_math.log,
    "log1p": vector_math.log1p,
    "nearbyint": _instruction("nearbyint"),
    "pow": vector_math.power,
    "round": _instruction("nearbyint"),
    "rsqrt": vector_math.rsqrt,
    "sigmoid": vector_math.sigmoid,
    "sqrt": _instruction("sqrt"),
    "tanh": vector_math.tanh,
    "trunc": _instruction("trunc"),
    **vector_trigonometry.FUNCTIONS,
    **vector_hyperbolic.FUNCTIONS,
}
"""Each function takes the number of operands in `INTRINSICS`, all of one type."""

"""Scalar expressions to instructions, on one lane or several.

The result of an ``int64`` expression is an `Index`, that of others a value.  A value that does not
depend on the lane stays scalar until it is combined with a vector.
"""

from relax_egraph.ir.dtypes import computed, is_float, is_signed, is_stored
from relax_egraph.lower.codegen.index import Index, Ramp, combine, divided, materialize, narrowed
from relax_egraph.lower.codegen.memory import load
from relax_egraph.lower.codegen.postorder import postorder
from relax_egraph.lower.codegen.scope import REGISTER_TYPES, Scope
from relax_egraph.lower.emit import (
    float_conversion,
    half_precision,
    integer_math,
    vector_math,
)
from relax_egraph.lower.emit.float_functions import FLOATS
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F64, I1
from relax_egraph.tir.expr import (
    COMPARISONS,
    Binary,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.rewrite import operands

WITHOUT_CONTRACTION = "nsz"
"""The fast-math flags of an operation that is not contracted with its operands."""


def value(scope: Scope, expr: TirExpr) -> Value:
    """`expr` in a register: a scalar if it is the same in all lanes, else a vector."""
    return materialize(scope.frame.f, evaluate(scope, expr), scope.lanes)


def filled(scope: Scope, expr: TirExpr) -> Value:
    """`expr` in every lane."""
    return scope.frame.f.splat(value(scope, expr), scope.lanes)


def evaluate(scope: Scope, expr: TirExpr) -> Index:
    """The index or value of `expr`; shared subexpressions are computed once for each statement."""
    for node in postorder(expr, scope.known, _eager_operands):
        scope.known[id(node)] = (node, _evaluate(scope, node))
    return scope.known[id(expr)][1]


def _eager_operands(expr: TirExpr) -> tuple[TirExpr, ...]:
    """The operands to evaluate before `expr`: a lazy select evaluates its sides on condition."""
    if isinstance(expr, Select) and expr.lazy:
        return (expr.condition,)
    return operands(expr)


def _evaluate(scope: Scope, expr: TirExpr) -> Index:
    f = scope.frame.f
    match expr:
        case TirVar():
            return scope.variables[expr]
        case DimSymbol(name=name):
            return scope.frame.symbols[name]
        case Imm(value=number, dtype="int64"):
            return int(number)
        case Imm(value=number, dtype=dtype):
            return f.const(REGISTER_TYPES[dtype], number)
        case Binary():
            return _binary(scope, expr)
        case Not(a=a):
            return value(scope, a) ^ 1
        case Cast(dtype=dtype, value=operand):
            source = evaluate(scope, operand)
            if operand.dtype == dtype:
                return source
            if isinstance(source, Ramp) and dtype == "int32":
                return narrowed(f, source, scope.lanes)
            return cast(materialize(f, source, scope.lanes), operand.dtype, dtype)
        case Select(condition=condition, a=a, b=b, lazy=True):
            on = value(scope, condition)
            return f.select(on, value(scope.guarded(on), a), value(scope.guarded(on ^ 1), b))
        case Select(condition=condition, a=a, b=b):
            return f.select(value(scope, condition), value(scope, a), value(scope, b))
        case Intrinsic(name=name, args=args):
            return _intrinsic(name, args[0].dtype, f.match(*(value(scope, a) for a in args)))
        case BufferLoad(buffer=buffer, indices=indices):
            return load(scope, buffer, [evaluate(scope, i) for i in indices])


def _binary(scope: Scope, expr: Binary) -> Index:
    f, kind, dtype = scope.frame.f, expr.kind, expr.a.dtype
    if dtype == "int64" and kind in ("+", "-", "*"):
        return combine(f, kind, evaluate(scope, expr.a), evaluate(scope, expr.b), scope.lanes)
    if kind == "//" and isinstance(expr.b, Imm) and expr.b.value > 1:
        dividend = evaluate(scope, expr.a)
        if isinstance(dividend, Ramp):
            quotient = divided(f, dividend, int(expr.b.value), scope.lanes)
            if quotient is not None:
                return quotient
    a, b = value(scope, expr.a), value(scope, expr.b)
    if kind in COMPARISONS:
        return f.compare(kind, a, b, signed=is_signed(dtype))
    if kind in ("//", "%") and dtype == "int64" and isinstance(expr.b, Imm) and expr.b.value > 0:
        return integer_math.divide_by_constant(a, int(expr.b.value))[0 if kind == "//" else 1]
    return arithmetic(kind, dtype, a, b)


def arithmetic(kind: str, dtype: str, a: Value, b: Value) -> Value:
    """``a <kind> b`` of values of `dtype`, for all kinds but comparisons.

    For ``bool``, ``+`` and ``max`` are *or*, ``*`` and ``min`` are *and*.  A float difference is
    not contracted with its operands: ``x * y - max(x * y)`` is never positive, so its ``exp`` is at
    most 1.
    """
    f = a.function
    match kind:
        case "and":
            return a & b
        case "or":
            return a | b
        case "//" | "%" if is_float(dtype):
            divide = vector_math.floor_divide if kind == "//" else vector_math.floor_remainder
            return divide(*f.match(a, b))
        case "//" | "%":
            divide = integer_math.floor_divide if kind == "//" else integer_math.floor_remainder
            return divide(a, b, signed=is_signed(dtype))
        case _ if dtype == "bool":
            return a | b if kind in ("+", "max") else a & b
        case "-" if is_float(dtype):
            return f.binary(kind, a, b, flags=WITHOUT_CONTRACTION)
        case "min" | "max" if not is_signed(dtype):
            return f.intrinsic(f"u{kind}", *f.match(a, b))
        case "min":
            return f.minimum(a, b)
        case "max":
            return f.maximum(a, b)
        case _:
            return f.binary(kind, a, b)


def _intrinsic(name: str, dtype: str, args: tuple[Value, ...]) -> Value:
    if is_float(dtype):
        return FLOATS[name](*args)
    first, *others = args
    match name:
        case "fma":
            return arithmetic("+", dtype, arithmetic("*", dtype, first, others[0]), others[1])
        case "abs" if is_signed(dtype):
            f, type = first.function, first.type
            return f.call_value(f"llvm.abs.{type.suffix}", type, first, f.const(I1, 0))
        case "abs":
            return first
        case "bitwise_not":
            return first ^ -1
        case "bitwise_and" | "bitwise_or" | "bitwise_xor":
            kind = {"bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^"}[name]
            return first.function.binary(kind, first, others[0])
        case "shift_left":
            return integer_math.shift_left(first, others[0])
        case "shift_right":
            return integer_math.shift_right(first, others[0], signed=is_signed(dtype))
        case _:
            return integer_math.remainder(first, others[0], signed=is_signed(dtype))


def cast(operand: Value, source: str, dtype: str) -> Value:
    """The conversion of `operand` from dtype `source` to `dtype`, as in `ir.dtypes.converted`."""
    if is_stored(dtype):
        return half_precision.rounded(cast(operand, source, computed(dtype)), dtype)
    f, element = operand.function, REGISTER_TYPES[dtype]
    from_float, to_float = is_float(source), is_float(dtype)
    if dtype == "bool":
        return f.compare("!=", operand, 0.0 if from_float else 0)
    if from_float and to_float:
        return f.convert("fpext" if element == F64 else "fptrunc", operand, element)
    if from_float:
        return float_conversion.to_integer(operand, element, signed=is_signed(dtype))
    if to_float:
        return f.convert("sitofp" if is_signed(source) else "uitofp", operand, element)
    if element.bits < operand.type.bits:
        return f.convert("trunc", operand, element)
    return f.convert("sext" if is_signed(source) else "zext", operand, element)

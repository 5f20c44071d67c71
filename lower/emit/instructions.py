"""LLVM instructions and loops, and their operands, which support Python's operators.

A scalar operand is broadcast to the lanes of a vector operand.  Float arithmetic has the flags
``contract nsz``, so ``a * b + c`` may round once; `flags` overrides them.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from relax_egraph.lower.emit.module_text import I1, I32, I64, PTR, Module, Type, literal

FLAGS = "contract nsz"

_FLOAT = {"+": "fadd", "-": "fsub", "*": "fmul", "/": "fdiv", "frem": "frem"}
_INTEGER = {
    **{"+": "add", "-": "sub", "*": "mul", "&": "and", "|": "or", "^": "xor"},
    **{"<<": "shl", ">>": "ashr", ">>>": "lshr", "sdiv": "sdiv", "srem": "srem"},
    **{"udiv": "udiv", "urem": "urem"},
}
_FLOAT_ORDER = {
    **{"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"},
    "unordered": "uno",
}
_SIGNED_ORDER = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}
_UNSIGNED_ORDER = {"<": "ult", "<=": "ule", ">": "ugt", ">=": "uge", "==": "eq", "!=": "ne"}


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An operand of `function`: the name of a register, or a literal."""

    function: "Instructions"
    type: Type
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"

    def __add__(self, other: "Operand") -> "Value":
        return self.function.binary("+", self, other)

    def __radd__(self, other: "Operand") -> "Value":
        return self.function.binary("+", other, self)

    def __sub__(self, other: "Operand") -> "Value":
        return self.function.binary("-", self, other)

    def __rsub__(self, other: "Operand") -> "Value":
        return self.function.binary("-", other, self)

    def __mul__(self, other: "Operand") -> "Value":
        return self.function.binary("*", self, other)

    def __rmul__(self, other: "Operand") -> "Value":
        return self.function.binary("*", other, self)

    def __truediv__(self, other: "Operand") -> "Value":
        return self.function.binary("/", self, other)

    def __rtruediv__(self, other: "Operand") -> "Value":
        return self.function.binary("/", other, self)

    def __and__(self, other: "Operand") -> "Value":
        return self.function.binary("&", self, other)

    def __or__(self, other: "Operand") -> "Value":
        return self.function.binary("|", self, other)

    def __xor__(self, other: "Operand") -> "Value":
        return self.function.binary("^", self, other)

    def __lshift__(self, other: "Operand") -> "Value":
        return self.function.binary("<<", self, other)

    def __rshift__(self, other: "Operand") -> "Value":
        return self.function.binary(">>", self, other)


Operand = Value | int | float
"""Operands of arithmetic: a number becomes a literal of the other side's type."""


@dataclass(slots=True)
class Loop:
    """A loop under construction: its index, and the values carried between iterations."""

    index: Value
    values: tuple[Value, ...]
    following: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()

    def carry(self, *values: Value) -> None:
        """Pass `values` to the next iteration; after the loop they are its `results`."""
        self.following = values


class Instructions:
    """The instructions of a function of `module`: arithmetic, calls, memory and loops.

    `emitter.Function` adds branches and the function's definition.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._block = "entry"
        self._count = 0
        self._entry: list[str] = []
        self._lines: list[str] = []

    # --- literals and arithmetic ------------------------------------------------------

    def const(self, type: Type, number: float) -> Value:
        """`number` as a literal in every lane of `type`."""
        return Value(self, type, literal(type, number))

    def index(self, value: Operand) -> Value:
        """`value` as an ``i64``: a number becomes a literal."""
        return value if isinstance(value, Value) else self.const(I64, value)

    def splat(self, value: Value, lanes: int) -> Value:
        """`value` in all `lanes`; a vector is unchanged."""
        if lanes == 1 or value.type.lanes > 1:
            return value
        type = value.type.of(lanes)
        if not value.text.startswith("%"):
            return Value(self, type, f"splat ({value})")
        single = self.emit(type, f"insertelement {type} poison, {value}, i64 0")
        return self.emit(
            type, f"shufflevector {single}, {type} poison, <{lanes} x i32> zeroinitializer"
        )

    def match(self, *operands: Operand) -> tuple[Value, ...]:
        """`operands` as values of one type: numbers become literals, scalars are broadcast."""
        values = [o for o in operands if isinstance(o, Value)]
        lanes = max(v.type.lanes for v in values)
        type = values[0].type.of(lanes)
        return tuple(
            self.splat(o, lanes) if isinstance(o, Value) else self.const(type, o) for o in operands
        )

    def binary(self, kind: str, a: Operand, b: Operand, flags: str = FLAGS) -> Value:
        """``a <kind> b``.

        Floats have ``+ - * / frem``; integers have ``+ - * & | ^ << >> >>>``, which wrap, and
        ``sdiv srem udiv urem``, which trap if the divisor is 0.
        """
        a, b = self.match(a, b)
        if a.type.is_float:
            operation = f"{_FLOAT[kind]} {flags} " if flags else f"{_FLOAT[kind]} "
        else:
            operation = f"{_INTEGER[kind]} "
        return self.emit(a.type, f"{operation}{a}, {b.text}")

    def compare(self, kind: str, a: Operand, b: Operand, *, signed: bool = True) -> Value:
        """``a <kind> b`` as ``i1``; comparisons with NaN are false except ``!=``.

        Floats are ``unordered`` if one of them is NaN.
        """
        a, b = self.match(a, b)
        if a.type.is_float:
            operation = f"fcmp {_FLOAT_ORDER[kind]}"
        else:
            operation = f"icmp {(_SIGNED_ORDER if signed else _UNSIGNED_ORDER)[kind]}"
        return self.emit(a.type.with_element(I1), f"{operation} {a}, {b.text}")

    def select(self, condition: Value, a: Operand, b: Operand) -> Value:
        """``a if condition else b``, lane by lane."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            raise TypeError("select of two numbers: needs a value to tell the type")
        a, b = self.match(a, b)
        lanes = max(condition.type.lanes, a.type.lanes)
        a, b = self.splat(a, lanes), self.splat(b, lanes)
        return self.emit(a.type, f"select {condition}, {a}, {b}")

    def convert(self, operation: str, value: Value, element: Type) -> Value:
        """LLVM's conversion `operation` (``sitofp``, ``bitcast``, …) to lanes of `element`."""
        type = value.type.with_element(element)
        return value if type == value.type else self.emit(type, f"{operation} {value} to {type}")

    def fma(self, a: Operand, b: Operand, c: Operand) -> Value:
        """``a · b + c``, rounded once if the target has FMA, else twice."""
        a, b, c = self.match(a, b, c)
        return self.intrinsic("fma" if self.module.target.has_fma else "fmuladd", a, b, c)

    def maximum(self, a: Operand, b: Operand) -> Value:
        """The larger of two floats (NaN if either is NaN) or of two signed integers."""
        a, b = self.match(a, b)
        return self.intrinsic("maximum" if a.type.is_float else "smax", a, b)

    def minimum(self, a: Operand, b: Operand) -> Value:
        """The smaller of two floats (NaN if either is NaN) or of two signed integers."""
        a, b = self.match(a, b)
        return self.intrinsic("minimum" if a.type.is_float else "smin", a, b)

    def intrinsic(self, name: str, *args: Value, flags: str = FLAGS) -> Value:
        """The intrinsic ``llvm.<name>``, overloaded on the type of `args` and the result."""
        type = args[0].type
        return self.call_value(
            f"llvm.{name}.{type.suffix}", type, *args, flags=flags if type.is_float else ""
        )

    # --- calls ------------------------------------------------------------------------

    def call(self, name: str, *args: Value) -> None:
        """Call ``void @name(args)``."""
        self.module.declare(name, None, [a.type for a in args])
        self.line(f"call void @{name}({', '.join(map(str, args))})")

    def call_value(self, name: str, result: Type, *args: Value, flags: str = "") -> Value:
        """The value of ``@name(args)``."""
        self.module.declare(name, result, [a.type for a in args])
        prefix = f"call {flags} " if flags else "call "
        return self.emit(result, f"{prefix}{result} @{name}({', '.join(map(str, args))})")

    def call_pointer(self, pointer: Value, *args: Value) -> None:
        """Call the function at `pointer`, which returns nothing."""
        self.line(f"call void {pointer.text}({', '.join(map(str, args))})")

    def call_kernel(self, pointer: Value, *args: Value) -> Value:
        """Call the kernel at `pointer`; returns its ``i32``."""
        return self.emit(I32, f"call i32 {pointer.text}({', '.join(map(str, args))})")

    # --- memory -----------------------------------------------------------------------

    def address(self, pointer: Value, index: Operand, element: Type) -> Value:
        """The address of element `index` of the array at `pointer`."""
        at = self.index(index)
        if at.text == "0":
            return pointer
        return self.emit(PTR, f"getelementptr {element.scalar}, {pointer}, {at}")

    def load(self, pointer: Value, type: Type) -> Value:
        """Load from `pointer`, which is aligned to an element at least."""
        return self.emit(type, f"load {type}, {pointer}, align {_alignment(type)}")

    def store(self, value: Value, pointer: Value, *, past_caches: bool = False) -> None:
        """Store `value` at `pointer`, which is aligned to an element at least.

        For `past_caches`, a non-temporal store, it is aligned to the whole of `value`.
        """
        size = _alignment(value.type)
        if past_caches:
            whole = size * value.type.lanes
            self.line(f"store {value}, {pointer}, align {whole}, !nontemporal !{{i32 1}}")
        else:
            self.line(f"store {value}, {pointer}, align {size}")

    def allocate(self, element: Type, count: int) -> Value:
        """Stack memory for `count` elements, aligned to 64 bytes, allocated at function entry."""
        name = self._name()
        self._entry.append(f"  {name} = alloca [{count} x {element.scalar}], align 64")
        return Value(self, PTR, name)

    def prefetch(self, pointer: Value) -> None:
        """Prefetch the cache line at `pointer`, which may be an invalid address."""
        read, near, data = self.const(I32, 0), self.const(I32, 3), self.const(I32, 1)
        self.call("llvm.prefetch.p0", pointer, read, near, data)

    # --- loops ------------------------------------------------------------------------

    @contextmanager
    def loop(
        self, start: Operand, stop: Operand, step: Operand = 1, carry: Sequence[Value] = ()
    ) -> Generator[Loop]:
        """``for index in range(start, stop, step)``, `step` positive, with carried values.

        The body calls ``loop.carry(…)`` if there are carried values; `results` are set after the
        loop.
        """
        begin, end_, by = (self.index(bound) for bound in (start, stop, step))
        before, head, end = self._block, self._label(), self._label()
        self._branch(self.compare("<", begin, end_), head, end)
        self._open(head)
        slot = len(self._lines)
        index = Value(self, I64, self._name())
        values = tuple(Value(self, v.type, self._name()) for v in carry)
        loop = Loop(index, values)

        yield loop

        following = self.emit(I64, f"add nsw {index}, {by.text}")
        latch = self._block
        self._branch(self.compare("<", following, end_), head, end)
        if len(loop.following) != len(values):
            raise ValueError(f"loop carries {len(loop.following)} values, needs {len(values)}")
        pairs = [(index, begin, following), *zip(values, carry, loop.following, strict=True)]
        self._lines[slot:slot] = [
            f"  {v.text} = phi {v.type} [ {a.text}, %{before} ], [ {b.text}, %{latch} ]"
            for v, a, b in pairs
        ]
        self._open(end)
        loop.results = tuple(
            self.emit(a.type, f"phi {a.type} [ {a.text}, %{before} ], [ {b.text}, %{latch} ]")
            for _, a, b in pairs[1:]
        )

    # --- text -------------------------------------------------------------------------

    def emit(self, type: Type, instruction: str) -> Value:
        """Write an instruction with a result of `type`."""
        name = self._name()
        self._lines.append(f"  {name} = {instruction}")
        return Value(self, type, name)

    def line(self, instruction: str) -> None:
        """Write an instruction without a result."""
        self._lines.append(f"  {instruction}")

    def _name(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _label(self) -> str:
        self._count += 1
        return f"b{self._count}"

    def _open(self, label: str) -> None:
        self._lines.append(f"{label}:")
        self._block = label

    def _branch(self, condition: Value, yes: str, no: str) -> None:
        self.line(f"br {condition}, label %{yes}, label %{no}")


def _alignment(type: Type) -> int:
    return max(1, type.bits // 8)

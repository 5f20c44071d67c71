"""Dimensions computed at run time, by compiling their texts once.

A text is Python arithmetic over integers and slots of the shape heap: ``@0 * 4``,
``min(@0, @1) // 2``.  Everything else is refused, so texts from files are safe to compile.
"""

import ast
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from relax_egraph.errors import ExecutableError, RunError
from relax_egraph.ir.form import EXTREMES, SIGNS, Algebra, Form, fold, read
from relax_egraph.ir.syntax import parsed_expression

Heap: TypeAlias = list[int]
"""The dimensions of one call of a function; a slot is written before it is read."""

LIMIT = 1 << 1024
"""The bound of dimensions in a heap: no code can make them grow without end."""

MAX_TEXT = 10_000
"""The most characters of a text."""

_ATOM = re.compile(r"@?(0|[1-9]\d{0,17})", re.ASCII)
_SLOT = re.compile(r"@(\d+)", re.ASCII)
_CALLS = {"min": min, "max": max}


def compile_dim(text: str) -> Callable[[Heap], int]:
    """The function that evaluates `text`; raises `ExecutableError` if it is not a dimension.

    The function raises `RunError` for a division by zero and for a slot outside of the heap.
    """
    evaluate: Callable[[Heap], int] = _compile(_checked(text))

    def dim(heap: Heap) -> int:
        try:
            return evaluate(heap)
        except (ZeroDivisionError, IndexError) as error:
            raise _failure(text, heap, error) from None

    return dim


def compile_shape(dims: Sequence[str]) -> Callable[[Heap], tuple[int, ...]]:
    """The function that evaluates all of `dims`; it fails like those of `compile_dim`."""
    evaluate = _compile(f"({''.join(f'({_checked(d)}),' for d in dims)})")

    def shape(heap: Heap) -> tuple[int, ...]:
        try:
            return evaluate(heap)
        except (ZeroDivisionError, IndexError):
            return tuple(compile_dim(d)(heap) for d in dims)

    return shape


def compile_stores(slots: Sequence[int], texts: Sequence[str]) -> Callable[[Heap], None]:
    """The function that stores the value of each text into its slot, in order.

    Common subexpressions are computed once.  It raises `RunError` like those of `compile_dim`, and
    for a value beyond `LIMIT`.
    """
    store = _compile_stores(slots, texts)

    def run(heap: Heap) -> None:
        try:
            store(heap)
        except (ZeroDivisionError, IndexError, OverflowError):
            for slot, text in zip(slots, texts, strict=True):
                value = compile_dim(text)(heap)
                if slot >= len(heap):
                    raise _no_slot(slot, heap) from None
                heap[slot] = within_limit(f"the dimension {text}", value)

    return run


def within_limit(where: str, value: int) -> int:
    """`value`; raises `RunError` unless it is within `LIMIT`."""
    if not -LIMIT < value < LIMIT:
        raise RunError(f"{where} has {value.bit_length()} bits")
    return value


def parse_dim(text: str) -> Form:
    """The form of `text`, with slots as symbols; raises `ExecutableError` for other texts."""
    return _parse(text, _source(text))


def _source(text: str) -> str:
    """`text` as Python over ``heap``."""
    return _SLOT.sub(r"heap[\1]", text)


def _parse(text: str, source: str) -> Form:
    try:
        if len(source) <= MAX_TEXT:
            return read(parsed_expression(source), _symbol, EXTREMES)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise ExecutableError(f"section code: `{text[:60]}` is no dimension")


def _symbol(node: ast.expr) -> str:
    """``@3`` of ``heap[3]``."""
    match node:
        case ast.Subscript(value=ast.Name(id="heap"), slice=ast.Constant(value=slot)):
            if type(slot) is int:
                return f"@{slot}"
        case _:
            pass
    raise ValueError(ast.unparse(node))


def slot_of(text: str) -> int | None:
    """``3`` of ``"@3"``; ``None`` of anything else."""
    slot = _SLOT.fullmatch(text)
    return int(slot[1]) if slot else None


def _checked(text: str) -> str:
    """`text` as Python source over ``heap``, after a check of every node."""
    source = _source(text)
    if not _ATOM.fullmatch(text):  # most are
        _parse(text, source)
    return source


def _compile(source: str) -> Callable[[Heap], Any]:
    try:
        return eval(f"lambda heap: ({source})", {"__builtins__": {}, **_CALLS})
    except (SyntaxError, RecursionError, MemoryError):  # a comment, or too deep once wrapped
        raise ExecutableError(f"section code: `{source[:60]}` is no dimension") from None


class _Straight:
    """Straight-line code with a local variable for each distinct subexpression."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, str] = {}
        self._stored: dict[str, str] = {}
        operators = {sign: partial(self._infix, sign) for sign in SIGNS.values()}
        calls = {name: partial(self._call, name) for name in EXTREMES.values()}
        self._algebra = Algebra(str, self._slot, {"neg": self._negative, **operators, **calls})

    def store(self, slot: int, form: Form) -> None:
        """Store the value of `form` into `slot`."""
        value = fold(form, self._algebra)
        self.lines.append(f"if not -LIMIT < {value} < LIMIT: raise OverflowError")
        self.lines.append(f"heap[{slot}] = {value}")
        self._stored[f"@{slot}"] = value

    def _slot(self, symbol: str) -> str:
        return self._stored.get(symbol) or self._variable(f"heap[{symbol[1:]}]")

    def _negative(self, a: str) -> str:
        return self._variable(f"-{a}")

    def _infix(self, sign: str, *operands: str) -> str:
        return self._variable(f" {sign} ".join(operands))

    def _call(self, name: str, *operands: str) -> str:
        return self._variable(f"{name}({', '.join(operands)})")

    def _variable(self, source: str) -> str:
        if source not in self._names:
            self._names[source] = f"t{len(self._names)}"
            self.lines.append(f"{self._names[source]} = {source}")
        return self._names[source]


def _compile_stores(slots: Sequence[int], texts: Sequence[str]) -> Callable[[Heap], None]:
    code = _Straight()
    for slot, text in zip(slots, texts, strict=True):
        form = parse_dim(text)
        try:
            code.store(slot, form)
        except RecursionError:
            raise ExecutableError(f"section code: `{text[:60]}` is no dimension") from None
    names = {"__builtins__": {}, "OverflowError": OverflowError, "LIMIT": LIMIT, **_CALLS}
    exec("\n    ".join(["def store(heap):", *code.lines, "return"]), names)
    return cast(Callable[[Heap], None], names["store"])


def _failure(text: str, heap: Heap, error: Exception) -> RunError:
    """The `RunError` for an `error` in the evaluation of `text`."""
    if isinstance(error, ZeroDivisionError):
        return RunError(f"the dimension {_with_values(text, heap)} divides by zero")
    return _no_slot(next(s for s in map(int, _SLOT.findall(text)) if s >= len(heap)), heap)


def _with_values(text: str, heap: Heap) -> str:
    """`text`, with the values of the slots."""
    return _SLOT.sub(lambda m: str(heap[int(m[1])]), text)


def _no_slot(slot: int, heap: Heap) -> RunError:
    return RunError(f"slot {slot} of a shape heap of {len(heap)} slots")

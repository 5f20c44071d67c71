"""Dimensions that code computes from texts, as numbers of a native program."""

import ast
from collections.abc import Mapping
from functools import reduce
from typing import Any

from relax_egraph.vm.dim_program import parse_dim
from relax_egraph.vm.native.numbers import Number, Numbers, literal
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.tracer import Tracer
from relax_egraph.vm.native.values import Heap


def evaluate(t: Tracer, heap: Heap, text: str) -> Number:
    """The dimension `text` over what is in `heap`; raises `Refused` if it has no such form."""
    numbers = t.trace.numbers

    def number(node: ast.expr) -> Number:
        match node:
            case ast.Constant(value=value):
                return literal(value)
            case ast.Subscript(slice=ast.Constant(value=int(slot))):
                return t.load(heap, slot)
            case ast.UnaryOp(operand=operand):
                return numbers.multiply(number(operand), -1)
            case ast.BinOp(left=left, op=op, right=right):
                return _OPERATORS[type(op)](numbers, number(left), number(right))
            case ast.Call(func=ast.Name(id=name), args=args):
                pick = numbers.minimum if name == "min" else numbers.maximum
                return reduce(pick, map(number, args))
            case _:
                raise Refused(f"the dimension {text}")

    return number(parse_dim(text))


_OPERATORS: Mapping[type[ast.operator], Any] = {
    ast.Add: Numbers.add,
    ast.Sub: Numbers.subtract,
    ast.Mult: Numbers.multiply,
    ast.FloorDiv: Numbers.floordiv,
    ast.Mod: Numbers.mod,
}

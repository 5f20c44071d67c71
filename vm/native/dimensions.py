"""Translates texts of dimensions to numbers of a native program."""

from functools import partial

from relax_egraph.ir.form import Algebra, fold, leftward
from relax_egraph.vm.dim_program import parse_dim
from relax_egraph.vm.native.numbers import Number, literal
from relax_egraph.vm.native.tracer import Tracer
from relax_egraph.vm.native.values import Heap


def evaluate(t: Tracer, heap: Heap, text: str) -> Number:
    """The dimension `text` over the slots of `heap`; raises `Refused` if it has no native form."""
    numbers = t.trace.numbers
    algebra: Algebra[Number] = Algebra(
        literal,
        lambda slot: t.load(heap, int(slot[1:])),
        {
            "neg": partial(numbers.multiply, -1),
            "+": numbers.add,
            "-": numbers.subtract,
            "*": leftward(numbers.multiply),
            "//": numbers.floordiv,
            "%": numbers.mod,
            "min": leftward(numbers.minimum),
            "max": leftward(numbers.maximum),
        },
    )
    return fold(parse_dim(text), algebra)

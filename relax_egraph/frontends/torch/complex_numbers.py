"""Arguments of nodes that are complex numbers, as parts.

As a parameter or a result of ``main``, a complex tensor is one of reals with a last axis of
two: the parts, as ``torch.view_as_real`` shows the same memory.
"""

from collections.abc import Sequence
from dataclasses import replace

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.complex_parts import Parts, imaginary
from relax_egraph.frontends.torch.node import Argument, Node
from relax_egraph.ir.expr import Expr


def operand(node: Node, name: str, dtype: str | None = None) -> Parts:
    """The argument `name`, a tensor or number, with parts of `dtype`, by default the result's."""
    return as_complex(node, node.arguments[name], node.out_dtype if dtype is None else dtype)


def as_complex(node: Node, value: Argument, dtype: str) -> Parts:
    """A tensor or number with parts of `dtype`; numbers are of rank 0."""
    match value:
        case Parts(real, imag):
            return Parts(node.cast(real, dtype), None if imag is None else node.cast(imag, dtype))
        case complex():
            return Parts(node.scalar(value.real, dtype), node.scalar(value.imag, dtype))
        case _:
            return Parts(node.as_tensor(value, dtype))


_WIDTHS = ("float16", "float32", "float64")


def part_dtype(node: Node, *names: str) -> str:
    """The widest dtype of floats among the arguments `names`."""
    values = [node.arguments[name] for name in names]
    parts = [value.real if isinstance(value, Parts) else value for value in values]
    dtypes = [dtype_of(part) for part in parts if isinstance(part, Expr)]
    return max((d for d in dtypes if d in _WIDTHS), key=_WIDTHS.index)


def of_part(node: Node, names: Sequence[str], which: str) -> Node:
    """`node` on the ``real`` or ``imag`` parts of its arguments `names`."""

    def chosen(value: Argument) -> Argument:
        if isinstance(value, list | tuple):
            return [chosen(v) for v in value]
        if isinstance(value, Parts):
            return value.real if which == "real" else imaginary(node, value)
        if isinstance(value, Expr):
            return value if which == "real" else node.emit("zeros_like", value)
        if isinstance(value, int | float | complex):
            return value.real if which == "real" else value.imag
        raise ModelError(f"it has the operand {value}, needs a tensor or a number")

    arguments = {n: chosen(v) if n in names else v for n, v in node.arguments.items()}
    return replace(node, arguments=arguments)

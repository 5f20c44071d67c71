"""The elements of the values of a general instance."""

from collections.abc import Callable
from typing import Any

from relax_egraph.prove import operators
from relax_egraph.prove.algebra import kind_of
from relax_egraph.prove.digits import Indices
from relax_egraph.prove.nodes import Leaf, Mapped, Part, Result, Uniform, Value, dtype_of, shape_of
from relax_egraph.prove.reading import Reader
from relax_egraph.prove.sums import Sum, apply
from relax_egraph.prove.tensors import Tensor, operand


class Elements:
    """Reads values as tensors; `values` are those that were read before."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.known: dict[str, Any] = {}

    def of(self, value: Any) -> Any:
        """A value as a tensor, a tuple of values as one of tensors; anything else is itself."""
        if isinstance(value, tuple):
            return tuple(self.of(v) for v in value)
        if not isinstance(value, Value):
            return value
        if value.key not in self.known:
            self.known[value.key] = self.read(value)
        return self.known[value.key]

    def read(self, value: Value) -> Any:
        """A value that was not read before."""
        match value:
            case Leaf(name):
                return operand(name, shape_of(value), dtype_of(value))
            case Uniform(number):
                return Tensor(shape_of(value), dtype_of(value), lambda _: number)
            case Part(whole, k):
                return self.of(whole)[k]
            case Mapped():
                return Tensor(shape_of(value), dtype_of(value), self.mapped(value))
            case Result(op, operands, attrs, info):
                inner = tuple(map(self.of, operands))
                return operators.read(self.reader, op, inner, attrs, info)

    def mapped(self, value: Mapped) -> Callable[[Indices], Sum]:
        """An unknown function of elements, or of all elements along axes."""
        tensors: list[Tensor] = [self.of(v) for v in value.operands]
        axes = value.axes
        if axes is None:
            return lambda i: apply(
                value.function, *(t.at(i) for t in tensors), dtype=kind_of(dtype_of(value))
            )
        (x,) = tensors

        def at(index: Indices) -> Sum:
            extents = [x.extents[a] for a in axes]

            def element(inner: Indices) -> Sum:
                along = dict(zip(axes, inner, strict=True))
                outer = iter(
                    [i for k, i in enumerate(index) if k not in axes]
                    if value.keepdims
                    else list(index)
                )
                return x.at([along[k] if k in along else next(outer) for k in range(len(x.shape))])

            return self.reader.folded(value.function, x.dtype, extents, element)

        return at

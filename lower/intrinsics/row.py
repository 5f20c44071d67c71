"""Rows of a tile in memory, as vectors in registers.

The last columns of a tile fill a single vector by a part, which a mask selects.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.lower.emit.half_precision import from_bits
from relax_egraph.lower.emit.instructions import Value
from relax_egraph.lower.emit.module_text import F32, F64, I8, I16, I32, Type
from relax_egraph.lower.emit.vector import masked_load, masked_store

ELEMENTS: Mapping[str, Type] = {
    **{"float32": F32, "float64": F64, "int32": I32},
    **{"bfloat16": I16, "int8": I8},
}
"""The memory types of elements, by dtype."""


def dtype_of(dtype: str) -> str:
    """The dtype of products with elements of `dtype`: float32 for narrow ones."""
    return "float32" if ELEMENTS[dtype].bits < F32.bits else dtype


def computed(dtype: str) -> Type:
    """The type of products with elements of `dtype`."""
    return ELEMENTS[dtype_of(dtype)]


LINE = 512
"""The bits of a cache line."""


def strip_columns(dtype: str) -> int:
    """The columns of a strip of a right operand of `dtype`: those of a cache line."""
    return LINE // ELEMENTS[dtype].bits


@dataclass(frozen=True, slots=True)
class Row:
    """`vectors` vectors of `lanes` elements of `dtype`; a single one may be under a `mask`."""

    vectors: int
    lanes: int
    mask: Value | None = None
    dtype: str = "float32"

    def places(self, pointer: Value) -> list[Value]:
        """The addresses of the vectors from `pointer` on."""
        f, element = pointer.function, ELEMENTS[self.dtype]
        return [f.address(pointer, v * self.lanes, element) for v in range(self.vectors)]

    def read(self, pointer: Value) -> list[Value]:
        """The vectors at `pointer`, narrow ones as float32; masked lanes are 0."""
        type = ELEMENTS[self.dtype].of(self.lanes)
        if self.mask is not None:
            return [_widened(masked_load(pointer, type, self.mask), self.dtype)]
        loads = [pointer.function.load(place, type) for place in self.places(pointer)]
        return [_widened(vector, self.dtype) for vector in loads]

    def write(self, pointer: Value, values: Sequence[Value]) -> None:
        """Store the vectors at `pointer`."""
        for place, value in zip(self.places(pointer), values, strict=True):
            if self.mask is not None:
                masked_store(value, place, self.mask)
            else:
                pointer.function.store(value, place)

    def sums_at(self, pointers: Sequence[Value], adds: Value) -> Sequence[Value]:
        """The vectors of the rows at `pointers` if `adds`, which is 0 or 1, is 1; else zeros."""
        f = adds.function
        zeros = [f.const(computed(self.dtype).of(self.lanes), 0)] * (len(pointers) * self.vectors)
        with f.loop(0, adds, 1, zeros) as once:
            once.carry(*(value for pointer in pointers for value in self.read(pointer)))
        return once.results

    def write_all(self, pointers: Sequence[Value], values: Sequence[Value]) -> None:
        """Store the vectors of the rows at `pointers`."""
        for k, pointer in enumerate(pointers):
            self.write(pointer, values[k * self.vectors : (k + 1) * self.vectors])


def _widened(stored: Value, dtype: str) -> Value:
    """Lanes of `dtype` in memory format, narrow ones as float32."""
    f = stored.function
    match dtype:
        case "int8":
            return f.convert("sitofp", f.convert("sext", stored, I32), F32)
        case "bfloat16":
            return from_bits(stored, dtype)
        case _:
            return stored

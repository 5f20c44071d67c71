"""Requirements on extents that must be proven before loops are built."""

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.struct_info import Shape


def need_equal(a: Shape, b: Shape) -> None:
    """Raise `NotLowerable` unless two shapes are proven equal."""
    if len(a) != len(b) or not all(map(dims.equal, a, b)):
        raise NotLowerable("whether the extents agree is known only at run time")

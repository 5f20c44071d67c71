"""Output arrays of calls that write their results in place."""

import numpy as np

from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.matching import Value
from relax_egraph.ir.reference.array import Array, least
from relax_egraph.ir.struct_info import StructInfo, TupleStructInfo


def infos_of(out: StructInfo) -> tuple[StructInfo, ...]:
    """The struct info of each output of a call whose result is `out`."""
    return out.fields if isinstance(out, TupleStructInfo) else (out,)


def unset(shape: tuple[int, ...], dtype: str | None) -> Array:
    """An array of NaN, or of the dtype's least value: what nobody writes is noticed."""
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if is_float(kind.name) else least(kind), kind)


def result_of(outputs: list[Value], out: StructInfo) -> Value:
    """The result `out` of a call that wrote `outputs`."""
    return tuple(outputs) if isinstance(out, TupleStructInfo) else outputs[0]

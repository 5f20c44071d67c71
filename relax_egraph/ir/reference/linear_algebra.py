"""Products of matrices, vectors and tensors."""

from collections.abc import Mapping

import numpy as np

from relax_egraph.ir.reference.array import Array, Reference
from relax_egraph.ir.subscripts import is_broadcast, read_subscripts


def _einsum(operands: tuple[Array, ...], *, subscripts: str) -> Array:
    read = read_subscripts(subscripts, [x.ndim for x in operands])
    extents: dict[str, int] = {}
    for x, term in zip(operands, read.terms, strict=True):
        for label, extent in zip(term, x.shape, strict=True):
            if extents.setdefault(label, extent) != extent and not is_broadcast(label):
                raise ValueError(f'"{label}" is of extent {extents[label]} and of {extent}')
    dtype = operands[0].dtype
    wide = [x.astype(np.float64) if dtype.kind == "f" else x for x in operands]
    return np.asarray(np.einsum(subscripts, *wide)).astype(dtype)


REFERENCE: Mapping[str, Reference] = {
    "matmul": np.matmul,
    "outer": np.multiply.outer,
    "einsum": _einsum,
}

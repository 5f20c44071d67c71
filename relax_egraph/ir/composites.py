"""Functions that users know by one name and the IR expresses by several operators."""

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Call, Expr


def linear(data: Expr, weight: Expr, bias: Expr | None = None) -> Call:
    """``data · weightᵀ + bias``, as nested calls; a builder binds them one by one.

    `weight` is (features out, features in), as layers store it.
    """
    product = call("matmul", data, call("permute_dims", weight))
    return product if bias is None else call("add", product, bias)

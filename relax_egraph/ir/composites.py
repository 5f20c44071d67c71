"""What users know by one name and the IR has as several operators."""

from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Call, Expr


def linear(data: Expr, weight: Expr, bias: Expr | None = None) -> Call:
    """``data · weightᵀ + bias``: a call over nested calls, which a builder binds one by one.

    `weight` is (features out, features in), as layers store it.
    """
    product = call("matmul", data, call("permute_dims", weight))
    return product if bias is None else call("add", product, bias)

"""Conditions on sizes and numbers that the run checks, and numbers that it reads of tensors."""

from typing import Any

import sympy
import torch

from relax_egraph.errors import ModelError
from relax_egraph.frontends.torch.checks import (
    bind_size,
    require,
    require_nonnegative,
    require_zero,
)
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.frontends.torch.symbolic_numbers import number_of
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.dtypes import is_float
from relax_egraph.ir.expr import Expr

_DIFFERENCES: dict[str, Any] = {
    "GreaterThan": lambda a, b: dims.sub(a, b),
    "StrictGreaterThan": lambda a, b: dims.sub(dims.sub(a, b), 1),
    "LessThan": lambda a, b: dims.sub(b, a),
    "StrictLessThan": lambda a, b: dims.sub(dims.sub(b, a), 1),
}
"""What is 0 or more if a comparison of integers is true."""


@converts("aten._local_scalar_dense.default")
def local_scalar(node: Node) -> tuple[()]:
    """The element of a tensor as a number: a size where torch knows that it is not negative."""
    number: Any = node.metas["out"].node
    (symbol,) = number.expr.free_symbols
    value = node.reshaped(node["self"], ())
    bounds = number.shape_env.bound_sympy(symbol)
    if isinstance(node.metas["out"], torch.SymInt) and bounds.lower >= 0:
        bind_size(node, value, node.symbols.symbol(symbol.name))
        return ()
    kind = "float64" if is_float(node.dtype("self")) else "int64"
    node.symbols.numbers[symbol.name] = node.cast(value, kind)
    return ()


@converts("aten._assert_scalar.default")
def assert_scalar(node: Node) -> tuple[()]:
    """Fails with a message if a number is 0, or a condition false."""
    condition, message = node.arguments["self"], _template(node.text("assert_msg"))
    if isinstance(condition, torch.SymBool | torch.SymInt | torch.SymFloat):
        _require(node, condition.node.expr, message)
    elif isinstance(condition, sympy.Expr):
        require(node, node.as_tensor(condition, "bool"), message)
    elif not condition:
        raise ModelError(f"it always fails: {message}")
    return ()


@converts("aten._assert_async.default", "aten._assert_async.msg")
def assert_tensor(node: Node) -> tuple[()]:
    """Fails with a message if the element of a tensor is 0."""
    message = node.text("assert_msg") if node.has("assert_msg") else "Expected Tensor to be nonzero"
    require(node, node["self"], _template(message))
    return ()


@converts("aten._functional_assert_async.msg", "aten._functional_assert_scalar.default")
def functional_assert(node: Node) -> Expr:
    """The same; the result is a token for the order of effects."""
    (assert_scalar if "scalar" in node.op else assert_tensor)(node)
    return node["dep_token"]


@converts("aten._assert_tensor_metadata.default")
def assert_metadata(node: Node) -> tuple[()]:
    """Fails if a tensor is of another dtype or shape."""
    name = "a" if "a" in node.arguments else "self"
    dtype = node.dtype_named("dtype")
    if dtype not in (None, node.dtype(name)):
        raise ModelError(f"it always fails: the tensor is of {node.dtype(name)}, not {dtype}")
    if node.has("size"):
        for axis, (have, want) in enumerate(zip(node.shape(name), node.sizes("size"), strict=True)):
            message = f"Tensor size mismatch at axis {axis}!"
            require_zero(node, dims.sub(have, want), message)
    return ()


@converts("aten.sym_constrain_range.default", "aten.sym_constrain_range_for_size.default")
def constrain_range(node: Node) -> tuple[()]:
    """Fails if a number is outside of a range."""
    number = node.arguments["size"]
    lowest, highest = node.arguments["min"], node.arguments["max"]
    if isinstance(number, torch.SymInt):
        expr = number.node.expr
        for limit, condition in ((lowest, sympy.Ge), (highest, sympy.Le)):
            if limit is not None:
                _require(node, condition(expr, limit), f"Invalid value range for {expr}")
        return ()
    size: Dim = node.dim("size")
    message = f"Invalid value range for {dims.text(size)} between [{lowest}, {highest}]"
    if lowest is not None:
        require_nonnegative(node, dims.sub(size, lowest), message)
    if highest is not None:
        require_nonnegative(node, dims.sub(highest, size), message)
    return ()


def _template(message: str) -> str:
    """`message` without braces, which stand for dimensions."""
    return message.replace("{", "(").replace("}", ")")


def _require(node: Node, condition: Any, message: str) -> None:
    """Check at run time that `condition`, an expression of torch, is true."""
    if isinstance(condition, sympy.And):
        for part in condition.args:
            _require(node, part, message)
        return
    kind = type(condition).__name__
    try:
        a, b = (node.symbols.dim_of(side) for side in condition.args)
    except (ModelError, ValueError, AttributeError):
        require(node, number_of(node, node.symbols, condition), message)
        return
    if kind in _DIFFERENCES:
        require_nonnegative(node, _DIFFERENCES[kind](a, b), message)
    elif kind == "Equality":
        require_zero(node, dims.sub(a, b), message)
    elif not dims.distinct(a, b):
        require(node, number_of(node, node.symbols, condition), message)

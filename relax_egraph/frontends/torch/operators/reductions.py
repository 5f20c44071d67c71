"""Reductions over axes."""

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Expr


@converts(
    "aten.sum.default",
    "aten.sum.dim_IntList",
    "aten.mean.default",
    "aten.mean.dim",
    "aten.prod.default",
    "aten.prod.dim_int",
)
def total(node: Node) -> Expr:
    """A sum, mean or product in the dtype of the result, which is int64 of integers."""
    return _reduced(node, node.op.split(".")[1], node.operand("self", node.out_dtype))


@converts("aten.any.default", "aten.any.dim", "aten.any.dims")
def any_(node: Node) -> Expr:
    """Whether any element is not 0; the result of uint8 is of uint8."""
    none = _reduced(node, "prod", node.emit("logical_not", node.operand("self", "bool")))
    return node.cast(node.emit("logical_not", none), node.out_dtype)


@converts("aten.all.default", "aten.all.dim", "aten.all.dims")
def all_(node: Node) -> Expr:
    """Whether no element is 0; the result of uint8 is of uint8."""
    return node.cast(_reduced(node, "prod", node.operand("self", "bool")), node.out_dtype)


@converts("aten.amax.default", "aten.amin.default", "aten.max.default", "aten.min.default")
def extreme(node: Node) -> Expr:
    """The greatest or least element; NaN if one is."""
    name = "max" if "max." in node.op else "min"
    return node.cast(_reduced(node, name, countable(node)), node.out_dtype)


@converts("aten.max.dim", "aten.min.dim")
def extreme_along(node: Node) -> list[Expr]:
    """The greatest or least element along an axis, and its first index."""
    name = node.op.split(".")[1]
    x = countable(node)
    index = _reduced(node, f"arg{name}", x)
    return [node.cast(_reduced(node, name, x), node.out_dtype), index]


@converts("aten.argmax.default", "aten.argmin.default")
def position(node: Node) -> Expr:
    """The first index of the greatest or least element, along an axis or of all."""
    return _reduced(node, node.op.split(".")[1], countable(node))


@converts("aten.var.correction", "aten.std.correction")
def spread(node: Node) -> Expr:
    """``Σ (x - mean x)² / (count - correction)``, or its square root."""
    return _spread(node)


@converts("aten.var_mean.correction", "aten.std_mean.correction")
def spread_and_mean(node: Node) -> list[Expr]:
    """The same, and the mean."""
    return [_spread(node), _reduced(node, "mean", node["self"])]


def _spread(node: Node) -> Expr:
    variance = _variance(node)
    return node.emit("sqrt", variance) if ".std" in node.op else variance


def _variance(node: Node) -> Expr:
    found, dtype = _reduced(node, "variance", node["self"]), node.out_dtype
    correction = node.number("correction") if node.has("correction") else 1
    if correction == 0:
        return found
    rank = node.rank("self")
    axes = node.axes("dim", rank)
    count = dims.product(node.shape("self")[a] for a in (range(rank) if axes is None else axes))
    return node.emit("multiply", found, _ratio(node, count, correction, dtype))


def _ratio(node: Node, count: Dim, correction: float, dtype: str) -> Expr:
    """``count / max(count - correction, 0)``."""
    if isinstance(count, int):
        rest = max(count - correction, 0)
        return node.scalar(count / rest if rest else float("inf"), dtype)
    whole = node.as_tensor(count, dtype)
    rest = node.emit("subtract", whole, node.scalar(correction, dtype))
    rest = node.emit("maximum", rest, node.scalar(0, dtype))
    return node.emit("divide", whole, rest)


def countable(node: Node) -> Expr:
    """The operand; booleans as integers, which have an order."""
    return node.cast(node["self"], "uint8") if node.dtype("self") == "bool" else node["self"]


def _reduced(node: Node, name: str, x: Expr) -> Expr:
    """`x` reduced by our operator over the argument `dim`; a scalar is reduced as one element."""
    rank = info_of(x).ndim
    if rank == 0:
        return node.reshaped(node.emit(name, node.reshaped(x, (1,)), axis=_axis(name, 0)), ())
    axes = node.axes("dim", rank) if "dim" in node.arguments else None
    keepdims = bool(node.arguments.get("keepdim", False))
    if axes is None and not keepdims and len(node.out_shape) == rank:
        return x  # no axes are not all axes here
    if name.startswith("arg"):
        return node.emit(name, x, axis=None if axes is None else axes[0], keepdims=keepdims)
    return node.emit(name, x, axis=axes, keepdims=keepdims)


def _axis(name: str, place: int) -> int | tuple[int, ...]:
    return place if name.startswith("arg") else (place,)

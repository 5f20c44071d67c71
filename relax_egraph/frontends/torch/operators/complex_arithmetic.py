"""Arithmetic of complex numbers by their parts; an operand may be a tensor of reals or a number."""

from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.building.complex_parts import (
    Parts,
    imaginary,
    joined,
    parted,
    product,
)
from relax_egraph.frontends.torch.complex_numbers import as_complex, operand, part_dtype
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.operators.special import hypotenuse
from relax_egraph.frontends.torch.registry import converts_complex
from relax_egraph.ir.expr import Expr

# --- parts ------------------------------------------------------------------------------


@converts_complex("aten.complex.default")
def complex_of(node: Node) -> Parts:
    """The complex numbers of two tensors of parts."""
    parts = (node.operand(name, node.out_dtype) for name in ("real", "imag"))
    return Parts(*(node.stretched(part, node.out_shape) for part in parts))


@converts_complex("aten.polar.default")
def polar(node: Node) -> Parts:
    """The complex numbers of magnitudes and angles."""
    size, angle = (node.operand(name, node.out_dtype) for name in ("abs", "angle"))
    return Parts(*(node.emit("multiply", size, node.emit(f, angle)) for f in ("cos", "sin")))


@converts_complex("aten.view_as_real.default")
def view_as_real(node: Node) -> Expr:
    """Real and imaginary parts along a new last axis."""
    return joined(node, operand(node, "self"))


@converts_complex("aten.view_as_complex.default")
def view_as_complex(node: Node) -> Parts:
    """The complex numbers whose parts are along the last axis."""
    return parted(node, node["self"])


@converts_complex("aten._conj.default", "aten._conj_physical.default", "aten.conj_physical.default")
def conjugate(node: Node) -> Parts:
    """The operand with the other sign of the imaginary part."""
    x = operand(node, "self")
    return Parts(x.real, node.emit("negative", imaginary(node, x)))


@converts_complex("aten.abs.default")
def magnitude(node: Node) -> Expr:
    """``√(real² + imag²)``."""
    return _magnitude(node, operand(node, "self"))


@converts_complex("aten.angle.default")
def angle(node: Node) -> Expr:
    """The angle of each number, from -π to π."""
    return _angle(node, operand(node, "self"))


def _magnitude(node: Node, x: Parts) -> Expr:
    if x.imag is None:
        return node.emit("abs", x.real)
    return hypotenuse(node, x.real, x.imag)


def _angle(node: Node, x: Parts) -> Expr:
    return node.emit("atan2", imaginary(node, x), x.real)


# --- sums and products ------------------------------------------------------------------


@converts_complex(
    "aten.add.Tensor", "aten.add.Scalar", "aten.sub.Tensor", "aten.sub.Scalar", "aten.rsub.Scalar"
)
def add(node: Node) -> Parts:
    """``self ± alpha · other``."""
    x, y = operand(node, "self"), operand(node, "other")
    alpha = node.arguments.get("alpha", 1)
    if alpha != 1:
        y = product(node, y, as_complex(node, alpha, node.out_dtype))
    if ".rsub." in node.op:
        x, y = y, x
    name = "add" if ".add." in node.op else "subtract"
    real = node.emit(name, x.real, y.real)
    if x.imag is None and y.imag is None:
        return Parts(real)
    if y.imag is None:
        return Parts(real, node.stretched(imaginary(node, x), node.out_shape))
    return Parts(real, node.emit(name, imaginary(node, x), y.imag))


@converts_complex("aten.mul.Tensor", "aten.mul.Scalar")
def multiply(node: Node) -> Parts:
    """``self · other``."""
    return product(node, operand(node, "self"), operand(node, "other"))


@converts_complex("aten.square.default")
def square(node: Node) -> Parts:
    """``self · self``."""
    x = operand(node, "self")
    return product(node, x, x)


@converts_complex("aten.mm.default", "aten.bmm.default", "aten.matmul.default")
def matrix_product(node: Node) -> Parts:
    """A product of matrices, or of stacks of matrices."""
    left, right = (operand(node, name) for name in node.arguments)
    return product(node, left, right, "matmul")


@converts_complex("aten.addmm.default", "aten.baddbmm.default")
def added_product(node: Node) -> Parts:
    """``beta · self + alpha · (matrix product)``."""
    left, right = (n for n in node.arguments if n not in ("self", "beta", "alpha"))
    whole = product(node, operand(node, left), operand(node, right), "matmul")
    if node.arguments["alpha"] != 1:
        whole = product(node, whole, operand(node, "alpha"))
    if node.arguments["beta"] == 0:
        return whole
    bias = operand(node, "self")
    if node.arguments["beta"] != 1:
        bias = product(node, bias, operand(node, "beta"))
    imag = node.emit("add", imaginary(node, whole), imaginary(node, bias))
    return Parts(node.emit("add", whole.real, bias.real), imag)


@converts_complex("aten.div.Tensor", "aten.div.Scalar")
def divide(node: Node) -> Parts:
    """``self / other``."""
    return _quotient(node, operand(node, "self"), operand(node, "other"))


@converts_complex("aten.reciprocal.default")
def reciprocal(node: Node) -> Parts:
    """``1 / self``."""
    return _quotient(node, Parts(node.scalar(1, node.out_dtype)), operand(node, "self"))


def _quotient(node: Node, x: Parts, y: Parts) -> Parts:
    """``x / y``, where `y` is divided by its greater part first, so that no square overflows."""

    def over(z: Parts, divisor: Expr) -> Parts:
        imag = None if z.imag is None else node.emit("divide", z.imag, divisor)
        return Parts(node.emit("divide", z.real, divisor), imag)

    if y.imag is None:
        return over(x, y.real)
    scale = node.emit("maximum", node.emit("abs", y.real), node.emit("abs", y.imag))
    small = over(y, scale)
    assert small.imag is not None
    squares = (node.emit("square", part) for part in (small.real, small.imag))
    conjugated = Parts(small.real, node.emit("negative", small.imag))
    return over(over(product(node, x, conjugated), node.emit("add", *squares)), scale)


# --- functions --------------------------------------------------------------------------


@converts_complex("aten.exp.default")
def exp(node: Node) -> Parts:
    """``e^real · (cos imag + i · sin imag)``."""
    return _exp(node, operand(node, "self"))


@converts_complex("aten.log.default")
def log(node: Node) -> Parts:
    """The logarithm of the magnitude, and the angle."""
    return _log(node, operand(node, "self"))


@converts_complex("aten.pow.Tensor_Scalar", "aten.pow.Tensor_Tensor", "aten.pow.Scalar")
def power(node: Node) -> Parts:
    """``self ^ exponent``: products for small whole numbers, else ``e^(exponent · log self)``."""
    x, given = operand(node, "self"), node.arguments["exponent"]
    if isinstance(given, int | float) and given in range(9):
        return _whole_power(node, x, int(given))
    exponent, zero = operand(node, "exponent"), node.scalar(0, node.out_dtype)
    found = _exp(node, product(node, exponent, _log(node, x)))
    is_zero = node.emit("equal", _magnitude(node, x), zero)
    is_zero = node.emit("logical_and", is_zero, node.emit("greater", exponent.real, zero))
    return Parts(*(node.emit("where", is_zero, zero, p) for p in _both(node, found)))


def _whole_power(node: Node, x: Parts, exponent: int) -> Parts:
    if exponent == 0:
        return Parts(node.emit("ones_like", x.real))
    if exponent == 1:
        return x
    half = _whole_power(node, x, exponent // 2)
    squared = product(node, half, half)
    return product(node, squared, x) if exponent % 2 else squared


@converts_complex("aten.sgn.default")
def sgn(node: Node) -> Parts:
    """Numbers divided by their magnitudes; 0 of 0."""
    x = operand(node, "self")
    size = _magnitude(node, x)
    zero = node.scalar(0, dtype_of(size))
    is_zero = node.emit("equal", size, zero)
    parts = (node.emit("divide", part, size) for part in _both(node, x))
    return Parts(*(node.emit("where", is_zero, zero, part) for part in parts))


def _exp(node: Node, x: Parts) -> Parts:
    size = node.emit("exp", x.real)
    if x.imag is None:
        return Parts(size)
    real, imag = (node.emit("multiply", size, node.emit(f, x.imag)) for f in ("cos", "sin"))
    is_real = node.emit("equal", x.imag, node.scalar(0, dtype_of(size)))  # an infinite size, too
    return Parts(real, node.emit("where", is_real, x.imag, imag))


def _both(node: Node, x: Parts) -> tuple[Expr, Expr]:
    return x.real, imaginary(node, x)


def _log(node: Node, x: Parts) -> Parts:
    return Parts(node.emit("log", _magnitude(node, x)), _angle(node, x))


# --- comparisons ------------------------------------------------------------------------


@converts_complex("aten.eq.Tensor", "aten.eq.Scalar", "aten.ne.Tensor", "aten.ne.Scalar")
def equal(node: Node) -> Expr:
    """Whether both parts are equal, or either is not."""
    wide = part_dtype(node, "self", "other")
    x, y = operand(node, "self", wide), operand(node, "other", wide)
    name, both = ("equal", "logical_and") if ".eq." in node.op else ("not_equal", "logical_or")
    imag = node.emit(name, imaginary(node, x), imaginary(node, y))
    return node.emit(both, node.emit(name, x.real, y.real), imag)


@converts_complex("aten.isnan.default", "aten.isinf.default")
def kind_of(node: Node) -> Expr:
    """Whether either part is NaN, or infinite."""
    x = operand(node, "self", part_dtype(node, "self"))
    name = node.op.split(".")[1]
    return node.emit("logical_or", *(node.emit(name, p) for p in _both(node, x)))

"""Greatest common divisors and least common multiples of integers."""

from relax_egraph.frontends.building.builder import info_of
from relax_egraph.frontends.building.functions import call_function, distinct
from relax_egraph.frontends.building.loops import TailLoop, define_loop
from relax_egraph.frontends.torch.node import Node
from relax_egraph.frontends.torch.registry import converts
from relax_egraph.ir.expr import Expr, Var


@converts("aten.gcd.default")
def gcd(node: Node) -> Expr:
    """The greatest common divisor, of 0 and 0 it is 0."""
    return _gcd(node, *_sizes(node))


@converts("aten.lcm.default")
def lcm(node: Node) -> Expr:
    """The least common multiple, 0 if either is 0."""
    x, y = _sizes(node)
    divisor = _gcd(node, x, y)
    zero, one = (node.scalar(value, node.out_dtype) for value in (0, 1))
    divisor = node.emit("where", node.emit("equal", divisor, zero), one, divisor)
    return node.emit("multiply", node.emit("floor_divide", x, divisor), y)


def _sizes(node: Node) -> list[Expr]:
    """The magnitudes of both operands, in the shape of the result."""
    operands = (node.stretched(node.operand(n, node.out_dtype), node.out_shape) for n in _NAMES)
    return [node.emit("abs", x) for x in operands]


_NAMES = ("self", "other")


def _gcd(node: Node, x: Expr, y: Expr) -> Expr:
    """Euclid's algorithm on all elements, until it has ended for each."""
    zero, one = (node.scalar(value, node.out_dtype) for value in (0, 1))
    a, b = params = distinct([Var(n, info_of(x)) for n in _NAMES])

    def goes_on() -> Expr:
        left = node.cast(node.emit("not_equal", b, zero), "int64")
        return node.cast(node.emit("sum", left), "bool")

    def turn() -> list[Expr]:
        ended = node.emit("equal", b, zero)
        rest = node.emit("floor_mod", a, node.emit("where", ended, one, b))
        return [node.emit("where", ended, a, b), node.emit("where", ended, b, rest)]

    names = f"{node.name}_loop", f"{node.name}_turn"
    looping = define_loop(node.bb, TailLoop(names, params, slice(0, 1), goes_on, turn))
    (found,) = node.fields(node.bind(call_function(looping, [x, y])))
    return found

"""Steps of optimizers, from the domain ``ai.onnx.preview.training``."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from relax_egraph.errors import ModelError
from relax_egraph.frontends.building.builder import dtype_of
from relax_egraph.frontends.onnx.node import Node
from relax_egraph.frontends.onnx.registry import converts
from relax_egraph.ir.expr import Expr

DOMAIN = "ai.onnx.preview.training"


@dataclass(frozen=True, slots=True)
class _Step:
    """A step for one tensor: the rate and the number of steps so far, both of rank 0."""

    node: Node
    rate: Expr
    count: Expr

    def number(self, name: str, like: Expr) -> Expr:
        """The attribute `name` in the dtype of `like`."""
        return self.node.scalar(self.node.attrs.number(name), dtype_of(like))

    def rest(self, name: str, like: Expr) -> Expr:
        """1 minus the attribute `name`."""
        return self.node.scalar(1 - self.node.attrs.number(name), dtype_of(like))

    def regularized(self, x: Expr, gradient: Expr) -> Expr:
        """The gradient plus that of the norm of `x`."""
        return self.sum(self.product(self.number("norm_coefficient", x), x), gradient)

    def sum(self, a: Expr, b: Expr) -> Expr:
        """``a + b``."""
        return self.node.emit("add", a, b)

    def less(self, a: Expr, b: Expr) -> Expr:
        """``a - b``."""
        return self.node.emit("subtract", a, b)

    def product(self, a: Expr, b: Expr) -> Expr:
        """``a · b``."""
        return self.node.emit("multiply", a, b)

    def ratio(self, a: Expr, b: Expr) -> Expr:
        """``a / b``."""
        return self.node.emit("divide", a, b)

    def root(self, squares: Expr) -> Expr:
        """``√squares + epsilon``."""
        return self.sum(self.node.emit("sqrt", squares), self.number("epsilon", squares))

    def begun(self, later: Expr, at_first: Expr) -> Expr:
        """`later`, except `at_first` in the first step."""
        zero = self.node.scalar(0, dtype_of(self.count))
        return self.node.emit("where", self.node.emit("greater", self.count, zero), later, at_first)


def _by_tensor(
    node: Node, states: int, step: Callable[[_Step, Sequence[Expr]], Sequence[Expr]]
) -> Sequence[Expr]:
    """The outputs of `step` for each tensor with its gradient and `states`, grouped by kind.

    The operands are the rate, the number of steps, all tensors, all gradients, all first states, ….
    """
    kinds = 2 + states
    rate, count, *tensors = node.all()
    each = len(tensors) // kinds
    if each * kinds != len(tensors):
        raise ModelError(f"it has {len(tensors)} tensors, needs {kinds} for each that is optimized")
    results: list[Sequence[Expr]] = []
    for k in range(each):
        group = tensors[k::each]
        results.append(step(_Step(node, node.cast(rate, dtype_of(group[0])), count), group))
    return [result for kind in zip(*results, strict=True) for result in kind]


@converts("Adagrad", domain=DOMAIN)
def adagrad(node: Node) -> Sequence[Expr]:
    """Steps at a rate that falls with the squares of the gradients of each element."""
    return _by_tensor(node, 1, _adagrad)


def _adagrad(step: _Step, own: Sequence[Expr]) -> Sequence[Expr]:
    x, gradient, squares = own
    node, dtype = step.node, dtype_of(x)
    decay = step.product(node.cast(step.count, dtype), step.number("decay_factor", x))
    rate = step.ratio(step.rate, step.sum(node.scalar(1, dtype), decay))
    whole = step.regularized(x, gradient)
    squares = step.sum(squares, step.product(whole, whole))
    moved = step.ratio(step.product(rate, whole), step.root(squares))
    return step.less(x, moved), squares


@converts("Adam", domain=DOMAIN)
def adam(node: Node) -> Sequence[Expr]:
    """Steps by moving means of gradients and their squares, corrected for their start at 0."""
    return _by_tensor(node, 2, _adam)


def _adam(step: _Step, own: Sequence[Expr]) -> Sequence[Expr]:
    x, gradient, mean, squares = own
    node = step.node
    whole = step.regularized(x, gradient)
    alpha, beta = (step.number(name, x) for name in ("alpha", "beta"))
    new = step.product(step.rest("alpha", x), whole)
    mean = step.sum(step.product(alpha, mean), new)
    new = step.product(step.rest("beta", x), step.product(whole, whole))
    squares = step.sum(step.product(beta, squares), new)
    rate = step.begun(node.cast(_corrected_rate(step), dtype_of(x)), step.rate)
    moved = step.less(x, step.product(rate, step.ratio(mean, step.root(squares))))
    return step.product(step.rest("norm_coefficient_post", x), moved), mean, squares


def _corrected_rate(step: _Step) -> Expr:
    """``rate · √(1 - betaᵗ) / (1 - alphaᵗ)``."""
    node = step.node
    count, one = node.cast(step.count, "float64"), node.scalar(1, "float64")
    means, squares = (
        step.less(one, node.emit("power", node.scalar(node.attrs.number(n), "float64"), count))
        for n in ("alpha", "beta")
    )
    rate = node.cast(step.rate, "float64")
    return step.ratio(step.product(rate, node.emit("sqrt", squares)), means)


@converts("Momentum", domain=DOMAIN)
def momentum(node: Node) -> Sequence[Expr]:
    """Steps along a moving sum of gradients; Nesterov's looks ahead."""
    if node.attrs.text("mode") not in ("standard", "nesterov"):
        raise ModelError(f"its mode is {node.attrs.text('mode')!r}")
    return _by_tensor(node, 1, _momentum)


def _momentum(step: _Step, own: Sequence[Expr]) -> Sequence[Expr]:
    x, gradient, speed = own
    node = step.node
    whole, alpha = step.regularized(x, gradient), step.number("alpha", x)
    beta = step.begun(step.number("beta", x), node.scalar(1, dtype_of(x)))
    speed = step.sum(step.product(alpha, speed), step.product(beta, whole))
    along = speed
    if node.attrs.text("mode") == "nesterov":
        along = step.sum(whole, step.product(alpha, speed))
    return step.less(x, step.product(step.rate, along)), speed

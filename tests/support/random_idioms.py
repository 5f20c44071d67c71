"""Activations in their many spellings, and logic, in random programs."""

import math
from collections.abc import Callable

import numpy as np

from relax_egraph.ir.expr import Constant, Expr
from tests.support.random_choices import but, either_way, number
from tests.support.random_writer import Rejected, Writer, dtype_of, shape_of

SELU = (1.6732632423543772, 1.0507009873554805)
"""The factor of negative numbers, and the total factor."""


def activation_of_branches(w: Writer) -> Expr:
    """An activation with different formulas for positive and negative numbers."""
    x = w.tensor("f")
    zero, one = number(x, but(w, 0.0, 0.1)), number(x, 1.0)
    above = w.choice(("greater", "greater_equal"))
    below = w.choice(("less", "less_equal"))
    alpha = w.choice((0.01, 0.1, 0.25, 1.5))

    def by_sign(positive: Expr, negative: Expr) -> Expr:
        if w.chance(0.5):
            return w.op("where", w.op(above, x, zero), positive, negative)
        return w.op("where", w.op(below, x, zero), negative, positive)

    def falling() -> Expr:
        return w.op("subtract", w.op("exp", x), but(w, one, zero))

    def negative_part() -> Expr:
        return w.op("nn.relu", w.op("negative", x))

    spellings: tuple[Callable[[], Expr], ...] = (
        lambda: by_sign(x, zero),
        lambda: by_sign(x, w.op("multiply", x, number(x, alpha))),
        lambda: by_sign(x, falling()),
        lambda: w.op(
            "multiply",
            by_sign(x, w.op("multiply", falling(), number(x, SELU[0]))),
            number(x, SELU[1]),
        ),
        lambda: w.op("maximum", x, w.op("multiply", x, number(x, alpha))),
        lambda: w.op(
            "subtract", w.op("nn.relu", x), w.op("multiply", negative_part(), number(x, alpha))
        ),
        lambda: w.op("add", w.op("nn.relu", x), w.op("minimum", falling(), zero)),
    )
    return w.choice(spellings)()


def activation_of_powers(w: Writer) -> Expr:
    """A sigmoid, a hard sigmoid, a softplus or a gelu, in one of the spellings."""
    x = w.tensor("f")
    one, half = number(x, but(w, 1.0, 2.0)), number(x, but(w, 0.5, 0.25))
    away = w.op("negative", w.op("abs", x)) if w.chance(0.3) else w.op("exp", x)
    tail = w.op("log", w.op("add", one, w.op("exp", w.op("negative", w.op("abs", x)))))
    spellings: tuple[Callable[[], Expr], ...] = (
        lambda: w.op("divide", away, either_way(w, "add", one, away)),
        lambda: w.op("multiply", half, _one_and(w, w.op("tanh", w.op("multiply", x, half)))),
        lambda: w.op("add", half, w.op("multiply", half, w.op("tanh", w.op("divide", x, one)))),
        lambda: w.op("add", w.op("nn.relu", x), tail),
        lambda: w.op("log_add_exp", x, number(x, but(w, 0.0, 1.0))),
        lambda: w.op("log", w.op("add", w.op("exp", x), w.op("exp", w.beside(x)))),
        lambda: _clipped(w, w.op("add", w.op("multiply", x, number(x, 1 / 6)), half)),
        lambda: _clipped(w, w.op("divide", w.op("add", x, number(x, 3.0)), number(x, 6.0))),
        lambda: _gelu(w, x),
    )
    return w.choice(spellings)()


def _clipped(w: Writer, x: Expr) -> Expr:
    if w.chance(0.5):
        return w.op("clip", x, min=but(w, 0.0, -1.0), max=1.0)
    return w.op("minimum", w.op("maximum", x, number(x, 0.0)), number(x, 1.0))


def _one_and(w: Writer, x: Expr) -> Expr:
    return either_way(w, "add", x, number(x, but(w, 1.0, 2.0)))


def _gelu(w: Writer, x: Expr) -> Expr:
    """Halves come last; constants of seven digits match ``fast`` rules."""
    if w.chance(0.5):
        root = w.choice((math.sqrt(2), 1.414213, 1.4142))
        inner = w.op("erf", w.op("divide", x, number(x, root)))
    else:
        square = w.op("multiply", x, x) if w.chance(0.5) else w.op("square", x)
        term = w.op("add", w.op("multiply", square, number(x, 0.044715)), number(x, 1.0))
        scaled = w.op("multiply", x, number(x, w.choice((math.sqrt(2 / math.pi), 0.797884))))
        inner = w.op("tanh", either_way(w, "multiply", scaled, term))
    product = either_way(w, "multiply", x, _one_and(w, inner))
    if w.chance(0.5):
        return w.op("multiply", product, number(x, 0.5))
    return w.op("divide", product, number(x, but(w, 2.0, 3.0)))


# --- logic ------------------------------------------------------------------------------


def truths(w: Writer) -> Expr:
    """A formula of comparisons, other truth values and constants."""
    x = w.tensor("fiu")
    truth_values = [w.op(w.choice(("less", "greater_equal", "not_equal", "equal")), x, w.beside(x))]
    for _ in range(w.random.randint(1, 4)):
        a = w.choice(truth_values)
        constant = Constant(np.asarray(w.chance(0.5)))
        b = w.choice(
            (constant, w.choice(truth_values), w.op("logical_not", w.choice(truth_values)))
        )
        name = w.choice((*(f"logical_{k}" for k in ("not", "and", "or", "xor")), "equal", "bits"))
        if name == "logical_not":
            truth_values.append(w.op(name, a))
        elif name == "bits":
            truth_values.append(w.op(f"bitwise_{w.choice(('and', 'or', 'xor'))}", a, b))
        else:
            truth_values.append(either_way(w, name, a, b))
    return truth_values[-1]


def chosen(w: Writer) -> Expr:
    """A selection with a constant condition, of 0 and 1, or of equal values."""
    conditions = [v for v in w.known if dtype_of(v) == "bool"]
    if not conditions:
        raise Rejected
    condition = w.choice(conditions)
    fit = [v for v in w.known if shape_of(v) == shape_of(condition) and dtype_of(v) != "bool"]
    if fit and w.chance(0.4):
        x = w.choice(fit)
        known = Constant(np.asarray(w.chance(0.5)))
        return w.op("where", w.choice((condition, known)), x, w.choice((x, w.beside(x))))
    dtype = w.choice(("float32", "int64"))
    zero, one = (Constant(np.asarray(k, dtype)) for k in (0, 1))
    return w.op("where", condition, *but(w, (one, zero), (zero, one), (one, one)))


def whole_numbers(w: Writer) -> Expr:
    """Arithmetic of an integer tensor and constants."""
    x = w.tensor("i")
    for _ in range(w.random.randint(1, 3)):
        name = w.choice(("add", "subtract", "multiply", "maximum", "minimum", "left_shift"))
        a = Constant(np.asarray(w.choice((0, 0, 1, 2, 3)), dtype_of(x)))
        b = Constant(np.asarray(w.choice((0, 1, 2)), dtype_of(x)))
        folded = w.op(w.choice(("add", "subtract", "multiply", "maximum")), a, b)
        x = w.op(name, x, b if name == "left_shift" else w.choice((a, folded)))
    return x

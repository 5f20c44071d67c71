"""Sums, products, activations and slices in random programs, for rules of many families."""

from collections.abc import Callable

from relax_egraph.ir import dims
from relax_egraph.ir.block_builder import call
from relax_egraph.ir.expr import Expr, Tuple, TupleGetItem, shape
from tests.support.random_choices import but, either_way, number, static, weight
from tests.support.random_writer import Rejected, Writer, dtype_of, shape_of

FAR = (100.0, 1000.0, 0.001)
"""Numbers beside which others vanish if a sum is reordered."""


def affine_chain(w: Writer) -> Expr:
    """Numbers and weights added, subtracted, multiplied and divided, perhaps before a product."""
    x = w.tensor("f")
    for _ in range(w.random.randint(2, 5)):
        name = w.choice(("add", "subtract", "multiply", "divide", "negative"))
        if name == "negative":
            x = w.op(name, x)
            continue
        far = w.chance(0.15)
        c = number(x, w.choice(FAR)) if far else w.constant(w.part(shape_of(x)), dtype_of(x))
        x = w.op(name, *((c, x) if w.chance(0.25) else (x, c)))
    if shape_of(x) and w.chance(0.4):
        return w.op("matmul", x, weight(w, x, (static(x, -1), w.choice((1, 3, 8)))))
    return x


def common_factor(w: Writer) -> Expr:
    """The sum of products, which may have a common factor."""
    x = w.tensor("f")
    a, b, c = (w.beside(x) for _ in range(3))
    name = w.choice(("multiply", "multiply", "divide"))
    first = w.op(name, *but(w, (x, a), (a, x)))
    second = w.op(name, *w.choice([(x, b), (b, x), (c, a), (x, a)]))
    return w.op(w.choice(("add", "subtract", "maximum", "multiply", "divide")), first, second)


def activation_written_out(w: Writer) -> Expr:
    """An activation that is spelled out, of a kind that no other step writes."""
    x = w.tensor("f")
    zero, one = number(x, but(w, 0.0, 0.1, -0.0)), number(x, but(w, 1.0, 2.0, -1.0))
    powers = w.op("exp", x)
    spellings: dict[str, Callable[[], Expr]] = {
        "relu6": lambda: w.op("minimum", w.op("maximum", x, zero), number(x, but(w, 6.0, -1.0))),
        "softplus": lambda: w.op("log", either_way(w, "add", powers, one)),
        "mish": lambda: w.op("multiply", x, w.op("tanh", w.op("log", w.op("add", one, powers)))),
        "leaky": lambda: w.op(
            "where", w.op("greater", x, zero), x, w.op("multiply", x, number(x, 0.01))
        ),
        "elu": lambda: w.op("where", w.op("greater", x, zero), x, w.op("subtract", powers, one)),
        "swish": lambda: w.op("multiply", x, w.op("sigmoid", but(w, x, powers))),
        "hardswish": lambda: w.op(
            "divide",
            w.op("multiply", x, w.op("clip", w.op("add", x, number(x, 3)), min=0.0, max=6.0)),
            number(x, but(w, 6.0, 5.0)),
        ),
        "tanh": lambda: w.op(
            "divide",
            w.op("subtract", w.op("exp", w.op("add", x, x)), one),
            w.op("add", powers, one),
        ),
    }
    return w.choice(list(spellings.values()))()


def spread(w: Writer) -> Expr:
    """A variance or a deviation, by one of its formulas."""
    x = w.tensor("f", least=1)
    axis, keep = w.random.randrange(len(shape_of(x))), w.chance(0.6)
    mean = w.op("mean", x, axis=axis, keepdims=True)
    if w.chance(0.3):
        return w.op(w.choice(("variance", "std")), x, axis=axis, keepdims=keep)
    if w.chance(0.4):
        squares = w.op("mean", either_way(w, "multiply", x, x), axis=axis, keepdims=True)
        return w.op("subtract", squares, w.op("multiply", mean, mean))
    away = w.op("subtract", x, but(w, mean, x))
    squares = w.op("mean", w.op("multiply", away, away), axis=but(w, axis, 0), keepdims=keep)
    return w.op("sqrt", squares) if w.chance(0.4) else squares


# --- parts ------------------------------------------------------------------------------


def split_and_joined(w: Writer) -> Expr:
    """The parts of a split, in some order, perhaps with an operator on some of them."""
    x = w.tensor(least=1)
    axis = w.random.randrange(len(shape_of(x)))
    sections = w.choice([2, 3, (1,), (1, 2)])
    value = call("split", x, indices_or_sections=sections, axis=axis)
    whole = w.emit(value)
    count = sections if isinstance(sections, int) else len(sections) + 1
    parts = [w.emit(TupleGetItem(whole, k)) for k in range(count)]
    if w.chance(0.3):
        w.random.shuffle(parts)
    if w.chance(0.6) and dtype_of(x) != "bool":
        name = w.choice(("abs", "negative", "nn.relu")) if dtype_of(x)[0] in "fi" else "abs"
        parts = [w.op(name, p) if w.chance(0.7) else p for p in parts]
    return w.op("concat", Tuple(tuple(parts)), axis=but(w, axis, 0))


def slice_of_slice(w: Writer) -> Expr:
    """Several slices, perhaps with something in between."""
    x = w.tensor(least=1)
    for _ in range(w.choice((1, 2, 3))):
        axis = w.random.randrange(len(shape_of(x)))
        if "(" in dims.text(shape_of(x)[axis]):  # nested minima are unrealistic and slow
            raise Rejected
        begin, end = w.choice((0, 0, 1, -2)), w.choice((1, 2, 4, -1, 100))
        x = w.op(
            "strided_slice",
            x,
            shape((begin,)),
            shape((end,)),
            axes=(axis,),
            strides=(w.choice((1, 1, 2)),),
        )
        if w.chance(0.4):
            x = w.op(w.choice(("abs", "flatten", "permute_dims")), x)
            if not shape_of(x):
                break
    return x


def repeated(w: Writer) -> Expr:
    """Movements that cancel, or almost."""
    x = w.tensor(least=1)
    rank = len(shape_of(x))
    there = tuple(w.random.sample(range(rank), rank))
    back = tuple(there.index(k) for k in range(rank))
    y = w.op("permute_dims", x, axes=there)
    if w.chance(0.6):
        y = w.op(w.choice(("maximum", "minimum", "add")), y, w.beside(y))
    return w.op("permute_dims", y, axes=but(w, back, there))

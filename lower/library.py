"""The kernel library: which kernels the schedules can run as one, and how well.

This is the table that extraction prices its cuts with.  What is accepted here is scheduled by
the anchor that is named; what is refused is cut in two by extraction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import Attr
from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.op import Op
from relax_egraph.ir.ops.slices import slice_of
from relax_egraph.ir.struct_info import Shape, ShapeStructInfo, TensorStructInfo
from relax_egraph.lower.library_operators import ROWS, schedule_alone

MOVES = frozenset({"broadcast_to", "permute_dims", "strided_slice"})
VIEWS = frozenset({"reshape", "flatten", "expand_dims", "squeeze"})
REDUCTIONS = frozenset({"sum", "max", "min", "mean"})
CHAINED = REDUCTIONS | {"nn.softmax"}
"""The operators that go through a row more than once."""

ATTENTION = frozenset({"nn.attention", "nn.attention_bias"})
KNOWN = MOVES | VIEWS | CHAINED | ATTENTION | {"matmul"}
"""The operators that kernels have as steps, beside the elementwise ones."""

VIEW = Schedule("view", flops=1.0, bandwidth=1.0)
ELEMENTWISE = Schedule("elementwise", flops=0.5, bandwidth=0.9)
STRIDED = Schedule("elementwise", flops=0.1, bandwidth=0.15)
COLUMNS = Schedule("generic", flops=0.2, bandwidth=0.8)
PLAIN = Schedule("generic", flops=0.02, bandwidth=0.2)


@dataclass(frozen=True, slots=True)
class Library:
    """The schedules of `lower.schedule`; implements extraction's ``KernelLibrary``.

    A kernel reads at most `max_inputs` tensors: each is a stream for the memory system, and
    an address in a register.
    """

    max_inputs: int = 12

    def schedule_of(self, kernel: Kernel) -> Schedule | None:
        """The schedule that runs `kernel` as one loop nest; ``None`` if there is none.

        Refused are unknown shapes, operators whose result depends on data or that call
        functions, views inside of larger kernels, and whatever does not fit a single anchor.
        """
        if not kernel.steps or not all(map(_is_lowerable, kernel.steps)):
            return None
        infos = [i.struct_info for i in kernel.inputs] + [s.struct_info for s in kernel.steps]
        if any(i.dims is None or i.dtype is None for i in infos):
            return None
        if sum(i.scalar is None for i in kernel.inputs) > self.max_inputs:
            return None
        if not all(_agrees(kernel, step) for step in kernel.steps):
            return None
        names = {step.op.name for step in kernel.steps}
        if names & ATTENTION:
            return _attention(kernel)
        if len(kernel.steps) == 1:
            return _single(kernel, kernel.steps[0])
        if "matmul" in names:
            return _matmul(kernel)
        return _rows(kernel) if names & CHAINED else _elementwise(kernel)

    def schedule_alone(
        self,
        op: Op,
        attrs: Mapping[str, Attr],
        operands: Sequence[TensorStructInfo],
        results: Sequence[TensorStructInfo],
    ) -> Schedule | None:
        """How `op` runs by loops of its own; ``None`` if it is called at run time."""
        return schedule_alone(op.name, attrs, operands, results)


def _is_lowerable(step: Step) -> bool:
    shapes = (o for o in step.operands if isinstance(o, ShapeStructInfo))
    known = step.op.elementwise or step.op.name in KNOWN
    return known and all(s.values is not None for s in shapes)


def _shape(kernel: Kernel, value: int) -> Shape:
    known = kernel.info(value).dims
    assert known is not None, "schedule_of refuses unknown shapes first"
    return known


def _same(a: Shape, b: Shape) -> bool:
    return a is b or (len(a) == len(b) and all(map(_equal, a, b)))


def _equal(a: Dim, b: Dim) -> bool:
    return a is b or dims.equal(a, b)


def _numbered(kernel: Kernel) -> list[tuple[int, Step]]:
    """The steps, with the number of the value that each makes."""
    return list(enumerate(kernel.steps, len(kernel.inputs)))


def _single(kernel: Kernel, step: Step) -> Schedule:
    """The schedule of a kernel of one step: every lowerable operator has one."""
    name = step.op.name
    if name in VIEWS:
        return VIEW
    if name == "permute_dims":
        return _movement(step)
    if name == "matmul":
        return _matmul(kernel) or _contraction(kernel, step)
    if name in CHAINED:
        return _rows(kernel) or (ROWS if _reduces_last_axis(kernel, step) else COLUMNS)
    return ELEMENTWISE


def _movement(step: Step) -> Schedule:
    keeps_last = _keeps_last_axis(step)
    return Schedule("movement", 1.0, 0.8 if keeps_last else 0.2)


def _axes(step: Step) -> tuple[int, ...]:
    """The axes of a permutation, counted from the front."""
    rank = step.struct_info.ndim
    axes = dict(step.attrs)["axes"]
    if not isinstance(axes, tuple):
        return tuple(range(rank))[::-1]
    return tuple(int(a) % rank for a in axes)


def _keeps_last_axis(step: Step) -> bool:
    axes = _axes(step)
    return not axes or axes[-1] == len(axes) - 1


def _elementwise(kernel: Kernel) -> Schedule | None:
    """Maps, broadcasts and permutations, of which all results have one shape."""
    steps = kernel.steps
    if not all(s.op.elementwise or s.op.name in MOVES for s in steps):
        return None
    shapes = [_shape(kernel, o) for o in kernel.outputs]
    if not all(_same(shape, shapes[0]) for shape in shapes):
        return None
    if all(s.op.name == "permute_dims" for s in steps):
        return None  # the composition of permutations is one, for a rule to find
    return ELEMENTWISE if all(map(_reads_along_rows, steps)) else STRIDED


def _reads_along_rows(step: Step) -> bool:
    """Whether neighbours of a row of the result are neighbours of a row of what is read."""
    if step.op.name == "permute_dims":
        return _keeps_last_axis(step)
    return step.op.name != "strided_slice" or dict(step.attrs)["strides"] in (None, _ones(step))


def _ones(step: Step) -> tuple[int, ...]:
    axes = dict(step.attrs)["axes"]
    return (1,) * len(axes) if isinstance(axes, tuple) else ()


def _is_slice_of_input(kernel: Kernel, step: Step) -> bool:
    return step.op.name == "strided_slice" and step.values[0] < len(kernel.inputs)


# --- proofs -----------------------------------------------------------------------------


def _agrees(kernel: Kernel, step: Step) -> bool:
    """Whether what loops need to know of extents and positions is proven."""
    match step.op.name:
        case "matmul":
            x, y = (_shape(kernel, v) for v in step.values)
            a, b = (x if len(x) > 1 else (1, *x)), (y if len(y) > 1 else (*y, 1))
            return _fit(a[:-2], b[:-2]) and dims.equal(a[-1], b[-2])
        case "broadcast_to":
            return _fit(_shape(kernel, step.values[0]), step.struct_info.dims or ())
        case "strided_slice":
            return _is_placed(_shape(kernel, step.values[0]), step)
        case name if name in ATTENTION:
            return _attends([_shape(kernel, v) for v in step.values])
        case _:
            return True


def _fit(a: Shape, b: Shape) -> bool:
    """Whether axes that meet are of one extent, or one of them is 1."""
    pairs = zip(reversed(a), reversed(b), strict=False)
    return all(x is y or 1 in (x, y) or dims.equal(x, y) for x, y in pairs)


def _is_placed(shape: Shape, step: Step) -> bool:
    """Whether positions are proven to count from the front, or from the end."""
    attrs = dict(step.attrs)
    axes, strides = attrs["axes"], attrs["strides"] or _ones(step)
    assert isinstance(axes, tuple)
    assert isinstance(strides, tuple)
    if attrs["assume_inbound"]:
        return True
    begin, end = (o.values or () for o in step.operands if isinstance(o, ShapeStructInfo))
    cuts = zip(axes, begin, end, strides, strict=True)
    return all(slice_of(shape[int(a)], b, e, int(s)) is not None for a, b, e, s in cuts)


def _attends(shapes: Sequence[Shape]) -> bool:
    """Whether keys, values and bias fit the queries: each head of theirs serves as many."""
    query, key, value, *bias = shapes
    batch, queries, heads, size = query
    have, want = (key[0], value[0], value[1], key[3]), (batch, batch, key[1], size)
    if not all(map(_equal, have, want)):
        return False
    scores = (batch, heads, queries)
    if not all(_same(b[3:], key[1:2]) and all(map(_repeats, b, scores)) for b in bias):
        return False
    return all(_equal(k, heads) or (k != 0 and dims.divides(k, heads)) for k in (key[2], value[2]))


def _repeats(a: Dim, b: Dim) -> bool:
    """Whether an extent `a` broadcasts to `b`."""
    return a == 1 or _equal(a, b)


# --- products ---------------------------------------------------------------------------


def _matmul(kernel: Kernel) -> Schedule | None:
    """One product of matrices that are inputs, and maps of it that keep its shape."""
    products = [(v, s) for v, s in _numbered(kernel) if s.op.name == "matmul"]
    if len(products) != 1:
        return None
    value, product = products[0]
    shape = _shape(kernel, value)
    if any(v >= len(kernel.inputs) or kernel.inputs[v].scalar is not None for v in product.values):
        return None
    if product.struct_info.dtype != "float32" or len(_shape(kernel, product.values[1])) < 2:
        return None
    for number, step in _numbered(kernel):
        if number == value:
            continue
        moved = step.op.name == "broadcast_to" or _is_slice_of_input(kernel, step)
        if not step.op.elementwise and not moved:
            return None
        if not _same(_shape(kernel, number), shape) and value in _below(kernel, number):
            return None
    if any(o != value and value not in _below(kernel, o) for o in kernel.outputs):
        return None
    if not shape or shape[-1] == 1:
        return None
    return _product_schedule(shape, _rows_of(kernel, product))


def _below(kernel: Kernel, value: int) -> set[int]:
    """The values that `value` is computed of."""
    found: set[int] = set()
    todo = [value]
    while todo:
        step = kernel.step(todo.pop())
        for operand in step.values if step else ():
            if operand not in found:
                found.add(operand)
                todo.append(operand)
    return found


def _rows_of(kernel: Kernel, product: Step) -> Dim:
    """How many rows each right operand is multiplied with."""
    x, y = (_shape(kernel, v) for v in product.values)
    if len(y) == 2:
        return dims.product(x[:-1])
    return x[-2] if len(x) > 1 else 1


_MEASURED_ROWS = ((1, 0.2), (2, 0.35), (3, 0.45), (5, 0.65))
"""The share of peak arithmetic up to a number of rows."""

_MEASURED_COLUMNS = ((16, 0.6), (48, 0.9))
"""The share of peak arithmetic up to a number of columns, which a full strip would have."""


def _product_schedule(shape: Shape, rows: Dim) -> Schedule:
    columns = shape[-1]
    flops = 0.9
    for most, share in _MEASURED_ROWS:
        if isinstance(rows, int) and rows <= most:
            flops = min(flops, share)
    for most, share in _MEASURED_COLUMNS:
        if isinstance(columns, int) and columns <= most:
            used = max(columns, 1)
            flops = min(flops, share * used / (-(-used // 16) * 16))
    return Schedule("matmul", flops, 0.8)


def _contraction(kernel: Kernel, step: Step) -> Schedule:
    """A product that the micro-kernel does not take: of another dtype, or with a column."""
    *_, y = (_shape(kernel, v) for v in step.values)
    return ROWS if len(y) == 1 else PLAIN


# --- attention --------------------------------------------------------------------------


def _attention(kernel: Kernel) -> Schedule | None:
    """One attention, the last step, which reads slices of its inputs where they lie."""
    *before, last = kernel.steps
    if last.op.name not in ATTENTION or kernel.outputs != (len(kernel.inputs) + len(before),):
        return None
    if not all(s.op.name in ("strided_slice", "reshape") for s in before):
        return None
    return schedule_alone(
        last.op.name, {}, [kernel.info(v) for v in last.values], (last.struct_info,)
    )


# --- rows -------------------------------------------------------------------------------


def _rows(kernel: Kernel) -> Schedule | None:
    """Reductions over trailing axes, and maps, that share the leading axes."""
    found = set(
        _depth(kernel, s)
        for s in kernel.steps
        if not s.op.elementwise
        and s.op.name != "broadcast_to"
        and not _is_slice_of_input(kernel, s)
    )
    depth = found.pop() if len(found) == 1 else None
    if depth is None:
        return None
    shapes = [_shape(kernel, v) for v, _ in _numbered(kernel)]
    rows = shapes[0][:depth]
    if any(len(s) < depth or not _same(s[:depth], rows) for s in shapes):
        return None
    return ROWS if depth == 0 or all(_aligned(kernel, s) for s in kernel.steps) else None


def _aligned(kernel: Kernel, step: Step) -> bool:
    """Whether broadcasting leaves the row axes of computed operands in their places."""
    if not step.op.elementwise and step.op.name != "broadcast_to":
        return True
    rank = step.struct_info.ndim
    computed = (v for v in step.values if kernel.step(v) is not None)
    return all(len(_shape(kernel, v)) == rank for v in computed)


def _reduced(kernel: Kernel, step: Step) -> set[int] | None:
    """The axes that `step` reduces; ``None`` if it is no reduction."""
    if step.op.name not in CHAINED:
        return None
    rank = len(_shape(kernel, step.values[0]))
    axis = dict(step.attrs)["axis"]
    if isinstance(axis, int):
        return {axis % rank}
    return {int(a) % rank for a in axis} if isinstance(axis, tuple) else set(range(rank))


def _depth(kernel: Kernel, step: Step) -> int | None:
    """How many leading axes a reduction keeps, if it reduces all others; else ``None``."""
    rank = len(_shape(kernel, step.values[0]))
    reduced = _reduced(kernel, step)
    depth = rank - len(reduced or ())
    return depth if reduced and reduced == set(range(depth, rank)) else None


def _reduces_last_axis(kernel: Kernel, step: Step) -> bool:
    """Whether a single reduction reads along contiguous memory."""
    reduced = _reduced(kernel, step) or set[int]()
    is_chain = step.op.name == "nn.softmax"
    return not is_chain and len(_shape(kernel, step.values[0])) - 1 in reduced

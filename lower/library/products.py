"""Kernels of a single matrix product or convolution, with maps of its result."""

from dataclasses import dataclass

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.kernel import Kernel, Schedule, Step
from relax_egraph.ir.struct_info import Shape
from relax_egraph.lower.library.maps import is_map
from relax_egraph.lower.library.operators import ROWS, schedule_of_operator
from relax_egraph.lower.library.proofs import numbered, same, shape_of

TILED = ("float32", "float64", "int32")
"""The dtypes of products that the micro-kernel computes."""

NARROW = ("int8", "bfloat16")
"""The storage dtypes of a right operand that a product widens to float32 while reading it."""

BANDWIDTH = 0.8
"""The share of peak bandwidth of a product with its maps."""

PLAIN = Schedule("generic", flops=0.02, bandwidth=0.2)


def product(kernel: Kernel) -> Schedule | None:
    """The schedule of a matrix product of inputs, and maps that keep its shape.

    The right input may be narrow.
    """
    p = product_of_inputs(kernel)
    if p is None or not _is_followed(kernel, p.value):
        return None
    return Schedule("matmul", share_of_product(p), BANDWIDTH)


@dataclass(frozen=True, slots=True)
class InnerProduct:
    """A matrix product in a kernel: the `value` that it computes, and its sizes.

    `right` is the dtype of the right operand as it is stored.
    """

    value: int
    shape: Shape
    rows: Dim
    depth: Dim
    right: str | None


def product_of_inputs(kernel: Kernel) -> InnerProduct | None:
    """The only product of `kernel`, if it is one of inputs of a `TILED` dtype.

    The right one of a float32 product may be narrow.
    """
    products = [(v, s) for v, s in numbered(kernel) if s.op.name == "matmul"]
    if len(products) != 1:
        return None
    value, product = products[0]
    shape, (left, right) = shape_of(kernel, value), product.values
    read = (left, _narrow(kernel, right))
    if any(v >= len(kernel.inputs) or kernel.inputs[v].scalar is not None for v in read):
        return None
    if product.struct_info.dtype not in TILED or len(shape_of(kernel, right)) < 2:
        return None
    if not shape or shape[-1] == 1:
        return None
    depth = shape_of(kernel, left)[-1]
    return InnerProduct(value, shape, _rows_of(kernel, product), depth, kernel.info(read[1]).dtype)


def _narrow(kernel: Kernel, value: int) -> int:
    """The narrow source of a right operand `value` that is widened to float32, else `value`."""
    step = kernel.step(value)
    if step is None or step.op.name != "astype" or step.struct_info.dtype != "float32":
        return value
    (source,) = step.values
    return source if kernel.info(source).dtype in NARROW else value


CONVOLUTIONS = frozenset(f"nn.conv{r}d{kind}" for r in (1, 2, 3) for kind in ("", "_transpose"))
"""The operators that move a window over data and sum over channels."""


def convolution(kernel: Kernel) -> Schedule | None:
    """The schedule of a convolution of inputs, and maps that keep its shape."""
    convolutions = [(v, s) for v, s in numbered(kernel) if s.op.name in CONVOLUTIONS]
    if len(convolutions) != 1:
        return None
    value, step = convolutions[0]
    in_phases = not step.op.name.endswith("_transpose") or dict(step.attrs)["groups"] == 1
    if len(kernel.steps) > 1 and not (step.struct_info.dtype == "float32" and in_phases):
        return None
    if any(v >= len(kernel.inputs) or kernel.inputs[v].scalar is not None for v in step.values):
        return None
    if not _is_followed(kernel, value):
        return None
    infos = [kernel.info(v) for v in step.values]
    return schedule_of_operator(step.op.name, dict(step.attrs), infos, (step.struct_info,))


def contraction(kernel: Kernel, step: Step) -> Schedule:
    """The schedule of a product that the micro-kernel does not support, by dtype or shape."""
    *_, y = (shape_of(kernel, v) for v in step.values)
    return ROWS if len(y) == 1 else PLAIN


def _is_followed(kernel: Kernel, value: int) -> bool:
    """Whether all other steps are maps, and those that depend on `value` have its shape."""
    shape, below = shape_of(kernel, value), dependents(kernel, value)
    for number, step in numbered(kernel):
        if number == value:
            continue
        if not is_map(kernel, step):
            return False
        if number in below and not same(shape_of(kernel, number), shape):
            return False
    return all(o == value or o in below for o in kernel.outputs)


def dependents(kernel: Kernel, value: int) -> frozenset[int]:
    """The values that depend on `value`."""
    values: set[int] = set()
    for number, step in numbered(kernel):
        if any(v == value or v in values for v in step.values):
            values.add(number)
    return frozenset(values)


def _rows_of(kernel: Kernel, product: Step) -> Dim:
    """The number of rows that each right operand is multiplied with."""
    x, y = (shape_of(kernel, v) for v in product.values)
    if len(y) == 2:
        return dims.product(x[:-1])
    return x[-2] if len(x) > 1 else 1


_MEASURED_ROWS = ((1, 0.2), (2, 0.35), (3, 0.45), (5, 0.65))
"""The share of peak arithmetic by the maximal number of rows."""

_MEASURED_NARROW_ROWS = ((1, 0.4), (2, 0.75))
"""The same for narrow right operands, which need less bandwidth."""

_MEASURED_COLUMNS = ((16, 0.6), (48, 0.9))
"""The share of peak arithmetic by the maximal number of columns, relative to a full strip."""


_WIDENED = {"bfloat16": (1.002, 0.96), "int8": (1.005, 0.98)}
"""Factors of the share for narrow right operands: up to `FEW_ROWS` (or a symbolic number), beyond.

For four layers of an encoder with weights in memory, the time of float32 divided by that of
bfloat16 is 1.81, 1.29, 1.00, 0.98, 0.95 for 1, 16, 64, 128 and 512 rows; for int8 it is 4.4, 1.34,
1.01, 1.00, 0.97.  So of two equally fast products the one with less memory is chosen.
"""

FEW_ROWS = 128


def share_of_product(p: InnerProduct) -> float:
    """The share of peak arithmetic of a product, by its sizes."""
    columns, rows, right = p.shape[-1], p.rows, p.right
    few, many = _WIDENED.get(str(right), (1.0, 1.0))
    flops = 0.9 * (many if isinstance(rows, int) and rows > FEW_ROWS else few)
    for most, share in _MEASURED_NARROW_ROWS if right in NARROW else _MEASURED_ROWS:
        if isinstance(rows, int) and rows <= most:
            flops = min(flops, share)
    for most, share in _MEASURED_COLUMNS:
        if isinstance(columns, int) and columns <= most:
            used = max(columns, 1)
            flops = min(flops, share * used / (-(-used // 16) * 16))
    return flops

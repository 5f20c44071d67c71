"""Operators of which kernels are loops, but elements have a formula: rotations of pairs, sums."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.requirements import Requirement
from relax_egraph.ir.struct_info import Shape, TensorStructInfo
from relax_egraph.prove.algebra import cast
from relax_egraph.prove.conditions import Condition, Junction, Nonnegative, Zero
from relax_egraph.prove.digits import Indices, digit, quotient, remainder
from relax_egraph.prove.polynomial import ZERO, of, of_dim, product
from relax_egraph.prove.reading import NotExpressible, Reader
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.tensors import Tensor

Element: TypeAlias = Callable[[Indices], Sum]


def rotary_embedding(
    reader: Reader,
    info: TensorStructInfo,
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    *,
    interleaved: bool,
) -> Element:
    """Each pair ``(a, b)`` is ``(a · cos - b · sin, b · cos + a · sin)``; the rest stays."""
    size, count = x.extents[-1], cos.extents[-1]

    def at(index: Indices) -> Sum:
        *leading, i = index
        of_each = reader.decide(Zero(count - size))
        half = quotient(size, of(2)) if of_each else count
        if not of_each and not reader.decide(Nonnegative(half * 2 - 1 - i)):
            return x.at(index)
        if interleaved:
            second = reader.decide(Nonnegative(remainder(i, of(2)) - 1))
            pair, other = quotient(i, of(2)), i - 1 if second else i + 1
        else:
            second = reader.decide(Nonnegative(i - half))
            pair, other = (i - half, i - half) if second else (i, i + half)
        place = i if of_each else pair
        c, s = (_angle(reader, t, x, (*leading, place)) for t in (cos, sin))
        compute = reader.algebra.arithmetic
        here = compute("*", x.at(index), c, x.dtype)
        there = compute("*", x.at([*leading, other]), s, x.dtype)
        return compute("+" if second else "-", here, there, x.dtype)

    return at


def _angle(reader: Reader, angle: Tensor, x: Tensor, index: Indices) -> Sum:
    """An angle, of which all axes but the last broadcast to those of `x`."""
    added = len(x.shape) - len(angle.shape)
    inner: list[Any] = []
    for a, b, i in zip(angle.shape[:-1], x.shape[added:-1], index[added:-1], strict=True):
        same = dims.equal(a, b) or reader.solver.holds(Zero(of_dim(a) - of_dim(b)))
        if a != 1 and not same:
            raise NotExpressible("R.nn.rotary_embedding: whether an extent is 1 is not decided")
        inner.append(ZERO if a == 1 else i)
    return angle.at([*inner, index[-1]])


def rotary_shapes(x: Shape, cos: Shape, sin: Shape) -> Iterator[Requirement]:
    """What a rotary embedding requires of all axes but the last one."""
    for a, b in zip(cos, sin, strict=True):
        yield Requirement("==", a, b)
    for a, b in zip(cos[:-1], x[len(x) - len(cos) : -1], strict=True):
        yield Requirement("stretch", a, b)


def rotary_count(size: Dim, count: Dim) -> Condition:
    """There is an angle for each of an even number of elements, or for each of some pairs."""
    n, m = of_dim(size), of_dim(count)
    of_each = Junction("and", (Zero(m - n), Zero(remainder(n, of(2)))))
    return Junction("or", (of_each, Nonnegative(n - m * 2)))


def cumsum(
    reader: Reader,
    info: TensorStructInfo,
    data: Tensor,
    *,
    axis: int | None,
    dtype: str | None,
    exclusive: bool,
) -> Element:
    """The sum over all positions up to an index, or before it; of booleans, whether any holds."""
    result = str(info.dtype)
    place = 0 if axis is None else axis % len(data.shape)
    extent = product(data.extents) if axis is None else data.extents[place]

    def at(index: Indices) -> Sum:
        def element(inner: Indices) -> Sum:
            (k,) = inner
            if not reader.decide(Nonnegative(index[place] - k - int(exclusive))):
                return Sum()
            if axis is None:
                position: Sequence[Any] = [
                    digit(k, data.extents, n) for n in range(len(data.shape))
                ]
            else:
                position = [*index[:place], k, *index[place + 1 :]]
            return cast(reader.algebra, data.at(position), data.dtype, result)

        return reader.reduced("max" if result == "bool" else "+", result, [extent], element)

    return at

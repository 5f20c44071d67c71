"""Shapes and dtypes of operators by their own struct-info rules, and what these require.

A requirement on the left side is assumed, as the left side is well-typed.  One on the right side
has to follow, or the rule makes a term that is not well-typed.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy

from relax_egraph.errors import IllTyped
from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import PrimValue
from relax_egraph.ir.op import Op
from relax_egraph.ir.requirements import Requirement, recording
from relax_egraph.ir.struct_info import (
    PrimStructInfo,
    ShapeExpr,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.prove import functions
from relax_egraph.prove.choices import Choices, Impossible
from relax_egraph.prove.conditions import Condition, Junction, Nonnegative, Zero
from relax_egraph.prove.extents import Extents
from relax_egraph.prove.layouts import ON_IMAGES, info_of, signature
from relax_egraph.prove.nodes import Value, dtype_of, key_of, shape_of
from relax_egraph.prove.polynomial import of_dim
from relax_egraph.prove.reals import Comparison, as_float, excluded, is_computed, symbols_of
from relax_egraph.prove.running import rotary_count, rotary_shapes
from relax_egraph.prove.sums import Sum
from relax_egraph.prove.wholes import Wholes


class IllFormed(Exception):
    """The right side is not well-typed, or not proven to be."""


@dataclass
class Typing:
    """Types operators; `needed` are the conditions that have to follow for the right side.

    The left side applies some operators `on_images`, and unknown functions to `operands` of some
    dtypes.
    """

    extents: Extents
    choices: Choices
    needed: list[tuple[str, Condition]]
    numbers: list[Comparison]
    wholes: Wholes = field(default_factory=Wholes)
    on_images: set[str] = field(default_factory=set[str])
    operands: set[tuple[str, ...]] = field(default_factory=set[tuple[str, ...]])

    def of(
        self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any], *, assumed: bool
    ) -> StructInfo:
        """The struct info of a result; its requirements are `assumed`, or have to follow."""
        present = list(operands)
        while present and present[-1] is None:
            present.pop()
        if None in operands[: op.required]:
            raise _ill_typed(f"{op} lacks an operand", assumed)
        if op.elementwise:
            self.of_one_shape(op, present, assumed)
        if op.name in ON_IMAGES:
            return self.of_image(op, present, attrs, assumed)
        if op.name in ("nn.attention", "nn.attention_bias") and assumed:
            self.grouped(present)
        infos = [_info(o.kind, v) for o, v in zip(op.operands, present, strict=False)]
        if op.name == "nn.rotary_embedding":
            return self.rotary(op, present, assumed)
        if op.name == "nn.pad":
            return _padded(op, present[0], attrs, assumed)
        try:
            with recording() as undecided:
                info = op.rule(*infos, **{k: plain_attribute(v) for k, v in attrs.items()})
        except IllTyped as problem:
            raise _ill_typed(str(problem), assumed) from None
        if assumed:
            self.of_numbers(op, infos, attrs)
        else:
            self.of_every_number(op, infos, attrs)
        for requirement in (*undecided, *_promised(op, operands, attrs)):
            if assumed:
                self.assume(requirement, str(op))
            else:
                self.needed += [(f"{op} is well-typed", _condition(requirement))]
        return info

    def of_image(
        self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any], assumed: bool
    ) -> StructInfo:
        """An operator on images is well-typed if the left side applies it to operands alike."""
        try:
            image, applied = info_of(op, operands, attrs), signature(op, operands, attrs)
        except Impossible:
            raise _ill_typed(f"{op} of operands of other ranks", assumed) from None
        if assumed:
            self.on_images.add(applied)
        elif applied not in self.on_images:
            raise IllFormed(f"whether {op} is well-typed is not known: no premise applies it so")
        shape = ShapeExpr(self.extents.of(image.dims))
        return TensorStructInfo(shape, image.dtype, image.ndim)

    def of_unknown(self, function: str, dtypes: Sequence[str], *, assumed: bool) -> None:
        """An unknown function is well-typed if the left side applies it to the same dtypes."""
        applied = (function, *dtypes)
        if assumed:
            self.operands.add(applied)
        elif applied not in self.operands:
            raise IllFormed(f"the {function} is not known to accept {', '.join(dtypes)}")

    def of_numbers(self, op: Op, infos: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Assume that a symbolic number is not NaN, or whole, where the operator refuses others."""
        for name, number in attrs.items():
            if isinstance(number, Sum) and as_float(number) is None:
                if _refused(op, infos, attrs, name, math.nan):
                    self.numbers.append(Comparison("<=", number, functions.real(math.inf)))
                if _refused(op, infos, attrs, name, 0.5) and not is_computed(number):
                    self.wholes.note(number, _integers(op, infos, attrs, name))

    def of_every_number(self, op: Op, infos: Sequence[Any], attrs: Mapping[str, Any]) -> None:
        """Raise `IllFormed` if a symbolic number may have a value that the operator refuses."""
        for name, number in attrs.items():
            if not isinstance(number, Sum) or as_float(number) is not None:
                continue
            if dtype := _integers(op, infos, attrs, name):
                if not self.wholes.has(dtype, number):
                    raise IllFormed(f"whether the number of {op} is one of {dtype} is not known")
                continue
            for value in self.at_limits(number):
                if self.is_excluded(number, value):
                    continue
                if problem := _refused(op, infos, attrs, name, value):
                    raise IllFormed(problem)

    def at_limits(self, number: Sum) -> Iterator[float]:
        """Values to ask of: special ones, and those around what it is compared with, and 0 and 1.

        Operators refuse NaN, rates that are not between 0 and 1, and fractions.
        """
        yield from (math.nan, math.inf, -math.inf)
        compared = (x for c in self.numbers for x in (c.a, c.b) if number.key in (c.a.key, c.b.key))
        limits = (0.0, 1.0, *(float(x) for x in map(as_float, compared) if x is not None))
        for at in filter(math.isfinite, limits):
            if self.wholes.is_whole(number):
                low, high = float(math.floor(at)), float(math.ceil(at))
                yield from (low - 1, low, high, high + 1)
            else:
                yield from (math.nextafter(at, -math.inf), at, math.nextafter(at, math.inf))

    def is_excluded(self, number: Sum, value: float) -> bool:
        """Whether a number is never `value`; what is computed is NaN if one of its operands is."""
        symbols = symbols_of(number) if math.isnan(value) else (number,)
        return all(excluded(self.numbers, s, value) for s in symbols)

    def of_one_shape(self, op: Op, operands: Sequence[Any], assumed: bool) -> None:
        """Operands of an elementwise operator have one shape: broadcasts are written out."""
        shapes = [shape_of(v) for v in operands if isinstance(v, Value)]
        for shape in shapes[1:]:
            if len(shape) != len(shapes[0]):
                raise _ill_typed(f"{op} of operands of other ranks", assumed)
            for a, b in zip(shapes[0], shape, strict=True):
                if assumed:
                    self.extents.equate(a, b)
                elif not dims.equal(a, b):
                    same = Zero(of_dim(dims.sub(a, b)))
                    self.needed.append((f"{op} has operands of one shape", same))

    def rotary(self, op: Op, operands: Sequence[Value], assumed: bool) -> StructInfo:
        """A rotary embedding has an angle for each element, or for each pair."""
        x, cos, sin = map(shape_of, operands)
        ranks = (TensorStructInfo(None, dtype_of(v), len(shape_of(v))) for v in operands)
        try:
            op.rule(*ranks, interleaved=False)
        except IllTyped as problem:
            raise _ill_typed(str(problem), assumed) from None
        if len(cos) != len(sin):
            raise _ill_typed(f"{op} of angles of other ranks", assumed)
        where = f"{op} is well-typed"
        if not assumed:
            shapes = map(_condition, rotary_shapes(x, cos, sin))
            self.needed += [(where, c) for c in (*shapes, rotary_count(x[-1], cos[-1]))]
            return operands[0].info
        for requirement in rotary_shapes(x, cos, sin):
            self.assume(requirement, str(op))
        if self.choices.of(f"angles {key_of(operands[1])} of {key_of(operands[0])}", (True, False)):
            self.extents.equate(cos[-1], x[-1])
            self.extents.divides(2, x[-1])
        else:
            self.extents.at_least(x[-1], dims.mul(cos[-1], 2))
        return operands[0].info

    def grouped(self, operands: Sequence[Any]) -> None:
        """The heads of a query are a multiple of those of key and value."""
        query, key, value = map(shape_of, operands[:3])
        if len(query) == len(key) == len(value) == 4:
            for other in (key, value):
                self.extents.divides(other[2], query[2])

    def assume(self, requirement: Requirement, label: str) -> None:
        """Assume a requirement."""
        a, b = requirement.a, requirement.b
        match requirement.kind:
            case "==" if isinstance(a, sympy.Mod) and b == 0:
                self.extents.divides(dims.canonical(a.args[1]), dims.canonical(a.args[0]))
            case "==":
                self.extents.equate(a, b)
            case "stretch":
                self.one_of(f"{a} stretches to {b}", ((a, b), (a, 1)))
            case "broadcast":
                self.one_of(f"{a} and {b} broadcast", ((a, b), (a, 1), (b, 1)))
            case "<=":
                if label.startswith(("R.nn.conv", "R.strided_slice")):
                    self.extents.at_least(b, a)
            case "window":
                self.extents.note(_condition(requirement))

    def one_of(self, label: str, equations: Sequence[tuple[Dim, Dim]]) -> None:
        """Assume one of several equations."""
        self.extents.equate(
            *self.choices.of(label, equations, lambda pair: not dims.distinct(*pair))
        )


def _promised(op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Iterator[Requirement]:
    """What the caller of a slice promises: that its positions are within the axis, in order."""
    if op.name != "strided_slice" or not attrs["assume_inbound"]:
        return
    x, begin, end = operands
    axes, strides = attrs["axes"], attrs["strides"]
    for n, (axis, first, last) in enumerate(zip(axes, begin, end, strict=True)):
        extent = shape_of(x)[axis]
        stride = strides[n] if strides else 1
        a, b = (dims.add(at, extent) if dims.prove_ge(-1, at) else at for at in (first, last))
        if stride < 0:  # from the last of them downwards
            a, b = dims.add(b, 1), dims.add(a, 1)
        yield Requirement("<=", 0, a)
        yield Requirement("<=", a, b)
        yield Requirement("<=", b, extent)


def _condition(r: Requirement) -> Condition:
    a, b = of_dim(r.a), of_dim(r.b)
    match r.kind:
        case "==":
            return Zero(a - b)
        case "<=":
            return Nonnegative(b - a)
        case "stretch":
            return Junction("or", (Zero(a - b), Zero(a - 1)))
        case "broadcast":
            return Junction("or", (Zero(a - b), Zero(a - 1), Zero(b - 1)))
        case "window":
            return Junction("or", (Nonnegative(-a + 1), Nonnegative(b - a)))


def _ill_typed(reason: str, assumed: bool) -> Exception:
    """What is raised of an ill-typed term: no instance has it, unless a rule makes it."""
    return Impossible() if assumed else IllFormed(reason)


def _refused(
    op: Op, infos: Sequence[Any], attrs: Mapping[str, Any], name: str, value: float
) -> str:
    """Why an operator refuses a value of an attribute; empty if it does not."""
    try:
        op.rule(*infos, **{k: plain_attribute(v) for k, v in attrs.items()} | {name: value})
    except IllTyped as problem:
        return str(problem)
    return ""


def _integers(op: Op, infos: Sequence[Any], attrs: Mapping[str, Any], name: str) -> str:
    """The dtype of which a number has to be an integer; empty if it may be another."""
    others = (_refused(op, infos, attrs, name, value) for value in (0.5, math.inf))
    return str(infos[0].dtype) if all(others) else ""


def _padded(op: Op, data: Value, attrs: Mapping[str, Any], assumed: bool) -> StructInfo:
    """The struct info of a padded tensor, whose widths may be symbols of 0 or more."""
    widths, shape = attrs["pad_width"], shape_of(data)
    if len(widths) != 2 * len(shape):
        raise _ill_typed(f"{op} has {len(widths)} widths for {len(shape)} axes", assumed)
    extents = [dims.add(d, dims.add(widths[2 * k], widths[2 * k + 1])) for k, d in enumerate(shape)]
    return TensorStructInfo(ShapeExpr(tuple(extents)), dtype_of(data), len(extents))


def plain_attribute(value: Any) -> Any:
    """An attribute; a float stands for a symbolic number, on which no shape depends."""
    if not isinstance(value, Sum):
        return value
    known = as_float(value)
    return 1.0 if known is None else float(known)


def _info(kind: str, value: Any) -> StructInfo | None:
    match kind:
        case "tensors":
            return TupleStructInfo(tuple(v.info for v in value))
        case "shape":
            return ShapeStructInfo(value, len(value))
        case "tensor":
            return None if value is None else value.info
        case _ if value is None:
            return None
        case _:
            return _of_host(value)


def _of_host(value: PrimValue) -> StructInfo:
    number = value.value
    if isinstance(number, float):
        return PrimStructInfo(value.dtype, None, number)
    return PrimStructInfo(value.dtype, number)


def tensor_info(info: StructInfo) -> TensorStructInfo:
    """`info` of a tensor of known shape and dtype; raises `IllFormed`."""
    if not isinstance(info, TensorStructInfo) or info.dims is None or info.dtype is None:
        raise IllFormed(f"the shape of {info} is known only at run time")
    return info

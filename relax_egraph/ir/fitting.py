"""Operands that fit together only at some sizes are checked to be of these.

    y = R.add(x, p)    # x: R.Tensor((b, s, 8)), p: R.Tensor((1, min(64, s), 8)): of no known shape
    -->
    p1 = R.match_cast(p, R.Tensor((1, s, 8), "float32"), "R.add of …: the shapes do not broadcast")
    y = R.add(x, p1)   # R.Tensor((b, s, 8))

A program that gets beyond the operator is at such a size.  The check fails where the operator would
have failed, and says what that would have said.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.equations import Equation, equations_of
from relax_egraph.ir.expr import Call, Expr, ShapeExpr, Tuple, Var
from relax_egraph.ir.op import infer
from relax_egraph.ir.solving import consequence, put
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

Cast: TypeAlias = Callable[[Expr, Shape, str], Expr]
"""Emits the check that a tensor or shape has certain extents, or is refused; returns its result."""


def fitted(call: Call, cast: Cast) -> Call:
    """`call` of an operator, its operands `cast` to what they must be for it to have a result."""
    passed = set[Equation]()
    while (step := _next(call, passed)) is not None:
        equation, old, new = step
        passed.add(equation)
        put_new = _Put(old, new, lambda e, s, refusal=equation.refusal: cast(e, s, refusal))
        args = tuple(map(put_new.leaf, call.args))
        if put_new.checked:
            call = replace(call, args=args)
            call = replace(call, struct_info=infer(call))
    return call


def _next(call: Call, passed: set[Equation]) -> tuple[Equation, Dim, Dim] | None:
    """The first equation of the operands that has a consequence, and this."""
    for equation in equations_of(call):
        if equation not in passed and (found := consequence(equation)) is not None:
            return equation, *found
    return None


@dataclass(slots=True)
class _Put:
    """Puts extents `new` for `old` into operands; `checked` are those that were cast."""

    old: Dim
    new: Dim
    cast: Callable[[Expr, Shape], Expr]
    checked: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])

    def leaf(self, value: Expr) -> Expr:
        match value:
            case Tuple(fields=fields):
                return Tuple(tuple(map(self.leaf, fields)))
            case Var(struct_info=TensorStructInfo(dims=shape)) if shape is not None:
                return self._checked(value, shape) or value
            case ShapeExpr(values=values):
                if not self.checked:  # else it is known by now
                    self._checked(value, values)
                return ShapeExpr(self._put(values))
            case _:
                return value

    def _checked(self, value: Expr, shape: Shape) -> Expr | None:
        """The result of the check, if `old` is in `shape`."""
        now = self._put(shape)
        if now != shape and value not in self.checked:
            self.checked[value] = self.cast(value, now)
        return self.checked.get(value)

    def _put(self, shape: Shape) -> Shape:
        return tuple(put(d, self.old, self.new) for d in shape)


def claimed(value: Expr, shape: Shape) -> StructInfo:
    """The struct info of `value`, a tensor or a shape, with the extents `shape`."""
    if isinstance(value.struct_info, TensorStructInfo):
        return tensor(shape, value.struct_info.dtype)
    return ShapeStructInfo(shape, len(shape))

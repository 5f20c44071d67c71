"""Checks of operands that fit together only at some sizes.

    y = R.add(x, p)    # x: R.Tensor((b, s, 8)), p: R.Tensor((1, min(64, s), 8)); an unknown shape
    -->
    p1 = R.match_cast(p, R.Tensor((1, s, 8), "float32"), "R.add of …: the shapes do not broadcast")
    y = R.add(x, p1)   # R.Tensor((b, s, 8))

    y = R.nn.conv1d(x, w)    # x: R.Tensor((b, 4, s)), windows of 10
    -->
    R.match_cast(R.shape([max(10, s)]), R.Shape([s]), "R.nn.conv1d of …: along W the window …")
    y = R.nn.conv1d(x, w)    # R.Tensor((b, 4, s - 9))

Behind the operator the size is such a size.  The check fails where the operator would fail, with
the operator's message.  Only the result of the check has the new extents: other uses of `p` keep
those of `p`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from relax_egraph.ir.dims import Dim
from relax_egraph.ir.equations import Equation, equations_of
from relax_egraph.ir.expr import Call, Expr, ShapeExpr, Tuple, Var
from relax_egraph.ir.lower_bounds import LowerBounds
from relax_egraph.ir.op import infer
from relax_egraph.ir.solving import consequence, differences, replace_part
from relax_egraph.ir.struct_info import (
    Shape,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    tensor,
)

Cast: TypeAlias = Callable[[Expr, Shape, str], Expr]
"""Emits a check of the extents of a tensor or shape, with a message; returns its result."""


def fit(call: Call, cast: Cast, bounds: LowerBounds) -> Call:
    """`call` of an operator with its operands `cast` to the extents that it needs of them.

    `bounds` are the bounds that hold before the call; its checks add to them.
    """
    passed = set[Equation]()
    while (step := _next(call, passed)) is not None:
        equation, old, new = step
        passed.add(equation)
        checks = _Checks(old, new, equation.refusal, cast)
        args = tuple(map(checks.operand, call.args))
        lower = list(differences(old, new))
        if equation.is_bound:
            _check(old, new, equation.refusal, cast, bounds)
        if checks.results:
            bounds.extend(lower)
            call = replace(call, args=args)
            call = replace(call, struct_info=infer(call))
    return call


def fit_windows(call: Call, cast: Cast, bounds: LowerBounds) -> None:
    """Check by `cast` that the windows of `call` fit into its operand, as `fit` does."""
    for equation in equations_of(call):
        if equation.is_bound and (replacement := consequence(equation)) is not None:
            _check(*replacement, equation.refusal, cast, bounds)


def _check(old: Dim, new: Dim, refusal: str, cast: Cast, bounds: LowerBounds) -> None:
    """Check that `old`, a maximum of `new`, is `new`, unless `bounds` prove it."""
    lower = list(differences(old, new))
    if not (lower and all(map(bounds.prove_nonnegative, lower))):
        cast(ShapeExpr((old,)), (new,), refusal)
        bounds.extend(lower)


def _next(call: Call, passed: set[Equation]) -> tuple[Equation, Dim, Dim] | None:
    """The first equation of the operands that has a consequence, with the consequence."""
    for equation in equations_of(call):
        if equation not in passed and (replacement := consequence(equation)) is not None:
            return equation, *replacement
    return None


@dataclass(slots=True)
class _Checks:
    """The checks that the extent `old` of operands is `new`, and their results."""

    old: Dim
    new: Dim
    refusal: str
    cast: Cast
    results: dict[Expr, Expr] = field(default_factory=dict[Expr, Expr])

    def operand(self, value: Expr) -> Expr:
        match value:
            case Tuple(fields=fields):
                return Tuple(tuple(map(self.operand, fields)))
            case Var(struct_info=TensorStructInfo(dims=shape) | ShapeStructInfo(values=shape)):
                return value if shape is None else self._result(value, shape)
            case ShapeExpr(values=values):
                if not self.results:  # else an operand has been checked
                    self._result(value, values)
                return ShapeExpr(self._replaced(values))
            case _:
                return value

    def _result(self, value: Expr, shape: Shape) -> Expr:
        """The result of the check, or `value` if no extent of its `shape` has `old` in it."""
        wanted = self._replaced(shape)
        if wanted == shape:
            return value
        if value not in self.results:
            self.results[value] = self.cast(value, wanted, self.refusal)
        return self.results[value]

    def _replaced(self, shape: Shape) -> Shape:
        return tuple(replace_part(d, self.old, self.new) for d in shape)


def with_extents(value: Expr, shape: Shape) -> StructInfo:
    """The struct info of `value`, a tensor or a shape, with the extents `shape`."""
    if isinstance(value.struct_info, TensorStructInfo):
        return tensor(shape, value.struct_info.dtype)
    return ShapeStructInfo(shape, len(shape))

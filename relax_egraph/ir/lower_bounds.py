"""Lower bounds of dimensions that hold behind checks: ``s >= 10`` behind a window of 10.

A bound ``s // 5 - 9 >= 0`` is used with ``s // 5`` replaced by ``9 + t``, for any ``t >= 0``.
"""

from collections.abc import Iterable

import sympy

from relax_egraph.ir import dims
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.symbol_ranges import inward, nonnegative

_SLACK = "lower_bounds.slack"


class LowerBounds:
    """The bounds of one straight line of bindings, in the order of their checks.

    A branch begins with those `before` it.
    """

    def __init__(self, before: "LowerBounds | None" = None) -> None:
        self._nonnegative = list(before._nonnegative) if before else list[Dim]()
        self._over_slack = (
            list(before._over_slack) if before else list[tuple[sympy.Expr, sympy.Expr]]()
        )

    def add(self, dim: Dim) -> None:
        """Note that `dim` is 0 or more."""
        self._nonnegative.append(dim)
        terms = () if isinstance(dim, int) else sympy.Add.make_args(dim)
        candidates = [t for t in terms if isinstance(t, sympy.Symbol | sympy.floor)]
        if candidates:
            term = max(candidates, key=_size)
            slack = dims.symbol(f"{_SLACK}{len(self._over_slack)}")
            self._over_slack.append((term, sympy.expand(slack - (dim - term))))

    def extend(self, several: Iterable[Dim]) -> None:
        """Note that each of `several` dimensions is 0 or more."""
        for dim in several:
            self.add(dim)

    def prove_nonnegative(self, dim: Dim) -> bool:
        """Whether `dim` is proven to be 0 or more."""
        if any(_holds(dims.sub(dim, low)) for low in (0, *self._nonnegative)):
            return True
        slackened = dim
        for term, value in reversed(self._over_slack):  # a later term may contain an earlier one
            if not isinstance(slackened, int):
                slackened = dims.canonical(slackened.xreplace({term: value}))
        return _holds(slackened)

    def simplified(self, dim: Dim) -> Dim:
        """`dim` without operands of its maxima that another one is proven to reach."""
        if isinstance(dim, int) or not self._nonnegative:
            return dim
        maxima = {e: self._simplified_maximum(e) for e in dim.atoms(sympy.Max)}
        return dims.canonical(dim.xreplace(maxima)) if maxima else dim

    def _simplified_maximum(self, maximum: sympy.Max) -> sympy.Expr:
        operands = [dims.canonical(a) for a in sorted(maximum.args, key=str)]
        for a in list(operands):
            if any(b != a and self.prove_nonnegative(dims.sub(b, a)) for b in operands):
                operands.remove(a)
        return sympy.sympify(dims.maximum(*operands))


def _holds(dim: Dim) -> bool:
    """Whether sympy knows that `dim` is 0 or more; nothing is simplified, which takes long."""
    return nonnegative(inward(sympy.sympify(dim)))


def _size(term: sympy.Expr) -> tuple[int, str]:
    return sum(1 for _ in sympy.preorder_traversal(term)), str(term)

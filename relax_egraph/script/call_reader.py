"""What readers of calls have in common."""

import ast
from collections.abc import Callable

from relax_egraph.ir.expr import Expr
from relax_egraph.script.operators import Operators
from relax_egraph.script.scope import Scope


class CallReader:
    """Reads calls in `scope`: `value` reads an expression, `leaf` an operand."""

    def __init__(
        self,
        scope: Scope,
        operators: Operators,
        value: Callable[[ast.expr], Expr],
        leaf: Callable[[ast.expr], Expr],
    ) -> None:
        self._scope = scope
        self._source = scope.source
        self._operators = operators
        self._value = value
        self._leaf = leaf

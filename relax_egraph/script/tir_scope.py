"""The scope at a point of a loop function: names, extents of loops, buffers to allocate."""

import ast
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from relax_egraph.errors import ScriptError
from relax_egraph.script.source import Source
from relax_egraph.script.tir_declarations import TirDeclarations
from relax_egraph.script.tir_expressions import TirExpressions
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar


@dataclass(slots=True)
class TirScope:
    """The state of the reader of one loop function.

    `extents` are those of the loop variables, for ``T.axis.remap``; `allocs` are
    the buffers of the innermost open block, or of the function.
    """

    expressions: TirExpressions
    declared: TirDeclarations
    extents: dict[TirVar, TirExpr] = field(default_factory=dict[TirVar, TirExpr])
    allocs: list[Buffer] = field(default_factory=list[Buffer])

    @property
    def source(self) -> Source:
        """The text."""
        return self.expressions.source

    @contextmanager
    def names(self) -> Generator[None]:
        """Restore the meanings of names afterwards."""
        names = self.expressions.names
        before = dict(names)
        yield
        names.clear()
        names.update(before)
        self.declared.name_symbols()

    def variable(self, node: ast.expr) -> TirVar:
        """A new variable with the name of `node`."""
        if not isinstance(node, ast.Name):
            raise self.error(node, f"`{ast.unparse(node)}` is no variable")
        variable = TirVar(node.id)
        self.expressions.names[node.id] = variable
        return variable

    def loop_variables(
        self, names: Sequence[ast.expr], extents: Sequence[TirExpr], place: ast.AST
    ) -> list[TirVar]:
        """A new variable for each extent."""
        if len(names) != len(extents):
            message = f"{len(names)} loop variables for {len(extents)} extents"
            raise self.error(place, message)
        variables = [self.variable(name) for name in names]
        self.extents.update(zip(variables, extents, strict=True))
        return variables

    def error(self, node: ast.AST, message: str, note: str = "") -> ScriptError:
        """An error at the beginning of `node`, to be raised."""
        return self.source.error(node, message, note)


def elements(node: ast.expr | None) -> list[ast.expr]:
    """The elements of a tuple or list; anything else is its only element."""
    if node is None:
        return []
    return node.elts if isinstance(node, ast.Tuple | ast.List) else [node]

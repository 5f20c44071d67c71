"""The scope at a point of a script: functions, variables, symbols, and the open block."""

import ast
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from relax_egraph.errors import nearest
from relax_egraph.ir.expr import (
    Binding,
    Constant,
    DataflowVar,
    Expr,
    FunctionAttr,
    GlobalVar,
    Var,
    VarBinding,
)
from relax_egraph.ir.names import unused
from relax_egraph.ir.struct_info import StructInfo
from relax_egraph.script.annotations import Annotations
from relax_egraph.script.source import Source


@dataclass(slots=True)
class Globals:
    """The names that every function of a module sees.

    `aliases` are the names of the module itself: ``cls``, ``Module``; `loops`
    are those of its functions that are loop functions, `impure` those that have side effects,
    `in_place` those whose side effects are calls that write in place.
    """

    source: Source
    aliases: set[str]
    constants: tuple[Constant, ...] = ()
    symbols: set[str] = field(default_factory=set[str])
    functions: dict[str, GlobalVar] = field(default_factory=dict[str, GlobalVar])
    attrs: dict[str, FunctionAttr] = field(default_factory=dict[str, FunctionAttr])
    global_infos: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    loops: set[str] = field(default_factory=set[str])
    impure: set[str] = field(default_factory=set[str])
    in_place: set[str] = field(default_factory=set[str])

    def function(self, name: str, node: ast.expr) -> GlobalVar:
        """The function `name` of the module."""
        if name not in self.functions:
            raise self.source.error(
                node, f"no function {name} in the module", nearest(name, self.functions)
            )
        return self.functions[name]


@dataclass(slots=True)
class Scope:
    """The variables of a function, and the block into which bindings go.

    `bound` are the declared `symbols` that a parameter or an earlier cast binds.
    `hidden` are the names of dataflow variables whose block is closed; `node` is the syntax of
    the whole function, whose names differ from those generated for nested calls.  In an `older`
    function symbols need no declaration, annotations only add information, and a packed function
    in a dataflow block counts as pure.
    """

    module: Globals
    node: ast.FunctionDef
    older: bool = False
    variables: dict[str, Var] = field(default_factory=dict[str, Var])
    symbols: set[str] = field(default_factory=set[str])
    bound: set[str] = field(default_factory=set[str])
    bindings: list[Binding] = field(default_factory=list[Binding])
    outputs: frozenset[str] | None = None
    hidden: set[str] = field(default_factory=set[str])
    annotations: Annotations = field(init=False)
    _taken: set[str] = field(default_factory=set[str])
    _numbers: dict[str, int] = field(default_factory=dict[str, int])
    _shadowed: list[tuple[str, Var | None]] = field(default_factory=list[tuple[str, Var | None]])

    def __post_init__(self) -> None:
        self.annotations = Annotations(self.source, self.symbols, self.variables)

    @property
    def source(self) -> Source:
        """The text."""
        return self.module.source

    @property
    def in_dataflow(self) -> bool:
        """Whether the open block is a dataflow block; `outputs` are then its output names."""
        return self.outputs is not None

    def variable(self, node: ast.Name) -> Var:
        """The variable of a name."""
        variable = self.variables.get(node.id)
        if variable is not None:
            return variable
        if node.id in self.hidden:
            raise self.source.error(
                node,
                f"{node.id} is visible only in its dataflow block",
                f"give it out: R.output({node.id})",
            )
        note = nearest(node.id, self.variables)
        raise self.source.error(node, f"undefined variable {node.id}", note)

    def declare(self, name: str, info: StructInfo) -> Var:
        """A new variable of the open block, which shadows an older one of its name."""
        if self.outputs is None or name in self.outputs:
            var = Var(name, info)
        else:
            var = DataflowVar(name, info)
            self._shadowed.append((name, self.variables.get(name)))
        self.variables[name] = var
        return var

    def emit(self, value: Expr) -> Var:
        """Bind `value` to a variable whose name the function does not use."""
        var = self.declare(self.fresh(), value.struct_info)
        self.bindings.append(VarBinding(var, value))
        return var

    def fresh(self) -> str:
        """A name that the function does not use: ``lv`` in a dataflow block, else ``gv``."""
        if not self._taken:
            names = (n.id for n in ast.walk(self.node) if isinstance(n, ast.Name))
            self._taken.update(names, self.variables)
        return unused("lv" if self.in_dataflow else "gv", self._taken, self._numbers)

    def hide_new(self, visible: Mapping[str, Var], outputs: Collection[str]) -> None:
        """Hide the variables that are not in `visible`, except those of `outputs`."""
        new = [n for n, v in self.variables.items() if visible.get(n) is not v and n not in outputs]
        for name in new:
            if name in visible:
                self.variables[name] = visible[name]
            else:
                del self.variables[name]
                self.hidden.add(name)

    def close_dataflow(self) -> None:
        """Hide the dataflow variables of the open block."""
        for name, before in reversed(self._shadowed):
            if before is None or isinstance(before, DataflowVar):
                self.variables.pop(name, None)
                self.hidden.add(name)
            else:
                self.variables[name] = before
        self._shadowed.clear()
        self.outputs = None

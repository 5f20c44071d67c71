"""Reads blocks of loop functions: ``with T.block("b"):``, its axes, its condition, its init."""

import ast
from collections.abc import Callable, Mapping, Sequence

from relax_egraph.script.literals import read_attrs, read_string
from relax_egraph.script.source import arguments, dotted
from relax_egraph.script.tir_scope import TirScope, elements
from relax_egraph.tir.expr import TirExpr, TirVar
from relax_egraph.tir.stmt import BlockAxis, For, IfThenElse, Seq, Stmt, TirBlock, seq

_KINDS: Mapping[str, str] = {"spatial": "S", "S": "S", "reduce": "R", "R": "R"}
_REDUCE = frozenset({"T.reduce_axis", "te.reduce_axis"})

_HINTS = ("meta_schedule.", "schedule_rule", "software_pipeline", "layout_free_", "pragma_")
_HINT_NAMES = ("axis", "script_parsing_detect_access", "buffer_dim_align", "double_buffer_scope")


def check_hints(scope: TirScope, node: ast.expr) -> None:
    """Refuse annotations of a block or loop, except hints for a scheduler of TVM."""
    for name in read_attrs(scope.source, node, "an annotation"):
        if not name.startswith(_HINTS) and name not in _HINT_NAMES:
            message = f"the annotation {name!r} has no meaning here"
            note = f"dropped without loss are: {', '.join(f'{h}…' for h in _HINTS)}"
            raise scope.error(node, message, note)


class BlockReader:
    """Reads one block; `sequence` reads statements and leaves those of a block to `own`."""

    def __init__(self, scope: TirScope, body: Callable[[Sequence[ast.stmt]], Stmt]) -> None:
        self._scope = scope
        self._body = body
        self._axes: list[BlockAxis] = []
        self._init: Stmt | None = None
        self._where: TirExpr | None = None

    def read(
        self,
        node: ast.With,
        call: ast.Call,
        sequence: Callable[[Sequence[ast.stmt], Callable[[ast.stmt], bool]], list[Stmt]],
    ) -> Stmt:
        """The block, inside loops over its axes if it declares their extents."""
        name, extents = self._head(node, call)
        names = [v for item in node.items for v in elements(item.optional_vars)]
        names += [item.context_expr for item in node.items[1:]]
        with self._scope.names():
            loops = self._loops(names, extents, node)
            outside, self._scope.allocs = self._scope.allocs, []
            body = sequence(node.body, self.own)
            allocs, self._scope.allocs = tuple(self._scope.allocs), outside
        inner, init = seq(*body) if body else Seq(()), self._init
        if self._where is not None:
            inner = IfThenElse(self._where, inner)
            init = None if init is None else IfThenElse(self._where, init)
        result: Stmt = TirBlock(name, tuple(self._axes), inner, init, allocs)
        for variable in reversed(loops):
            result = For(variable, self._scope.extents[variable], "serial", result)
        return result

    def own(self, node: ast.stmt) -> bool:
        """Read a statement that only a block may have; whether `node` is one."""
        match node:
            case ast.With(items=[ast.withitem(ast.Call(func=func))]) if dotted(func) == "T.init":
                if self._init is not None:
                    raise self._scope.error(node, "a block has one T.init")
                self._init = self._body(node.body)
            case ast.Assign(targets=[target], value=ast.Call(func=func) as call) if dotted(
                func
            ).startswith("T.axis."):
                self._axes += self._axis_of(target, call)
            case ast.Expr(value=ast.Call() as call) if dotted(call.func) == "T.where":
                if self._where is not None or len(call.args) != 1:
                    raise self._scope.error(node, "a block has one T.where of one condition")
                self._where = self._scope.expressions.condition(call.args[0])
            case ast.Expr(value=ast.Call() as call) if dotted(call.func) == "T.bind":
                self._bind(call)
            case ast.Expr(value=ast.Call() as call) if dotted(call.func) == "T.block_attr":
                for listed in arguments(self._scope.source, call, ("attrs",)).values():
                    check_hints(self._scope, listed)
            case _:
                return False
        return True

    # --- the form with the extents first ------------------------------------------------

    def _head(self, node: ast.With, call: ast.Call) -> tuple[str, list[ast.expr]]:
        """The name, and the extents of ``with T.block([128, 128]) as [i, j]:``."""
        match call.args:
            case [ast.List() | ast.Tuple() as listed, *rest]:
                extents = elements(listed)
            case [ast.Constant(value=str()), *_] | []:
                extents, rest = [], call.args
            case _ if node.items[0].optional_vars is None:
                extents, rest = [], call.args
            case _:
                extents, rest = call.args, []
        plain = ast.copy_location(ast.Call(call.func, rest, call.keywords), call)
        by_name = arguments(self._scope.source, plain, ("name", "no_realize"))
        if "name" not in by_name:
            return "block", extents
        return read_string(self._scope.source, by_name["name"], "a block's name"), extents

    def _loops(
        self, names: Sequence[ast.expr], extents: Sequence[ast.expr], node: ast.With
    ) -> list[TirVar]:
        """The loops around the block, and its axes; no loops where ``T.bind`` has the values."""
        kinds = ["R" if _is_reduce(e) else "S" for e in extents]
        sizes = [self._scope.expressions.index(_extent(e)) for e in extents]
        bound = {
            arg.id: value
            for s in node.body
            if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)
            if dotted(s.value.func) == "T.bind" and len(s.value.args) == 2
            for arg, value in [s.value.args]
            if isinstance(arg, ast.Name)
        }
        written = [n for n in names if not (isinstance(n, ast.Name) and n.id in bound)]
        if len(names) != len(extents) or (bound and written):
            message = f"{len(names)} axes for {len(extents)} extents"
            if bound:
                message = "T.bind says the values of some axes, not of all"
            raise self._scope.error(node, message)
        loops = [] if bound else [TirVar(f"{ast.unparse(n)}_") for n in names]
        self._scope.extents.update(zip(loops, sizes, strict=False))
        values: list[TirExpr] = [*loops] or [
            self._scope.expressions.index(bound[n.id]) for n in names if isinstance(n, ast.Name)
        ]
        for name, kind, size, value in zip(names, kinds, sizes, values, strict=True):
            self._axes.append(self._axis(name, kind, size, value))
        return loops

    def _bind(self, call: ast.Call) -> None:
        """Check that ``T.bind(i, value)``, which the head has read, is about an axis."""
        axes = [axis.var for axis in self._axes]
        name = call.args[0] if call.args else call
        axis = self._scope.expressions.names.get(name.id) if isinstance(name, ast.Name) else None
        if len(call.args) != 2 or axis not in axes:
            raise self._scope.error(call, "T.bind takes an axis of the block and its value")

    # --- axes -------------------------------------------------------------------------

    def _axis_of(self, target: ast.expr, node: ast.Call) -> list[BlockAxis]:
        name = dotted(node.func).removeprefix("T.axis.")
        if name == "remap":
            return self._remapped(target, node)
        if name not in _KINDS or len(node.args) != 2 or node.keywords:
            message = f"unsupported axis `{ast.unparse(node)}`"
            note = "the axes are T.axis.spatial(extent, value), T.axis.reduce(extent, value)"
            raise self._scope.error(node, message, note)
        extent, binding = map(self._scope.expressions.index, map(_extent, node.args))
        return [self._axis(target, _KINDS[name], extent, binding)]

    def _remapped(self, target: ast.expr, node: ast.Call) -> list[BlockAxis]:
        targets = elements(target)
        match node.args:
            case [ast.Constant(value=str(kinds)), ast.List(elts=loops) | ast.Tuple(elts=loops)]:
                pass
            case _:
                message = 'T.axis.remap takes kinds and loop variables: T.axis.remap("SR", [i, k])'
                raise self._scope.error(node, message)
        if not len(targets) == len(kinds) == len(loops) or set(kinds) - {"S", "R"}:
            message = f"{len(targets)} axes of kinds {kinds!r} for {len(loops)} loop variables"
            raise self._scope.error(node, message)
        bindings = [self._scope.expressions.index(loop) for loop in loops]
        axes: list[BlockAxis] = []
        for name, kind, binding, loop in zip(targets, kinds, bindings, loops, strict=True):
            if not isinstance(binding, TirVar) or binding not in self._scope.extents:
                message = f"`{ast.unparse(loop)}` is no loop variable"
                raise self._scope.error(loop, message)
            axes.append(self._axis(name, kind, self._scope.extents[binding], binding))
        return axes

    def _axis(self, target: ast.expr, kind: str, extent: TirExpr, binding: TirExpr) -> BlockAxis:
        variable = self._scope.variable(target)
        return BlockAxis(variable, extent, "spatial" if kind == "S" else "reduce", binding)


def _is_reduce(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in _REDUCE


def _extent(node: ast.expr) -> ast.expr:
    """The extent of a range from 0: ``(0, n)``, ``T.reduce_axis(0, n)``, or plain ``n``."""
    match node:
        case ast.Tuple(elts=[ast.Constant(value=0), extent]):
            return extent
        case ast.Call(args=[*_, extent]) if _is_reduce(node):
            return extent
        case _:
            return node

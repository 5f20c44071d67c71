"""Reads loop functions: ``@T.prim_func``, its loops, blocks and stores."""

import ast
from collections.abc import Mapping, Sequence

from relax_egraph.errors import ScriptError
from relax_egraph.ir.expr import Attr
from relax_egraph.script.literals import read_attrs, read_literal, read_string
from relax_egraph.script.scope import Globals
from relax_egraph.script.signatures import declared_symbols, read_options
from relax_egraph.script.source import arguments, dotted
from relax_egraph.script.tir_declarations import TirDeclarations
from relax_egraph.script.tir_expressions import Meaning, TirExpressions
from relax_egraph.tir.expr import Buffer, TirExpr, TirVar
from relax_egraph.tir.stmt import (
    BlockAxis,
    For,
    IfThenElse,
    LoopKind,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
    seq,
)

LOOPS: Mapping[str, LoopKind] = {
    "range": "serial",
    "T.serial": "serial",
    "T.grid": "serial",
    "T.parallel": "parallel",
    "T.vectorized": "vectorized",
    "T.unroll": "unrolled",
}
_BLOCKS = frozenset({"T.block", "T.sblock"})
_IGNORED = frozenset({"T.reads", "T.writes"})


def read_prim_func(module: Globals, node: ast.FunctionDef) -> PrimFunc:
    """The loop function that `node` writes; raises `ScriptError`."""
    return _PrimFuncReader(module, node).read()


class _PrimFuncReader:
    """Reads one function.

    `_extents` are the extents of the loop variables, which ``T.axis.remap`` takes over;
    `_allocs` are the buffers of the innermost open block, or of the function.
    """

    def __init__(self, module: Globals, node: ast.FunctionDef) -> None:
        self.node = node
        self.source = module.source
        self.expressions = TirExpressions(self.source)
        self.names = self.expressions.names
        self.attrs: dict[str, Attr] = {}
        if read_options(node, module, ("private",)).get("private"):
            self.attrs["private"] = True
        self._declared = TirDeclarations(module, node, self.names)
        self._extents: dict[TirVar, TirExpr] = {}
        self._allocs: list[Buffer] = []

    def read(self) -> PrimFunc:
        """The whole function."""
        body = self._body(self.node.body)
        params = self._declared.params()
        outputs = self.attrs.pop("num_outputs", 1)
        if not isinstance(outputs, int) or not 0 <= outputs <= len(params):
            message = f"num_outputs is {outputs!r}, but {self.node.name} has {len(params)} buffers"
            raise self._error(self.node, message)
        scalars, allocs = tuple(self._declared.scalars), tuple(self._allocs)
        return PrimFunc(params, body, outputs, scalars, allocs, self.attrs)

    # --- statements -------------------------------------------------------------------

    def _body(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements in a scope of their own."""
        before = dict(self.names)
        made = [s for node in nodes for s in self._statement(node)]
        self._leave(before)
        return seq(*made) if made else Seq(())

    def _leave(self, before: Mapping[str, Meaning]) -> None:
        self.names.clear()
        self.names.update(before)
        self._declared.name_symbols()

    def _statement(self, node: ast.stmt) -> list[Stmt]:
        """What a statement does: one thing, or nothing where it only declares."""
        match node:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                return [self._store(target, value)]
            case ast.Assign() if names := declared_symbols(node):
                self._declared.symbols.update(names)
                self._declared.name_symbols()
                return []
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                if dotted(func) == "T.match_buffer":
                    self._declared.match_buffer(name, call)
                    return []
                if dotted(func) == "T.alloc_buffer":
                    self._allocs.append(self._declared.buffer(name, call, alloc=True))
                    return []
            case ast.For(orelse=[]):
                return [self._loops(node)]
            case ast.With(items=[ast.withitem(context_expr=ast.Call() as call)]):
                if dotted(call.func) in _BLOCKS:
                    return [self._block(node, call)]
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.expressions.condition(test)
                otherwise = self._body(orelse) if orelse else None
                return [IfThenElse(condition, self._body(body), otherwise)]
            case ast.Expr(value=ast.Call() as call):
                return self._effect(call)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case _:
                pass
        written = ast.unparse(node).splitlines()[0]
        raise self._error(node, f"unsupported statement `{written}`")

    def _store(self, target: ast.Subscript, value: ast.expr) -> Store:
        buffer, indices = self.expressions.element(target)
        stored = self.expressions.typed(value, buffer.dtype)
        if stored.dtype != buffer.dtype:
            message = f"{buffer.name} holds {buffer.dtype}, but the value is {stored.dtype}"
            raise self._error(value, message)
        return Store(buffer, indices, stored)

    def _effect(self, node: ast.Call) -> list[Stmt]:
        name = dotted(node.func)
        if name in _IGNORED:
            return []
        if name == "T.func_attr" and len(node.args) == 1:
            self.attrs.update(read_attrs(self.source, node.args[0]))
            return []
        if name == "T.call_intrin":
            return [self._intrinsic(node)]
        raise self._error(node, f"unsupported statement `{ast.unparse(node)}`")

    def _intrinsic(self, node: ast.Call) -> TensorIntrinsic:
        if not node.args or node.keywords:
            raise self._error(node, "T.call_intrin takes a name, addresses, and scalars")
        name = read_string(self.source, node.args[0], "the name of an intrinsic")
        buffers: list[tuple[Buffer, tuple[TirExpr, ...]]] = []
        scalars: list[TirExpr] = []
        for arg in node.args[1:]:
            if not isinstance(arg, ast.Call) or dotted(arg.func) != "T.address_of":
                scalars.append(self.expressions.index(arg))
            elif scalars:
                raise self._error(arg, "T.call_intrin takes the addresses before the scalars")
            elif len(arg.args) != 1:
                raise self._error(arg, "T.address_of takes one element of a buffer")
            else:
                buffers.append(self.expressions.element(arg.args[0]))
        return TensorIntrinsic(name, tuple(buffers), tuple(scalars))

    # --- loops ------------------------------------------------------------------------

    def _loops(self, node: ast.For) -> Stmt:
        kind, extents = self._header(node)
        names = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
        if len(names) != len(extents):
            message = f"{len(names)} loop variables for {len(extents)} extents"
            raise self._error(node.target, message)
        before = dict(self.names)
        variables = [self._variable(name) for name in names]
        self._extents.update(zip(variables, extents, strict=True))
        result = self._body(node.body)
        for variable, extent in reversed(list(zip(variables, extents, strict=True))):
            result = For(variable, extent, kind, result)
        self._leave(before)
        return result

    def _header(self, node: ast.For) -> tuple[LoopKind, list[TirExpr]]:
        call = node.iter
        name = dotted(call.func) if isinstance(call, ast.Call) else ""
        if not isinstance(call, ast.Call) or name not in LOOPS or call.keywords:
            message = f"unsupported loop over `{ast.unparse(call)}`"
            raise self._error(call, message, f"the loops are: {', '.join(LOOPS)}")
        bounds = call.args
        if name != "T.grid" and len(bounds) == 2:
            if read_literal(self.source, bounds[0]) != 0:
                raise self._error(bounds[0], "a loop runs from 0")
            bounds = bounds[1:]
        if name != "T.grid" and len(bounds) != 1:
            raise self._error(call, f"{name} takes one extent")
        return LOOPS[name], [self.expressions.index(b) for b in bounds]

    def _variable(self, node: ast.expr) -> TirVar:
        if not isinstance(node, ast.Name):
            raise self._error(node, f"`{ast.unparse(node)}` is no variable")
        variable = TirVar(node.id)
        self.names[node.id] = variable
        return variable

    # --- blocks -----------------------------------------------------------------------

    def _block(self, node: ast.With, call: ast.Call) -> TirBlock:
        given = arguments(self.source, call, ("name",))
        name = read_string(self.source, given["name"], "a block's name") if given else "block"
        before = dict(self.names)
        outside, self._allocs = self._allocs, []
        axes: list[BlockAxis] = []
        body: list[Stmt] = []
        init: Stmt | None = None
        for statement in node.body:
            match statement:
                case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))]) if (
                    dotted(func) == "T.init"
                ):
                    if init is not None:
                        raise self._error(statement, "a block has one T.init")
                    init = self._body(statement.body)
                case ast.Assign(targets=[target], value=ast.Call(func=func) as made) if dotted(
                    func
                ).startswith("T.axis."):
                    axes += self._axes(target, made)
                case _:
                    body += self._statement(statement)
        allocs, self._allocs = tuple(self._allocs), outside
        self._leave(before)
        return TirBlock(name, tuple(axes), seq(*body) if body else Seq(()), init, allocs)

    def _axes(self, target: ast.expr, node: ast.Call) -> list[BlockAxis]:
        name = dotted(node.func).removeprefix("T.axis.")
        if name == "remap":
            return self._remapped(target, node)
        kinds = {"spatial": "S", "S": "S", "reduce": "R", "R": "R"}
        if name not in kinds or len(node.args) != 2 or node.keywords:
            message = f"unsupported axis `{ast.unparse(node)}`"
            note = "the axes are T.axis.spatial(extent, value), T.axis.reduce(extent, value)"
            raise self._error(node, message, note)
        extent, binding = map(self.expressions.index, node.args)
        return [self._axis(target, kinds[name], extent, binding)]

    def _remapped(self, target: ast.expr, node: ast.Call) -> list[BlockAxis]:
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        match node.args:
            case [ast.Constant(value=str(kinds)), ast.List(elts=loops) | ast.Tuple(elts=loops)]:
                pass
            case _:
                message = 'T.axis.remap takes kinds and loop variables: T.axis.remap("SR", [i, k])'
                raise self._error(node, message)
        if not len(targets) == len(kinds) == len(loops) or set(kinds) - {"S", "R"}:
            message = f"{len(targets)} axes of kinds {kinds!r} for {len(loops)} loop variables"
            raise self._error(node, message)
        bindings = [self.expressions.index(loop) for loop in loops]
        axes: list[BlockAxis] = []
        for name, kind, binding, loop in zip(targets, kinds, bindings, loops, strict=True):
            if not isinstance(binding, TirVar) or binding not in self._extents:
                message = f"`{ast.unparse(loop)}` is no loop variable"
                raise self._error(loop, message)
            axes.append(self._axis(name, kind, self._extents[binding], binding))
        return axes

    def _axis(self, target: ast.expr, kind: str, extent: TirExpr, binding: TirExpr) -> BlockAxis:
        variable = self._variable(target)
        return BlockAxis(variable, extent, "spatial" if kind == "S" else "reduce", binding)

    def _error(self, node: ast.AST, message: str, note: str = "") -> ScriptError:
        return self.source.error(node, message, note)

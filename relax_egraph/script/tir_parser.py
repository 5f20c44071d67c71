"""Reads loop functions: ``@T.prim_func``, its loops, blocks and stores."""

import ast
from collections.abc import Callable, Mapping, Sequence

from relax_egraph.errors import ScriptError
from relax_egraph.ir.expr import FunctionAttr
from relax_egraph.script.grid_indices import several_indices
from relax_egraph.script.literals import read_attrs, read_literal, read_string
from relax_egraph.script.scope import Globals
from relax_egraph.script.signatures import declared_symbols, read_options
from relax_egraph.script.source import dotted
from relax_egraph.script.tir_blocks import BlockReader, check_hints
from relax_egraph.script.tir_declarations import TirDeclarations
from relax_egraph.script.tir_expressions import TirExpressions
from relax_egraph.script.tir_lets import Let, as_let, read_let
from relax_egraph.script.tir_scope import TirScope, elements
from relax_egraph.tir.expr import Buffer, TirExpr
from relax_egraph.tir.stmt import (
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
_REGIONS = frozenset({"T.reads", "T.writes"})


def _block_of(kept: tuple[Buffer, Stmt], rest: Sequence[Stmt]) -> TirBlock:
    """The block that is the scope of a scalar in a buffer: each run of it has its own buffer."""
    buffer, store = kept
    return TirBlock(buffer.name, (), seq(store, *rest), None, (buffer,))


def _is_pragma(node: ast.Call) -> bool:
    """Whether ``T.attr(node, key, value)`` is a hint for TVM's code generators."""
    match node.args:
        case [_, ast.Constant(value=str(key)), _]:
            return key.startswith("pragma_")
        case _:
            return False


def read_prim_func(module: Globals, node: ast.FunctionDef) -> PrimFunc:
    """The loop function of `node`; raises `ScriptError`."""
    return _PrimFuncReader(module, node).read()


class _PrimFuncReader:
    """Reads one function."""

    def __init__(self, module: Globals, node: ast.FunctionDef) -> None:
        self.node = node
        self.source = module.source
        self.expressions = TirExpressions(self.source)
        self.attrs: dict[str, FunctionAttr] = {}
        if read_options(node, module, ("private", "s_tir")).get("private"):
            self.attrs["private"] = True
        self._declared = TirDeclarations(module, node, self.expressions.names)
        self._scope = TirScope(self.expressions, self._declared)

    def read(self) -> PrimFunc:
        """The whole function."""
        body = self._body(self.node.body)
        params = self._declared.params()
        outputs = self.attrs.pop("num_outputs", 1)
        if not isinstance(outputs, int) or not 0 <= outputs <= len(params):
            message = f"num_outputs is {outputs!r}, but {self.node.name} has {len(params)} buffers"
            raise self._error(self.node, message)
        scalars, allocs = tuple(self._declared.scalars), tuple(self._scope.allocs)
        return PrimFunc(params, body, outputs, scalars, allocs, self.attrs)

    # --- statements -------------------------------------------------------------------

    def _body(self, nodes: Sequence[ast.stmt]) -> Stmt:
        """The statements in a scope of their own."""
        with self._scope.names():
            statements = self._sequence(nodes)
        return seq(*statements) if statements else Seq(())

    def _sequence(
        self, nodes: Sequence[ast.stmt], own: Callable[[ast.stmt], bool] | None = None
    ) -> list[Stmt]:
        """Statements in order; inside a block, `own` reads some of them."""
        statements: list[Stmt] = []
        for number, node in enumerate(nodes):
            if own is not None and own(node):
                continue
            if self._declares(node):
                continue
            let = as_let(self._scope, node)
            if let is None:
                statements += self._statement(node)
            elif let.body is not None:
                statements.append(self._let(let, let.body))
            elif (kept := read_let(self._scope, let)) is None:
                continue
            elif own is not None:
                self._scope.allocs.append(kept[0])
                statements.append(kept[1])
            else:
                rest = self._sequence(nodes[number + 1 :])
                return [*statements, _block_of(kept, rest)]
        return statements

    def _let(self, let: Let, body: Sequence[ast.stmt]) -> Stmt:
        """``with T.let(v, value):``."""
        with self._scope.names():
            kept = read_let(self._scope, let)
            statements = self._sequence(body)
        if kept is None:
            return seq(*statements) if statements else Seq(())
        return _block_of(kept, statements)

    def _declares(self, node: ast.stmt) -> bool:
        """Read a declaration of symbols or of a buffer; whether `node` is one."""
        if names := declared_symbols(node):
            self._declared.symbols.update(names)
            self._declared.name_symbols()
            return True
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=func) as call):
                if dotted(func) == "T.match_buffer":
                    self._declared.match_buffer(name, call)
                    return True
                if dotted(func) == "T.alloc_buffer":
                    self._scope.allocs.append(self._declared.buffer(name, call, alloc=True))
                    return True
            case _:
                pass
        return False

    def _statement(self, node: ast.stmt) -> list[Stmt]:
        """The statements of `node`: one or none."""
        match node:
            case ast.Assign(targets=[ast.Subscript() as target], value=value):
                return [self._store(target, value)]
            case ast.AugAssign(target=ast.Subscript() as target, op=op, value=value):
                load = ast.Subscript(target.value, target.slice, ast.Load())
                total = ast.BinOp(ast.copy_location(load, target), op, value)
                return [self._store(target, ast.copy_location(total, node))]
            case ast.For(orelse=[]):
                return [self._loops(elements(node.target), node.iter, node.body)]
            case ast.With(items=[ast.withitem(ast.Call() as call), *others]):
                return [self._with(node, call, others)]
            case ast.If(test=test, body=body, orelse=orelse):
                condition = self.expressions.condition(test)
                otherwise = self._body(orelse) if orelse else None
                return [IfThenElse(condition, self._body(body), otherwise)]
            case ast.Expr(value=ast.Call() as call):
                return self._effect(call)
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case ast.While():
                raise self._while(node)
            case _:
                raise self._unsupported(node)

    def _with(self, node: ast.With, call: ast.Call, others: list[ast.withitem]) -> Stmt:
        name = dotted(call.func)
        if name == "T.block":
            return BlockReader(self._scope, self._body).read(node, call, self._sequence)
        if name in LOOPS:
            names = [v for item in node.items for v in elements(item.optional_vars)]
            names += [item.context_expr for item in others]
            return self._loops(names, call, node.body)
        if name == "T.While":
            raise self._while(node)
        raise self._unsupported(node)

    def _while(self, node: ast.stmt) -> ScriptError:
        message = "a loop of a loop function runs a number of times that is known when it begins"
        return self._error(node, message, "use `for i in range(n):`, with an `if` inside")

    def _unsupported(self, node: ast.stmt) -> ScriptError:
        written = ast.unparse(node).splitlines()[0]
        return self._error(node, f"unsupported statement `{written}`")

    def _store(self, target: ast.Subscript, value: ast.expr) -> Store:
        buffer, indices = self.expressions.element(target)
        stored = self.expressions.typed(value, buffer.dtype)
        if stored.dtype != buffer.dtype:
            message = f"{buffer.name} holds {buffer.dtype}, but the value is {stored.dtype}"
            raise self._error(value, message)
        return Store(buffer, indices, stored)

    def _effect(self, node: ast.Call) -> list[Stmt]:
        name = dotted(node.func)
        if name in _REGIONS:
            for region in node.args:
                self._region(region)
            return []
        if name == "T.evaluate" and len(node.args) == 1:
            if isinstance(node.args[0], ast.Call):
                return self._effect(node.args[0])
            self.expressions.index(node.args[0])
            return []
        if name == "T.assume" and len(node.args) == 1:
            self.expressions.condition(node.args[0])  # a fact without a use here
            return []
        if name == "T.attr" and _is_pragma(node):
            return []
        if name == "T.func_attr" and len(node.args) == 1:
            self.attrs.update(read_attrs(self.source, node.args[0]))
            return []
        if name == "T.call_intrin":
            return [self._intrinsic(node)]
        raise self._error(node, f"unsupported statement `{ast.unparse(node)}`")

    def _region(self, node: ast.expr) -> None:
        """Check that ``T.reads`` or ``T.writes`` names buffers; the rest is redundant."""
        for part in elements(node):
            named = part.value if isinstance(part, ast.Subscript) else part
            if not isinstance(named, ast.Name):
                raise self._error(part, f"`{ast.unparse(part)}` is no region of a buffer")
            self.expressions.buffer(named)

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

    def _loops(self, names: list[ast.expr], header: ast.expr, body: list[ast.stmt]) -> Stmt:
        """``for i in T.serial(n):``, and the older ``with T.grid(n) as i:``."""
        kind, extents = self._header(header)
        with self._scope.names():
            if len(names) == 1 < len(extents) and isinstance(names[0], ast.Name):
                names, body = several_indices(names[0], len(extents), body)
            variables = self._scope.loop_variables(names, extents, names[0] if names else header)
            result = self._body(body)
        for variable, extent in reversed(list(zip(variables, extents, strict=True))):
            result = For(variable, extent, kind, result)
        return result

    def _header(self, call: ast.expr) -> tuple[LoopKind, list[TirExpr]]:
        name = dotted(call.func) if isinstance(call, ast.Call) else ""
        if name == "T.thread_binding":
            message = (
                "T.thread_binding gives a loop to the threads of a GPU, this is a compiler for CPUs"
            )
            raise self._error(call, message, "use T.parallel, or T.serial")
        if not isinstance(call, ast.Call) or name not in LOOPS:
            raise self._no_loop(call)
        for keyword in call.keywords:
            if keyword.arg != "annotations":
                raise self._no_loop(call)
            check_hints(self._scope, keyword.value)
        bounds = call.args
        if name != "T.grid" and len(bounds) == 2:
            if read_literal(self.source, bounds[0]) != 0:
                raise self._error(bounds[0], "a loop runs from 0")
            bounds = bounds[1:]
        if name != "T.grid" and len(bounds) != 1:
            raise self._error(call, f"{name} takes one extent")
        return LOOPS[name], self.expressions.indices(bounds)

    def _no_loop(self, node: ast.expr) -> ScriptError:
        message = f"unsupported loop over `{ast.unparse(node)}`"
        return self._error(node, message, f"the loops are: {', '.join(LOOPS)}")

    def _error(self, node: ast.AST, message: str, note: str = "") -> ScriptError:
        return self.source.error(node, message, note)

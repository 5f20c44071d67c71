"""Reads functions of the graph level: signature, bindings, blocks, conditionals."""

import ast
from collections.abc import Mapping, Sequence

from relax_egraph.errors import ScriptError, nearest
from relax_egraph.ir.agreement import bare_symbols, common, free_symbols, in_scope, relation
from relax_egraph.ir.expr import (
    BindingBlock,
    Block,
    DataflowBlock,
    Expr,
    Function,
    FunctionAttr,
    If,
    SeqExpr,
    Var,
    VarBinding,
)
from relax_egraph.ir.refusals import holds
from relax_egraph.ir.shape_variables import outside
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    PrimStructInfo,
    tensor,
)
from relax_egraph.ir.walk import free_vars, is_leaf
from relax_egraph.script.bindings import Bindings
from relax_egraph.script.expressions import Expressions
from relax_egraph.script.literals import read_attrs
from relax_egraph.script.matches import as_conditional
from relax_egraph.script.meta_values import with_values
from relax_egraph.script.purity import has_effects, needs_order
from relax_egraph.script.scope import Globals, Scope
from relax_egraph.script.signatures import (
    declared_symbols,
    declares_symbol,
    is_older,
    leading_symbols,
    parameters,
    read_options,
    unquoted,
)
from relax_egraph.script.source import dotted
from relax_egraph.script.spellings import ATTRIBUTES

_NOT_IN_DATAFLOW: Mapping[type[ast.stmt], str] = {
    ast.If: "a conditional",
    ast.Match: "a conditional",
    ast.Return: "a return",
}


class FunctionReader:
    """Reads one function: the signature on construction, the body by `read`.

    Its struct info is known after construction, so that functions may call each other.  `outer` is
    the scope around a local function.
    """

    def __init__(self, module: Globals, node: ast.FunctionDef, outer: Scope | None = None) -> None:
        node = with_values(node)
        self.module = module
        self.node = node
        self.scope = Scope(module, node, is_older(node) or (outer is not None and outer.older))
        if outer is not None:
            self.scope.variables.update(outer.variables)
            self.scope.bound.update(outer.bound)
        self.scope.symbols.update(
            module.symbols if outer is None else outer.symbols, leading_symbols(node.body)
        )
        options = read_options(node, module, ("private", "pure"))
        impure = node.name in module.impure if outer is None else has_effects(node, module.impure)
        self.pure = options.get("pure", not impure)
        self.attrs: dict[str, FunctionAttr] = {"private": True} if options.get("private") else {}
        self.params = tuple(map(self._param, parameters(node, module)))
        self.scope.bound.update(*(bare_symbols(p.struct_info) for p in self.params))
        self._is_local = outer is not None
        self._visible = frozenset(self.scope.variables.values())
        self._told = frozenset(self.scope.bound)
        signature = self.scope.annotations.pattern(bare=self.scope.older)
        returns = unquoted(node.returns, module.source)
        self.ret = signature.struct_info(returns) if returns else None
        self._expressions = Expressions(self.scope)
        self._bindings = Bindings(self._expressions)
        self._blocks: list[Block] = []
        self._result: Expr | None = None

    @property
    def struct_info(self) -> FuncStructInfo:
        """The signature; without an annotation the result is an object."""
        params = tuple(p.struct_info for p in self.params)
        return FuncStructInfo(params, self.ret or ObjectStructInfo(), self.pure)

    def read(self) -> Function:
        """The whole function."""
        for number, statement in enumerate(self.node.body):
            if self._result is not None:
                raise self._error(statement, "a statement after the return")
            if number == 0 and _is_docstring(statement):
                continue
            self._statement(statement)
        if self._result is None:
            raise self._error(self.node, f"function {self.node.name} has no return")
        body = SeqExpr(tuple(self._blocks), self._result)
        known = outside(body.struct_info, self._visible)
        if self._is_local:
            known = in_scope(known, free_symbols(known) - (self.scope.bound - self._told))
        ret = self._bindings.checked(self.node.returns, self.ret, known, "the result")
        return Function(self.params, body, ret, self.pure, self.attrs)

    # --- statements -------------------------------------------------------------------

    def _statement(self, node: ast.stmt) -> None:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                if declares_symbol(value):
                    self._declare(node, [name])
                elif not self._names_the_module(value):
                    self._bindings.bind(name, value)
                else:
                    self.module.aliases.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                self._bindings.bind(name, value, node.annotation)
            case ast.Assign() if names := declared_symbols(node):
                self._declare(node, names)
            case ast.Assign(targets=[ast.Tuple() | ast.List() as target], value=value):
                self._bindings.unpack(target, value)
            case ast.Expr(value=ast.Call() as call):
                self._effect(call)
            case ast.With(items=[ast.withitem(context_expr=ast.Call(func=func))]):
                if dotted(func) != "R.dataflow":
                    raise self._error(node, f"unsupported block `with {dotted(func)}()`")
                self._dataflow(node)
            case ast.If():
                name, value = self._conditional(node)
                var = self.scope.declare(name, value.struct_info)
                self.scope.bindings.append(VarBinding(var, value))
            case ast.Match():
                self._statement(as_conditional(self.module.source, node))
            case ast.Return(value=ast.expr() as value):
                self._result = self._expressions.leaf(value)
                self._close_block()
            case ast.FunctionDef():
                self._local_function(node)
            case ast.Pass():
                pass
            case _:
                written = ast.unparse(node).splitlines()[0]
                raise self._error(node, f"unsupported statement `{written}`")

    def _declare(self, node: ast.stmt, names: Sequence[str]) -> None:
        for name in names:
            if name in self.scope.variables:
                raise self._error(node, f"{name} is a variable already, it cannot be a symbol")
        self.scope.symbols.update(names)

    def _effect(self, node: ast.Call) -> None:
        """A call as a statement: its result is bound to ``_``."""
        name = dotted(node.func)
        if name == "R.func_attr" and len(node.args) == 1:
            for key, value in read_attrs(self.module.source, node.args[0]).items():
                own = ATTRIBUTES.get(key)
                self.attrs[own or key] = bool(value) if own else value
        elif name == "R.output":
            raise self._error(node, "R.output must be the last statement of a dataflow block")
        else:
            self._bindings.bind("_", node)

    def _dataflow(self, node: ast.With) -> None:
        if self.scope.in_dataflow:
            raise self._error(node, "a dataflow block inside another")
        *statements, last = node.body
        match last:
            case ast.Expr(value=ast.Call(func=func, args=arguments)) if dotted(func) == "R.output":
                pass
            case _:
                raise self._error(
                    node, "the dataflow block has no R.output", "end it with R.output(…)"
                )
        outputs = frozenset(n.id for n in arguments if isinstance(n, ast.Name))
        if needs_order(statements, self.module.in_place):
            visible = dict(self.scope.variables)
            for statement in statements:
                self._statement(statement)
            self.scope.hide_new(visible, outputs)
            return
        self._close_block()
        self.scope.outputs = outputs
        for statement in statements:
            if type(statement) in _NOT_IN_DATAFLOW:
                what = _NOT_IN_DATAFLOW[type(statement)]
                raise self._error(statement, f"{what} inside a dataflow block")
            self._statement(statement)
        bound = {b.var.name for b in self.scope.bindings}
        for output in arguments:
            if not isinstance(output, ast.Name) or output.id not in bound:
                written = ast.unparse(output)
                message = f"R.output gives out {written}, which the block does not bind"
                raise self._error(output, message, nearest(written, sorted(bound)))
        self._blocks.append(DataflowBlock(tuple(self.scope.bindings)))
        self.scope.bindings.clear()
        self.scope.close_dataflow()

    def _local_function(self, node: ast.FunctionDef) -> None:
        if [dotted(d.func if isinstance(d, ast.Call) else d) for d in node.decorator_list] != [
            "R.function"
        ]:
            raise self._error(node, f"the local function {node.name} needs `@R.function`")
        reader = FunctionReader(self.module, node, self.scope)
        var = self.scope.declare(node.name, reader.struct_info)
        if all(p.name != node.name for p in reader.params):
            reader.scope.variables[node.name] = var
        function = reader.read()
        if var not in free_vars(function):
            var = self.scope.declare(node.name, function.struct_info)
        self.scope.bindings.append(VarBinding(var, function))

    def _close_block(self) -> None:
        if self.scope.bindings:
            self._blocks.append(BindingBlock(tuple(self.scope.bindings)))
            self.scope.bindings.clear()

    # --- conditionals -----------------------------------------------------------------

    def _conditional(self, node: ast.If) -> tuple[str, If]:
        condition = self._expressions.leaf(node.test)
        info = condition.struct_info
        is_host = isinstance(info, PrimStructInfo) and info.dtype == "bool"
        if not is_host and relation(tensor((), "bool"), info) == "contradiction":
            raise self._error(node.test, f"the condition is {info}, needs a boolean scalar")
        if not node.orelse:
            raise self._error(node, "`if` has no `else`, which must bind the same variable")
        name, true_branch, bound_inside = self._branch(node.body)
        other, false_branch, also_bound = self._branch(node.orelse)
        if name != other:
            message = f"the branches end with {name} and with {other}, need one variable"
            raise self._error(node.orelse[-1], message)
        result = common(true_branch.struct_info, false_branch.struct_info)
        result = in_scope(result, free_symbols(result) - bound_inside - also_bound)
        return name, If(condition, true_branch, false_branch, result)

    def _branch(self, statements: Sequence[ast.stmt]) -> tuple[str, SeqExpr, set[str]]:
        """The last variable, the branch with its value as result, and the symbols that it binds."""
        outside, bound = dict(self.scope.variables), set(self.scope.bound)
        blocks, self._blocks = self._blocks, []
        bindings, self.scope.bindings = self.scope.bindings, []
        for statement in statements:
            if isinstance(statement, ast.Return):
                raise self._error(statement, "`return` inside a branch")
            self._statement(statement)
        if not self.scope.bindings:
            raise self._error(statements[-1], "a branch must end with a binding")
        last = self.scope.bindings[-1]
        body: Expr = last.var
        is_known = holds(last.value.struct_info, last.var.struct_info)
        if isinstance(last, VarBinding) and is_leaf(last.value) and is_known:
            body = last.value
            self.scope.bindings.pop()
        self._close_block()
        branch = SeqExpr(tuple(self._blocks), body)
        self._blocks, self.scope.bindings = blocks, bindings
        self.scope.variables.clear()
        self.scope.variables.update(outside)
        bound_inside = self.scope.bound - bound
        self.scope.bound -= bound_inside
        return last.var.name, branch, bound_inside

    # --- parts ------------------------------------------------------------------------

    def _param(self, node: ast.arg) -> Var:
        if node.annotation is None:
            if self.scope.older:
                return self.scope.declare(node.arg, ObjectStructInfo())
            message = f"parameter {node.arg} has no annotation"
            raise self._error(node, message, f'write {node.arg}: R.Tensor((…), "float32")')
        info = self.scope.annotations.pattern().struct_info(node.annotation)
        return self.scope.declare(node.arg, info)

    def _names_the_module(self, node: ast.expr) -> bool:
        return (
            isinstance(node, ast.Name)
            and node.id in self.module.aliases
            and node.id not in self.scope.variables
        )

    def _error(self, node: ast.AST, message: str, note: str = "") -> ScriptError:
        return self.module.source.error(node, message, note)


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )

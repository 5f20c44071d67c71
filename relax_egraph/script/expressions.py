"""Reads expressions of the graph level: operators, calls, tuples, constants.

Operands that are calls are bound to variables first, so that the result is in the normal form of
the IR.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bind, relation, substituted
from relax_egraph.ir.expr import (
    Call,
    Expr,
    ExternFunc,
    GlobalVar,
    MatchCast,
    PrimValue,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.op import OPS, Op, infer, is_pure
from relax_egraph.ir.operators import find, near
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    ShapeStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
    shape_text,
    tensor,
)
from relax_egraph.ir.templates import extents_of
from relax_egraph.ir.walk import is_leaf
from relax_egraph.script.blocked_layouts import BLOCKABLE, BlockedLayouts
from relax_egraph.script.foreign import Foreign
from relax_egraph.script.leaves import condition, host_literal, metadata, prim_value, string
from relax_egraph.script.literals import (
    WRAPPERS,
    outer_constant,
    read_const,
    read_literal,
    read_string,
)
from relax_egraph.script.low_calls import LowCalls
from relax_egraph.script.memory_calls import MemoryCalls
from relax_egraph.script.operators import Operators, is_number
from relax_egraph.script.scope import Scope
from relax_egraph.script.source import Source, arguments, dotted

_Reader: TypeAlias = Callable[[ast.Call, StructInfo | None], Expr]
"""Reads a call other than of an operator; the second argument is the annotation."""


class Expressions:
    """Reads expressions in `scope`; raises `ScriptError`."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.source: Source = scope.source
        self._operators = Operators(scope, self.leaf)
        low = LowCalls(scope, self._operators, self.value, self.leaf)
        self._sinfo_args = low.sinfo_args
        self._blocked = BlockedLayouts(scope, self._operators, self.leaf)
        self._special: Mapping[str, _Reader] = {
            "R.const": lambda node, _: read_const(self.source, node),
            "R.shape": lambda node, _: ShapeExpr(scope.annotations.shape(node)),
            "R.ShapeExpr": lambda node, _: ShapeExpr(scope.annotations.shape(node)),
            "R.tuple": lambda node, _: self._tuple(node.args),
            "R.prim_value": lambda node, _: prim_value(scope, node),
            "R.str": lambda node, _: StringImm(string(self.source, node)),
            "R.ExternFunc": lambda node, _: ExternFunc(string(self.source, node)),
            "R.emit": self._emit,
            "R.match_cast": lambda node, _: self._cast(node),
            "R.match_shape": lambda node, _: self._cast(node),
            "R.call_tir": low.call_tir,
            "R.call_tir_inplace": low.call_tir,
            "R.call_tir_with_grad": low.call_tir,
            "R.call_dps": low.call_tir,
            "R.call_dps_packed": low.call_tir,
            "R.call_packed": low.call_packed,
            "R.call_pure_packed": low.call_packed,
            "R.call_inplace_packed": low.call_inplace_packed,
            "R.print": low.message,
            "R.assert_op": low.message,
            **Foreign(scope, self._operators, self.value, self.leaf).readers(),
            **MemoryCalls(scope, self._operators, self.value, self.leaf).readers(),
        }

    def value(self, node: ast.expr, declared: StructInfo | None = None) -> Expr:
        """The expression of `node`, whose operands are variables or leaves.

        `declared` is the annotation, which decides older forms.
        """
        match node:
            case ast.Name(id=name):
                if name not in self.scope.variables:
                    if name in self.scope.symbols:
                        return PrimValue(dims.symbol(name))
                    if name in self.scope.module.functions:
                        return self.scope.module.functions[name]
                return self.scope.variable(node)
            case ast.Call():
                return self._call(node, declared)
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                if isinstance(declared, ShapeStructInfo) or self._is_shape(elements):
                    return ShapeExpr(self.scope.annotations.shape(node))
                return self._tuple(elements)
            case ast.Subscript(value=value, slice=index):
                return self._item(node, value, index)
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if self._is_module(owner):
                return self.scope.module.function(name, node)
            case ast.Attribute(value=whole, attr="shape"):
                return self._operators.apply(node, OPS["shape_of"], [self.leaf(whole)], {})
            case ast.BinOp() if self._is_of_symbols(node):
                return PrimValue(self.scope.annotations.dim(node))
            case ast.Compare() if self._is_of_symbols(node):
                return condition(self.scope, node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operators.infix(node, op, [left, right])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                if not is_number(operand):
                    return self._operators.apply(node, OPS["negative"], [self.leaf(operand)], {})
                return host_literal(self.source, node)
            case ast.UnaryOp(op=op, operand=operand):
                return self._operators.infix(node, op, [operand])
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._operators.infix(node, op, [left, right])
            case ast.Constant():
                return outer_constant(node) or host_literal(self.source, node)
            case _:
                pass
        raise self.source.error(node, f"unsupported expression `{ast.unparse(node)}`")

    def leaf(self, node: ast.expr) -> Expr:
        """The expression of `node`, bound to a variable unless it is a variable or a leaf."""
        value = self.value(node)
        return value if is_leaf(value) else self.scope.emit(value)

    def cast(self, node: ast.Call) -> tuple[Expr, StructInfo, str]:
        """The value, the claim and the refusal of ``R.match_cast`` or ``R.match_shape``."""
        name = dotted(node.func)
        second = "struct_info" if name == "R.match_cast" else "pattern"
        takes_refusal = ("refusal",) if name == "R.match_cast" else ()
        by_name = arguments(self.source, node, ("value", second, *takes_refusal))
        refusal = self._refusal(by_name.get("refusal"))
        if not {"value", second} <= by_name.keys():
            takes = (
                "a struct info" if name == "R.match_cast" else "a pattern: R.match_shape(x, (n,))"
            )
            raise self.source.error(node, f"{name} takes a value and {takes}")
        value, claim = self.leaf(by_name["value"]), by_name[second]
        annotations = self.scope.annotations
        if name == "R.match_cast":
            pattern = annotations.pattern() if self.scope.older else annotations
            return value, pattern.struct_info(claim), refusal
        shape = annotations.pattern().shape(claim)
        info = value.struct_info
        matched: StructInfo = ShapeStructInfo(shape, len(shape))
        if isinstance(info, TensorStructInfo):
            matched = tensor(shape, info.dtype)
        if relation(matched, info) == "contradiction":
            message = f"{name}: `{ast.unparse(by_name['value'])}` is {info}, it is not of shape"
            raise self.source.error(node, f"{message} {shape_text(shape)}")
        return value, matched, refusal

    def _refusal(self, node: ast.expr | None) -> str:
        if node is None:
            return ""
        refusal = read_string(self.source, node, "the refusal of a match_cast")
        try:
            extents_of(refusal)
        except ValueError as problem:
            raise self.source.error(node, str(problem)) from None
        return refusal

    def _is_module(self, name: str) -> bool:
        return name in self.scope.module.aliases and name not in self.scope.variables

    def _is_of_symbols(self, node: ast.expr) -> bool:
        """Whether `node` is computed of dimension symbols, and of no variable."""
        names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name)]
        scope = self.scope
        return bool(names) and all(n in scope.symbols and n not in scope.variables for n in names)

    def _is_shape(self, elements: Sequence[ast.expr]) -> bool:
        """Whether a tuple is a shape in an older script: arithmetic of symbols throughout."""
        if not self.scope.older or not elements:
            return False
        names = [n for e in elements for n in ast.walk(e) if isinstance(n, ast.expr)]
        return all(
            isinstance(n, ast.BinOp | ast.Constant)
            or (isinstance(n, ast.Name) and n.id in self.scope.symbols)
            for n in names
        )

    # --- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call, declared: StructInfo | None) -> Expr:
        name = dotted(node.func)
        special = self._special.get(name)
        if special is not None:
            return special(node, declared)
        if name.startswith("T.") and name in WRAPPERS:
            return prim_value(self.scope, ast.copy_location(ast.Call(node.func, [node], []), node))
        if name.startswith("R."):
            op = find(name[2:])
            if op is None:
                raise self.source.error(node, f"unknown operator {name}", near(name[2:]))
            if op.intrinsic:
                return self._intrinsic(node, op)
            if op.name in BLOCKABLE:
                return self._blocked.call(node, op)
            return self._operators.call(node, op)
        match node.func:
            case ast.Attribute(value=whole, attr="astype") if self._is_tensor(whole):
                call = ast.Call(node.func, [whole, *node.args], node.keywords)
                return self._operators.call(ast.copy_location(call, node), OPS["astype"])
            case _:
                return self._function(node)

    def _is_tensor(self, node: ast.expr) -> bool:
        return not isinstance(node, ast.Name) or node.id in self.scope.variables

    def _intrinsic(self, node: ast.Call, op: Op) -> Call:
        args = list(map(self.leaf, node.args))
        return self._operators.apply(node, op, args, {}, self._sinfo_args(node))

    def _emit(self, node: ast.Call, declared: StructInfo | None) -> Expr:
        by_name = arguments(self.source, node, ("value",))
        if "value" not in by_name:
            raise self.source.error(node, "R.emit takes a value")
        return self.value(by_name["value"], declared)

    def _function(self, node: ast.Call) -> Call:
        """A call of a function of the module, or of a function in a variable.

        A direct call of a loop function writes its last operands and returns nothing.
        """
        callee = self.value(node.func)
        name = ast.unparse(node.func)
        if not isinstance(callee, GlobalVar | Var | ExternFunc):
            raise self.source.error(node, f"`{name}` is no function")
        claims = self._sinfo_args(node)
        args = tuple(map(self.leaf, node.args))
        info = callee.struct_info
        if not isinstance(info, FuncStructInfo | ObjectStructInfo):
            raise self.source.error(node, f"{name} is {info}, needs a function")
        call = Call(callee, args, {}, claims)
        writes = isinstance(callee, GlobalVar) and callee.name in self.scope.module.loops
        if self.scope.in_dataflow and (writes or not is_pure(call)):
            message = f"{name} has side effects, which a dataflow block does not allow"
            raise self.source.error(node, message, "move it out of `with R.dataflow():`")
        result: StructInfo = claims[0] if claims else ObjectStructInfo()
        if not writes:
            if isinstance(info, FuncStructInfo) and info.params is not None:
                self._accepts(node, name, info.params, [a.struct_info for a in args])
            result = infer(call)
        return Call(callee, args, {}, claims, result, self.source.span(node))

    def _accepts(
        self, node: ast.Call, name: str, params: Sequence[StructInfo], args: Sequence[StructInfo]
    ) -> None:
        if len(args) != len(params):
            message = f"{name} takes {len(params)} arguments, got {len(args)}"
            raise self.source.error(node, message)
        values = bind(params, args)
        for number, (param, arg) in enumerate(zip(params, args, strict=True)):
            if relation(substituted(param, values), arg) == "contradiction":
                message = f"{name}: argument {number} is {arg}, needs {param}"
                raise self.source.error(node.args[number], message)

    # --- leaves -----------------------------------------------------------------------

    def _tuple(self, elements: Sequence[ast.expr]) -> Tuple:
        return Tuple(tuple(map(self.leaf, elements)))

    def _item(self, node: ast.expr, value: ast.expr, index: ast.expr) -> Expr:
        match value:
            case ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=key)):
                return metadata(self.scope, node, key, read_literal(self.source, index))
            case _:
                pass
        whole, number = self.leaf(value), read_literal(self.source, index)
        info = whole.struct_info
        if not isinstance(info, TupleStructInfo | ObjectStructInfo):
            message = f"`{ast.unparse(value)}` is {info}, needs a tuple"
            raise self.source.error(node, message)
        count = len(info.fields) if isinstance(info, TupleStructInfo) else None
        if not isinstance(number, int) or number < 0 or (count is not None and number >= count):
            message = f"`{ast.unparse(value)}` is {info}, it has no field {ast.unparse(index)}"
            raise self.source.error(index, message)
        return TupleGetItem(whole, number)

    def _cast(self, node: ast.Call) -> Var:
        value, info, refusal = self.cast(node)
        var = self.scope.declare(self.scope.fresh(), info)
        self.scope.bindings.append(MatchCast(var, value, info, self.source.span(node), refusal))
        return var

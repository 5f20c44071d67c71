"""Reads expressions of the graph level: operators, calls, tuples, constants.

Operands that are calls themselves are bound to variables first, so that what comes out is in
the normal form of the IR.
"""

import ast
from collections.abc import Callable, Mapping, Sequence

from relax_egraph.ir import dims
from relax_egraph.ir.agreement import bind, relation, substituted
from relax_egraph.ir.expr import (
    Call,
    Constant,
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
from relax_egraph.ir.struct_info import (
    FuncStructInfo,
    ObjectStructInfo,
    StructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.walk import is_leaf
from relax_egraph.script.literals import WRAPPERS, read_const, read_literal, read_string
from relax_egraph.script.operators import Operators, is_number, plain_number
from relax_egraph.script.scope import Scope
from relax_egraph.script.source import Source, arguments, dotted, nearest

METADATA = "relax.expr.Constant"
"""The key of the constants in the dictionary ``metadata``."""


class Expressions:
    """Reads expressions in `scope`; raises `ScriptError`."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.source: Source = scope.source
        self._operators = Operators(scope, self.leaf)
        self._special: Mapping[str, Callable[[ast.Call], Expr]] = {
            "R.const": lambda node: read_const(self.source, node),
            "R.shape": lambda node: ShapeExpr(scope.annotations.shape(node)),
            "R.tuple": lambda node: self._tuple(node.args),
            "R.prim_value": self._prim_value,
            "R.str": lambda node: StringImm(self._string(node)),
            "R.ExternFunc": lambda node: ExternFunc(self._string(node)),
            "R.match_cast": lambda node: self._match_cast(node),
            "R.call_tir": self._call_tir,
            "R.call_dps_packed": self._call_dps_packed,
            "R.call_packed": self._call_packed,
            "R.call_pure_packed": self._call_packed,
        }

    def value(self, node: ast.expr) -> Expr:
        """What `node` writes; the operands of a call in it are variables or leaves."""
        match node:
            case ast.Name(id=name):
                if name not in self.scope.variables:
                    if name in self.scope.symbols:
                        return PrimValue(dims.symbol(name))
                    if name in self.scope.module.functions:
                        return self.scope.module.functions[name]
                return self.scope.variable(node)
            case ast.Call():
                return self._call(node)
            case ast.Tuple(elts=elements):
                return self._tuple(elements)
            case ast.Subscript(value=value, slice=index):
                return self._item(node, value, index)
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                if owner in self.scope.module.aliases:
                    return self.scope.module.function(name, node)
            case ast.BinOp(left=left, op=op, right=right):
                return self._operators.infix(node, op, [left, right])
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                if not is_number(operand):
                    return self._operators.apply(node, OPS["negative"], [self.leaf(operand)], {})
                return self._literal(node)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._operators.infix(node, op, [left, right])
            case ast.Constant():
                return self._literal(node)
            case _:
                pass
        raise self.source.error(node, f"unsupported expression `{ast.unparse(node)}`")

    def leaf(self, node: ast.expr) -> Expr:
        """What `node` writes, bound to a variable unless it is a variable or a leaf."""
        value = self.value(node)
        return value if is_leaf(value) else self.scope.emit(value)

    def match_cast(self, node: ast.Call) -> tuple[Expr, StructInfo]:
        """The operands of ``R.match_cast``."""
        given = arguments(self.source, node, ("value", "struct_info"))
        if len(given) < 2:
            raise self.source.error(node, "R.match_cast takes a value and a struct info")
        return self.leaf(given["value"]), self.scope.annotations.struct_info(given["struct_info"])

    # --- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Expr:
        name = dotted(node.func)
        special = self._special.get(name)
        if special is not None:
            return special(node)
        if name.startswith("R."):
            op = OPS.get(name[2:])
            if op is None:
                known = nearest(name, [f"R.{known}" for known in OPS])
                raise self.source.error(node, f"unknown operator {name}", known)
            return self._intrinsic(node, op) if op.intrinsic else self._operators.call(node, op)
        return self._function(node)

    def _function(self, node: ast.Call) -> Call:
        """A call of a function of the module, or of a function in a variable.

        A loop function that is called directly writes its last operands and returns nothing.
        """
        callee = self.value(node.func)
        name = ast.unparse(node.func)
        if not isinstance(callee, GlobalVar | Var | ExternFunc):
            raise self.source.error(node, f"`{name}` is no function")
        said = self._sinfo_args(node)
        args = tuple(map(self.leaf, node.args))
        info = callee.struct_info
        if not isinstance(info, FuncStructInfo | ObjectStructInfo):
            raise self.source.error(node, f"{name} is {info}, needs a function")
        call = Call(callee, args, {}, said)
        writes = isinstance(callee, GlobalVar) and callee.name in self.scope.module.loops
        if self.scope.in_dataflow and (writes or not is_pure(call)):
            message = f"{name} has side effects, which a dataflow block does not allow"
            raise self.source.error(node, message, "move it out of `with R.dataflow():`")
        result: StructInfo = said[0] if said else ObjectStructInfo()
        if not writes:
            if isinstance(info, FuncStructInfo) and info.params is not None:
                self._accepts(node, name, info.params, [a.struct_info for a in args])
            result = infer(call)
        return Call(callee, args, {}, said, result, self.source.span(node))

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

    # --- calls of what is below the graph -----------------------------------------------

    def _intrinsic(self, node: ast.Call, op: Op) -> Call:
        return self._operators.apply(
            node, op, [self.leaf(a) for a in node.args], {}, self._sinfo_args(node)
        )

    def _call_tir(self, node: ast.Call) -> Call:
        given = arguments(self.source, node, ("func", "args", "out_sinfo", "tir_vars"))
        args: list[Expr] = []
        if "func" in given:
            args.append(self.value(given["func"]))
        if "args" in given:
            args.append(self._operand_tuple(given["args"]))
        if "tir_vars" in given:
            args.append(ShapeExpr(self.scope.annotations.shape(given["tir_vars"])))
        return self._operators.apply(node, OPS["call_tir"], args, {}, self._out(given))

    def _call_dps_packed(self, node: ast.Call) -> Call:
        given = arguments(self.source, node, ("func", "args", "out_sinfo"))
        args: list[Expr] = []
        if "func" in given:
            args.append(self._packed(given["func"]))
        if "args" in given:
            args.append(self._operand_tuple(given["args"]))
        return self._operators.apply(node, OPS["call_dps_packed"], args, {}, self._out(given))

    def _call_packed(self, node: ast.Call) -> Call:
        args: list[Expr] = [self._packed(a) for a in node.args[:1]]
        args += [self.leaf(a) for a in node.args[1:]]
        op = OPS[dotted(node.func)[2:]]
        return self._operators.apply(node, op, args, {}, self._sinfo_args(node))

    def _packed(self, node: ast.expr) -> Expr:
        value = self.value(node)
        return ExternFunc(value.value) if isinstance(value, StringImm) else value

    def _operand_tuple(self, node: ast.expr) -> Expr:
        if isinstance(node, ast.Tuple | ast.List):
            return self._tuple(node.elts)
        value = self.leaf(node)
        return value if isinstance(value.struct_info, TupleStructInfo) else Tuple((value,))

    def _out(self, given: Mapping[str, ast.expr]) -> tuple[StructInfo, ...]:
        if "out_sinfo" not in given:
            return ()
        infos = self._infos(given["out_sinfo"])
        return infos if len(infos) == 1 else (TupleStructInfo(infos),)

    def _sinfo_args(self, node: ast.Call) -> tuple[StructInfo, ...]:
        for keyword in node.keywords:
            if keyword.arg != "sinfo_args":
                name = dotted(node.func)
                message = f"{name} has no argument {keyword.arg or '**'!r}; it has: sinfo_args"
                raise self.source.error(
                    keyword, message, nearest(keyword.arg or "", ["sinfo_args"])
                )
        return self._infos(node.keywords[0].value) if node.keywords else ()

    def _infos(self, node: ast.expr) -> tuple[StructInfo, ...]:
        several = node.elts if isinstance(node, ast.Tuple | ast.List) else [node]
        return tuple(map(self.scope.annotations.struct_info, several))

    # --- leaves -----------------------------------------------------------------------

    def _tuple(self, elements: Sequence[ast.expr]) -> Tuple:
        return Tuple(tuple(map(self.leaf, elements)))

    def _item(self, node: ast.expr, value: ast.expr, index: ast.expr) -> Expr:
        match value:
            case ast.Subscript(value=ast.Name(id="metadata"), slice=ast.Constant(value=key)):
                return self._constant(node, key, read_literal(self.source, index))
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

    def _constant(self, node: ast.expr, key: object, number: object) -> Constant:
        constants = self.scope.module.constants
        if key != METADATA:
            raise self.source.error(node, f'no metadata {key!r}, only "{METADATA}"')
        if not isinstance(number, int) or not 0 <= number < len(constants):
            message = f"no constant {number}: there are {len(constants)}"
            note = "" if constants else "load_module reads them from the file beside the text"
            raise self.source.error(node, message, note)
        return constants[number]

    def _prim_value(self, node: ast.Call) -> PrimValue:
        given = arguments(self.source, node, ("value",))
        if "value" not in given:
            raise self.source.error(node, "R.prim_value takes a value")
        written = given["value"]
        if isinstance(written, ast.Call) and (name := dotted(written.func)) in WRAPPERS:
            dtype = name.removeprefix("T.")
            if dtype.startswith(("int", "uint")) and len(written.args) == 1:
                return PrimValue(self.scope.annotations.dim(written.args[0]), dtype)
            value = read_literal(self.source, written)
            return PrimValue(int(value) if dtype == "bool" else value, dtype)
        if isinstance(literal := plain_number(written), float):
            return PrimValue(literal, "float64")
        return PrimValue(self.scope.annotations.dim(written))

    def _literal(self, node: ast.expr) -> Expr:
        """A bare literal as an argument: a scalar or a string of the host."""
        match read_literal(self.source, node):
            case bool(value):
                return PrimValue(int(value), "bool")
            case int(value):
                return PrimValue(value)
            case float(value):
                return PrimValue(value, "float64")
            case str(value):
                return StringImm(value)
            case _:
                raise self.source.error(node, f"unsupported expression `{ast.unparse(node)}`")

    def _string(self, node: ast.Call) -> str:
        given = arguments(self.source, node, ("value",))
        if "value" not in given:
            raise self.source.error(node, f"{dotted(node.func)} takes a string")
        return read_string(self.source, given["value"], f"the argument of {dotted(node.func)}")

    def _match_cast(self, node: ast.Call) -> Var:
        value, info = self.match_cast(node)
        var = self.scope.declare(self.scope.fresh(), info)
        self.scope.bindings.append(MatchCast(var, value, info, self.source.span(node)))
        return var

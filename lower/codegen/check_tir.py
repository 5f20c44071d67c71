"""Validation of loop functions before code generation.

LLVM ends the process on invalid code; these checks raise `NotLowerable` instead.
"""

from collections.abc import Collection, Sequence

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.dtypes import is_float
from relax_egraph.lower.codegen.postorder import postorder
from relax_egraph.lower.codegen.scope import REGISTER_TYPES
from relax_egraph.tir.expr import (
    COMPARISONS,
    HANDLE,
    LOGICAL,
    Binary,
    Buffer,
    BufferLoad,
    Cast,
    DimSymbol,
    Imm,
    Intrinsic,
    Not,
    Select,
    TirExpr,
    TirVar,
)
from relax_egraph.tir.functions import INTRINSICS, takes
from relax_egraph.tir.rewrite import operands, statements
from relax_egraph.tir.stmt import (
    For,
    IfThenElse,
    PrimFunc,
    Seq,
    Stmt,
    Store,
    TensorIntrinsic,
    TirBlock,
)

DEEPEST = 100
"""The maximal nesting of statements."""

DEEPEST_EXPRESSION = 500
"""The maximal nesting of expressions: the dtype of a node is computed recursively."""


def check(function: PrimFunc, intrinsics: Collection[str]) -> None:
    """Raise `NotLowerable` unless `function` can be compiled with the named `intrinsics`."""
    _Check(function, intrinsics).function()


class _Check:
    """The names in scope, and the expressions already checked, which may be shared."""

    def __init__(self, function: PrimFunc, intrinsics: Collection[str]) -> None:
        self._function = function
        self._intrinsics = intrinsics
        self._symbols = frozenset(function.symbols)
        self._depth: dict[int, int] = {}
        self._variables: dict[int, frozenset[TirVar]] = {}
        self._buffers: set[Buffer] = set()

    def function(self) -> None:
        function = self._function
        _check_depth(function.body)
        blocks = [s for s in statements(function.body) if isinstance(s, TirBlock)]
        for buffer in (*function.params, *function.allocs, *(b for s in blocks for b in s.allocs)):
            self._declare(buffer)
        self._stmt(function.body, frozenset())

    def _declare(self, buffer: Buffer) -> None:
        if buffer in self._buffers:
            raise NotLowerable(f"buffer {buffer.name} is declared twice")
        self._buffers.add(buffer)
        _require_dtype(buffer.dtype, f"buffer {buffer.name}")
        for dim in buffer.shape:
            if isinstance(dim, int) and dim < 0:
                raise NotLowerable(f"buffer {buffer.name} has a dimension of {dim}")
            for name in dims.symbols(dim) - self._symbols:
                raise NotLowerable(f"buffer {buffer.name} has the unknown dimension {name}")

    def _stmt(self, stmt: Stmt, scope: frozenset[TirVar]) -> None:
        match stmt:
            case Store(buffer=buffer, indices=indices, value=value):
                self._element(buffer, indices, scope)
                self._expr(value, scope)
                if value.dtype != buffer.dtype:
                    raise NotLowerable(
                        f"store of {value.dtype} into {buffer.name}: needs {buffer.dtype}"
                    )
            case For(var=var, extent=extent, body=body):
                _require(var, "int64", f"the variable {var.name} of a loop")
                self._typed(extent, "int64", f"the extent of loop {var.name}", scope)
                self._stmt(body, scope | {var})
            case IfThenElse(condition=condition, then_case=then_case, else_case=else_case):
                self._typed(condition, "bool", "a condition", scope)
                self._stmt(then_case, scope)
                if else_case is not None:
                    self._stmt(else_case, scope)
            case Seq(body=parts):
                for part in parts:
                    self._stmt(part, scope)
            case TirBlock():
                self._block(stmt, scope)
            case TensorIntrinsic(name=name, buffers=buffers, scalars=scalars):
                if name not in self._intrinsics:
                    raise NotLowerable(f"no tensor intrinsic is called {name}")
                for buffer, indices in buffers:
                    self._element(buffer, indices, scope)
                for scalar in scalars:
                    self._typed(scalar, "int64", f"a scalar of {name}", scope)

    def _block(self, block: TirBlock, scope: frozenset[TirVar]) -> None:
        for axis in block.axes:
            _require(axis.var, "int64", f"the axis {axis.var.name}")
            self._typed(axis.binding, "int64", f"the axis {axis.var.name}", scope)
            scope |= {axis.var}
        for part in (block.init, block.body):
            if part is not None:
                self._stmt(part, scope)

    def _element(
        self, buffer: Buffer, indices: Sequence[TirExpr], scope: frozenset[TirVar]
    ) -> None:
        for index in indices:
            self._expr(index, scope)
        self._place(buffer, indices)

    def _place(self, buffer: Buffer, indices: Sequence[TirExpr]) -> None:
        if buffer not in self._buffers:
            raise NotLowerable(f"buffer {buffer.name} is not declared")
        if len(indices) != len(buffer.shape):
            raise NotLowerable(
                f"{len(indices)} indices of {buffer.name}: needs {len(buffer.shape)}"
            )
        for index in indices:
            _require(index, "int64", f"an index of {buffer.name}")

    def _typed(self, expr: TirExpr, dtype: str, what: str, scope: frozenset[TirVar]) -> None:
        self._expr(expr, scope)
        _require(expr, dtype, what)

    def _expr(self, expr: TirExpr, scope: frozenset[TirVar]) -> None:
        for node in postorder(expr, self._variables):
            depth = 1 + max((self._depth[id(o)] for o in operands(node)), default=0)
            if depth > DEEPEST_EXPRESSION:
                raise NotLowerable(f"an expression nests deeper than {DEEPEST_EXPRESSION}")
            self._depth[id(node)] = depth
            self._node(node)
            below = (self._variables[id(o)] for o in operands(node))
            own = {node} if isinstance(node, TirVar) else set[TirVar]()
            self._variables[id(node)] = frozenset(own).union(*below)
        for var in sorted(v.name for v in self._variables[id(expr)] - scope):
            raise NotLowerable(f"variable {var} is not in scope")

    def _node(self, expr: TirExpr) -> None:
        match expr:
            case TirVar(dtype=dtype):
                _require_dtype(dtype, f"variable {expr.name}")
            case DimSymbol(name=name) if name not in self._symbols:
                raise NotLowerable(f"{name} is no dimension of the parameters")
            case Imm(value=value, dtype=dtype):
                _require_dtype(dtype, "a literal")
                whole = isinstance(value, int) or value.is_integer()
                if not is_float(dtype) and not whole:
                    raise NotLowerable(f"{value} is no literal of {dtype}")
            case Binary():
                _check_binary(expr)
            case Not(a=a):
                _require(a, "bool", "the operand of not")
            case Cast(dtype=dtype):
                _require_dtype(dtype, "a cast")
            case Select(condition=condition, a=a, b=b):
                _require(condition, "bool", "the condition of a select")
                _require(b, a.dtype, "the second value of a select")
            case Intrinsic():
                _check_intrinsic(expr)
            case BufferLoad(buffer=buffer, indices=indices):
                self._place(buffer, indices)
            case _:
                pass


def _check_depth(body: Stmt) -> None:
    todo = [(body, 0)]
    while todo:
        stmt, depth = todo.pop()
        if depth > DEEPEST:
            raise NotLowerable(f"statements nest deeper than {DEEPEST}")
        todo += [(part, depth + 1) for part in _parts(stmt)]


def _parts(stmt: Stmt) -> tuple[Stmt, ...]:
    match stmt:
        case For(body=body):
            return (body,)
        case IfThenElse(then_case=then_case, else_case=else_case):
            return (then_case,) if else_case is None else (then_case, else_case)
        case Seq(body=parts):
            return parts
        case TirBlock(body=body, init=init):
            return (body,) if init is None else (init, body)
        case Store() | TensorIntrinsic():
            return ()


def _check_binary(expr: Binary) -> None:
    kind, dtype = expr.kind, expr.a.dtype
    _require(expr.b, dtype, f"the right operand of {kind}")
    known = COMPARISONS | LOGICAL | {"+", "-", "*", "/", "//", "%", "min", "max"}
    wrong = (
        kind not in known
        or (kind in LOGICAL and dtype != "bool")
        or (kind == "/" and not is_float(dtype))
        or (kind in ("-", "//", "%") and dtype == "bool")
    )
    if wrong:
        raise NotLowerable(f"{dtype} {kind} {dtype} has no machine code")


def _check_intrinsic(expr: Intrinsic) -> None:
    name = expr.name
    if INTRINSICS.get(name) != len(expr.args):
        raise NotLowerable(f"{name} of {len(expr.args)} operands has no machine code")
    dtype = expr.args[0].dtype
    for arg in expr.args:
        _require(arg, dtype, f"an operand of {name}")
    if not takes(name, dtype):
        raise NotLowerable(f"{name} of {dtype} has no machine code")


def _require(expr: TirExpr, dtype: str, what: str) -> None:
    if expr.dtype != dtype:
        raise NotLowerable(f"{what} is of {expr.dtype}: needs {dtype}")


def _require_dtype(dtype: str, what: str) -> None:
    if dtype == HANDLE:
        raise NotLowerable(f"{what} is a handle of unknown shape: needs T.match_buffer")
    if dtype not in REGISTER_TYPES:
        raise NotLowerable(f"{what} is of {dtype}: needs one of {', '.join(REGISTER_TYPES)}")

"""Builds functions binding by binding, normalised as they are built.

bb = BlockBuilder()
x = Var("x", tensor((n, 784), "float32"))
with bb.function("main", [x]):
with bb.dataflow():
lv = bb.emit(call("add", x, x))
gv = bb.emit_output(lv)
bb.emit_func_output(gv)
module = bb.get()
"""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from relax_egraph.errors import IllFormed
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Attr,
    Attrs,
    Binding,
    BindingBlock,
    Block,
    Call,
    Constant,
    DataflowBlock,
    DataflowVar,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
    VarBinding,
)
from relax_egraph.ir.fitting import fit, with_extents
from relax_egraph.ir.lower_bounds import LowerBounds
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import OPS, infer
from relax_egraph.ir.operators import find
from relax_egraph.ir.shape_variables import outside
from relax_egraph.ir.struct_info import Shape, StructInfo, TupleStructInfo, known_extents
from relax_egraph.ir.walk import has_effects


def call(name: str, *args: Expr, **attrs: Attr) -> Call:
    """A call of the operator `name` (``"add"``, ``"nn.relu"``) with the struct info of its rule."""
    op = find(name)
    if op is None:
        raise IllFormed(f"no operator R.{name}")
    unresolved = Call(op, args, attrs)
    return replace(unresolved, struct_info=infer(unresolved))


def call_tir(
    function: GlobalVar,
    args: Sequence[Expr],
    out_sinfo: StructInfo | Sequence[StructInfo],
    tir_vars: ShapeExpr | None = None,
    *,
    inplace_indices: Sequence[int] = (),
) -> Call:
    """A call of a loop function in destination-passing style; several outputs are a tuple.

    With `inplace_indices` it is ``R.call_tir_inplace``: the operand that each result is, or -1.
    """
    out = TupleStructInfo(tuple(out_sinfo)) if isinstance(out_sinfo, Sequence) else out_sinfo
    operands: tuple[Expr, ...] = (function, Tuple(tuple(args)))
    if tir_vars is not None:
        operands = (*operands, tir_vars)
    name = "call_tir_inplace" if inplace_indices else "call_tir"
    attrs: Attrs = {"inplace_indices": tuple(inplace_indices)} if inplace_indices else {}
    unresolved = Call(OPS[name], operands, attrs, (out,))
    return replace(unresolved, struct_info=infer(unresolved))


def call_packed(
    name: str, args: Sequence[Expr], sinfo_args: Sequence[StructInfo], *, pure: bool = False
) -> Call:
    """A call of the packed function `name`, which has no effects if it is `pure`."""
    operator = OPS["call_pure_packed" if pure else "call_packed"]
    unresolved = Call(operator, (ExternFunc(name), *args), sinfo_args=tuple(sinfo_args))
    return replace(unresolved, struct_info=infer(unresolved))


@dataclass(slots=True)
class _Frame:
    """A function under construction."""

    name: str
    params: tuple[Var, ...]
    attrs: Attrs
    blocks: list[Block] = field(default_factory=list[Block])
    bindings: list[Binding] = field(default_factory=list[Binding])
    in_dataflow: bool = False
    output: Expr | None = None
    bounds: LowerBounds = field(default_factory=LowerBounds)


class BlockBuilder:
    """Emits bindings into the function and block that are open.

    Every emitted value is normalised: operands of calls become variables or leaves, and
    struct info is inferred.  `get` returns the module built so far.  If it is `fitting`, it
    checks sizes where operands fit together only at some: see `ir.fitting`.
    """

    def __init__(self, module: IRModule | None = None, *, fitting: bool = False) -> None:
        self._fitting = fitting
        self._functions: dict[str, BaseFunc] = dict(module.functions) if module else {}
        self._frames: list[_Frame] = []
        self._names: list[dict[str, int]] = []
        self._values: dict[Var, Expr] = {}

    # --- functions and blocks ---------------------------------------------------------

    @contextmanager
    def function(
        self, name: str, params: Sequence[Var] = (), attrs: Attrs | None = None
    ) -> Generator[None]:
        """Open the function `name`; it is discarded if the body raises."""
        if name in self._functions:
            raise IllFormed(f"function {name!r} is defined twice")
        frame = _Frame(name, tuple(params), dict(attrs or {}))
        self._frames.append(frame)
        self._names.append({})
        for p in params:
            self.reserve(p.name)
        try:
            yield
            if frame.output is None:
                raise IllFormed(f"function {name!r} has no output: call emit_func_output")
            self._close_block()
            body = SeqExpr(tuple(frame.blocks), frame.output)
            info = outside(frame.output.struct_info, frame.params)
            is_pure = not has_effects(body)
            self._functions[name] = Function(frame.params, body, info, is_pure, frame.attrs)
        finally:
            self._frames.pop()
            self._names.pop()

    @contextmanager
    def dataflow(self) -> Generator[None]:
        """Open a dataflow block; only variables of `emit_output` are visible outside."""
        frame = self._frame()
        if frame.in_dataflow:
            raise IllFormed("a dataflow block cannot be opened inside another")
        self._close_block()
        frame.in_dataflow = True
        try:
            yield
            self._close_block()
        finally:
            frame.bindings.clear()
            frame.in_dataflow = False

    @contextmanager
    def rewritten_block(self, used_names: Iterable[str]) -> Generator[list[Binding]]:
        """Open a dataflow block outside of functions; returns the list of its bindings.

        For rewrites of a block in a function that uses the names `used_names`.
        """
        frame = _Frame("", (), {}, in_dataflow=True)
        self._frames.append(frame)
        self._names.append(dict.fromkeys(used_names, 0))
        try:
            yield frame.bindings
        finally:
            self._frames.pop()
            self._names.pop()

    def get(self) -> IRModule:
        """The module of all functions that are finished."""
        return IRModule(dict(self._functions))

    def add_func(self, function: BaseFunc, name: str) -> GlobalVar:
        """Add a finished function under `name`, or under `name` with a number if that is in use."""
        unique = name
        number = 0
        while unique in self._functions or any(f.name == unique for f in self._frames):
            number += 1
            unique = f"{name}{number}"
        self._functions[unique] = function
        return GlobalVar(unique, function.struct_info)

    # --- bindings ---------------------------------------------------------------------

    def emit(self, value: Expr, name: str | None = None) -> Var:
        """Bind `value` to a new variable of the open block."""
        return self._bind(value, name, output=False)

    def emit_output(self, value: Expr, name: str | None = None) -> Var:
        """Bind `value` to a variable that is visible outside of the open dataflow block."""
        if not self._frame().in_dataflow:
            raise IllFormed("emit_output outside of a dataflow block")
        return self._bind(value, name, output=True)

    def emit_match_cast(
        self,
        value: Expr,
        struct_info: StructInfo,
        name: str | None = None,
        *,
        output: bool = False,
        refusal: str = "",
    ) -> Var:
        """Bind `value`, checked at run time against `struct_info`; `refusal` is the message."""
        operand = self.normalize(value)
        var = self._new_var(name, struct_info, output=output)
        self._frame().bindings.append(MatchCast(var, operand, struct_info, refusal=refusal))
        return var

    def emit_normalized(self, binding: Binding) -> None:
        """Add a normalised binding; its variable keeps its name."""
        self.reserve(binding.var.name)
        self._frame().bindings.append(binding)
        if isinstance(binding, VarBinding):
            self._values[binding.var] = binding.value

    def lookup_binding(self, var: Var) -> Expr | None:
        """The value of `var`, if this builder bound it; ``None`` for parameters and casts."""
        return self._values.get(var)

    def emit_func_output(self, value: Expr) -> None:
        """Make `value` the result of the open function."""
        self._close_block()
        frame = self._frame()
        if frame.output is not None:
            raise IllFormed(f"function {frame.name!r} has two outputs")
        frame.output = self._leaf(value)

    def normalize(self, value: Expr) -> Expr:
        """`value` with leaves for operands and with struct info; emits nested computations."""
        match value:
            case Call():
                args = tuple(self._leaf(a) for a in value.args)
                flat = replace(value, args=args)
                flat = replace(flat, struct_info=infer(flat))
                return fit(flat, self._cast, self._frame().bounds) if self._fitting else flat
            case Tuple(fields=fields):
                return Tuple(tuple(self._leaf(f) for f in fields))
            case TupleGetItem(tuple_value=inner, index=index):
                return TupleGetItem(self._leaf(inner), index)
            case _:
                return value

    def is_nonnegative(self, dim: Dim) -> bool:
        """Whether `dim` is proven to be 0 or more behind the checks of the open function."""
        return self._frame().bounds.prove_nonnegative(dim)

    def assume_nonnegative(self, dim: Dim) -> None:
        """Take `dim` to be 0 or more behind this point of the open function, which checks it."""
        self._frame().bounds.add(dim)

    # --- helpers ----------------------------------------------------------------------

    def _cast(self, value: Expr, shape: Shape, refusal: str) -> Expr:
        name = value.name if isinstance(value, Var) else None
        return self.emit_match_cast(value, with_extents(value, shape), name, refusal=refusal)

    def reserve(self, name: str) -> str:
        """Reserve `name`, with a number if the open function uses it already."""
        used = self._names[-1]
        if name not in used:
            used[name] = 0
            return name
        while f"{name}{used[name] + 1}" in used:
            used[name] += 1
        used[name] += 1
        unique = f"{name}{used[name]}"
        used[unique] = 0
        return unique

    def _frame(self) -> _Frame:
        if not self._frames:
            raise IllFormed("no function is open: use `with bb.function(name, params):`")
        return self._frames[-1]

    def _bind(self, value: Expr, name: str | None, *, output: bool) -> Var:
        normal = self.normalize(value)
        shape = known_extents(normal.struct_info)
        simpler = tuple(map(self._frame().bounds.simplified, shape))
        if simpler != shape:
            whole = self._bind_normal(normal, name, output=False)
            return self.emit_match_cast(whole, with_extents(whole, simpler), name, output=output)
        return self._bind_normal(normal, name, output=output)

    def _bind_normal(self, value: Expr, name: str | None, *, output: bool) -> Var:
        var = self._new_var(name, value.struct_info, output=output)
        self._frame().bindings.append(VarBinding(var, value))
        self._values[var] = value
        return var

    def _new_var(self, name: str | None, info: StructInfo, *, output: bool) -> Var:
        local = self._frame().in_dataflow and not output
        unique = self.reserve(name or ("lv" if local else "gv"))
        return DataflowVar(unique, info) if local else Var(unique, info)

    def _leaf(self, value: Expr) -> Expr:
        match value:
            case (
                Var()
                | Constant()
                | ShapeExpr()
                | PrimValue()
                | StringImm()
                | GlobalVar()
                | ExternFunc()
            ):
                return value
            case Tuple(fields=fields):
                return Tuple(tuple(self._leaf(f) for f in fields))
            case _:
                return self.emit(value)

    def _close_block(self) -> None:
        frame = self._frame()
        if frame.bindings:
            kind = DataflowBlock if frame.in_dataflow else BindingBlock
            frame.blocks.append(kind(tuple(frame.bindings)))
            frame.bindings.clear()

"""Runs relax functions on numpy arrays: the meaning of programs, slow and checked."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from relax_egraph.errors import RunError
from relax_egraph.ir import dims
from relax_egraph.ir.agreement import implies
from relax_egraph.ir.apply import apply_op
from relax_egraph.ir.conditional import branch_result
from relax_egraph.ir.depth import deep
from relax_egraph.ir.dims import Dim
from relax_egraph.ir.expr import (
    Binding,
    Call,
    Constant,
    Expr,
    ExternFunc,
    Function,
    GlobalVar,
    If,
    MatchCast,
    PrimValue,
    SeqExpr,
    ShapeExpr,
    StringImm,
    Tuple,
    TupleGetItem,
    Var,
)
from relax_egraph.ir.matching import Symbols, Value, as_result, as_value, check
from relax_egraph.ir.message import message
from relax_egraph.ir.module import BaseFunc, IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.ops.call import claims_besides_operands, inplace_indices
from relax_egraph.ir.outputs import infos_of, result_of, unset
from relax_egraph.ir.refusals import proven
from relax_egraph.ir.run_time import at_run_time
from relax_egraph.ir.struct_info import (
    ObjectStructInfo,
    PrimStructInfo,
    StructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from relax_egraph.ir.tagged import MEANINGS
from relax_egraph.ir.templates import fill

Packed: TypeAlias = Mapping[str, Callable[..., Value]]
"""The packed functions, by registered name."""

RunPrimFunc: TypeAlias = Callable[[BaseFunc, Sequence[Value]], object]
"""Runs a loop function on its input arrays, output arrays, and the ints of ``tir_vars``."""


def evaluate(
    module: IRModule,
    name: str,
    *args: Value,
    packed: Packed | None = None,
    prim_func: RunPrimFunc | None = None,
) -> Value:
    """Call the relax function `name` of `module`.

    Tensors are numpy arrays and come back as such, shapes are tuples of ints, tuples are
    tuples.  `packed` functions are called by name, loop functions by `prim_func`; their outputs
    are filled with NaN, or the dtype's least value, before the call.  Constants
    are read-only.
    Raises `RunError` where a value contradicts its struct info.
    """
    with deep(RunError, f"{name}: calls are nested too deeply"):
        return _Interpreter(module, packed or {}, prim_func).run(name, list(map(as_value, args)))


@dataclass(frozen=True, slots=True)
class _Interpreter:
    module: IRModule
    packed: Packed
    prim_func: RunPrimFunc | None

    def run(self, name: str, args: Sequence[Value]) -> Value:
        function = self.module[name]
        if not isinstance(function, Function):
            raise RunError(f"{name} is a loop function: it is run by R.call_tir")
        return _invoke(self, name, function, args, {}, {})


def _invoke(
    interpreter: _Interpreter,
    name: str,
    function: Function,
    args: Sequence[Value],
    captured: Mapping[Var, Value],
    symbols: Mapping[str, int],
) -> Value:
    if len(args) != len(function.params):
        raise RunError(f"{name} takes {len(function.params)} arguments, got {len(args)}")
    frame = _Frame(interpreter, name, dict(captured), dict(symbols))
    claims = [
        (f"{name}: parameter {p.name}", p.struct_info, a)
        for p, a in zip(function.params, args, strict=True)
    ]
    check(claims, frame.symbols)
    frame.values.update(zip(function.params, args, strict=True))
    result = frame.evaluate(function.body)
    if not implies(function.body.struct_info, function.ret_struct_info):
        check([(f"{name}: match_cast result", function.ret_struct_info, result)], frame.symbols)
    return result


@dataclass(slots=True)
class _Frame:
    """One call of a function: its variables and symbols; `at` is the binding being run."""

    interpreter: _Interpreter
    name: str
    values: dict[Var, Value]
    symbols: Symbols
    at: str = field(default="result", init=False)

    def evaluate(self, expr: Expr) -> Value:
        match expr:
            case Var():
                if expr not in self.values:
                    raise RunError(f"{self.name}: {self.at} reads {expr.name}, which has no value")
                return self.values[expr]
            case Constant(data=data):
                constant = data.view()
                constant.flags.writeable = False
                return constant
            case ShapeExpr(values=values):
                return tuple(self.extent(v) for v in values)
            case PrimValue(value=value):
                return value if isinstance(value, float | bool) else self.extent(value)
            case StringImm(value=text):
                return text
            case Tuple(fields=fields):
                return tuple(map(self.evaluate, fields))
            case TupleGetItem(tuple_value=value, index=index):
                return self.evaluate(value)[index]
            case If():
                is_true = bool(self.evaluate(expr.cond))
                chosen = expr.true_branch if is_true else expr.false_branch
                name = branch_result(self.at, is_true)
                outside, self.symbols = self.symbols, dict(self.symbols)
                result = self.evaluate(chosen)
                if not implies(chosen.struct_info, expr.struct_info):
                    self.check(name, expr.struct_info, result)
                self.symbols = outside
                return result
            case SeqExpr():
                return self.sequence(expr)
            case Call():
                return self.call(expr)
            case GlobalVar(name=name):
                return self.function(name)
            case ExternFunc(name=name):
                return self.packed(name)
            case Function():
                return self.closure(expr)

    def function(self, name: str) -> Callable[..., Value]:
        def run(*args: Value) -> Value:
            return self.interpreter.run(name, args)

        return run

    def closure(self, function: Function) -> Callable[..., Value]:
        at, symbols = f"{self.name}: {self.at}", dict(self.symbols)

        def run(*args: Value) -> Value:
            return _invoke(self.interpreter, at, function, args, self.values, symbols)

        return run

    def with_last_arguments(
        self, function: Expr, arguments: Sequence[Expr]
    ) -> Callable[..., Value]:
        called, last = self.evaluate(function), tuple(map(self.evaluate, arguments))

        def run(*args: Value) -> Value:
            return called(*args, *last)

        return run

    def extent(self, dim: Dim) -> int:
        try:
            return dims.evaluate(dim, self.symbols)
        except KeyError as missing:
            raise RunError(
                f"{self.name}: {self.at} needs {dims.text(dim)}, "
                f"but nothing says what {missing.args[0]} is"
            ) from None
        except RunError as refusal:
            raise RunError(f"{self.name}: {self.at}: {refusal}") from None

    def sequence(self, seq: SeqExpr) -> Value:
        for block in seq.blocks:
            for binding in block.bindings:
                self.at = binding.var.name
                value = self.evaluate(binding.value)
                if isinstance(binding, MatchCast):
                    self.cast(binding, value)
                known = self.proven(binding)
                if not implies(known, binding.var.struct_info):
                    self.check(binding.var.name, binding.var.struct_info, value)
                self.values[binding.var] = value
        self.at = "result"
        return self.evaluate(seq.body)

    def proven(self, binding: Binding) -> StructInfo:
        """The struct info of `binding`'s value that is known before its evaluation."""
        value = binding.value
        if isinstance(binding, MatchCast):
            return binding.struct_info
        if isinstance(value, Call) and not isinstance(value.op, Op | GlobalVar):
            return ObjectStructInfo()
        return proven(self.interpreter.module, value)

    def cast(self, binding: MatchCast, value: Value) -> None:
        """Check the claim of `binding`; its message may be that of an operator."""
        try:
            self.check(binding.var.name, binding.struct_info, value)
        except RunError:
            if not binding.refusal:
                raise
            refusal = fill(binding.refusal, self.symbols)
            raise RunError(f"{self.name}: {self.at}: {refusal}") from None

    def check(self, name: str, claim: StructInfo, value: Value) -> None:
        """Raise `RunError` unless `value`, the value of `name`, fulfils `claim`."""
        check([(f"{self.name}: match_cast {name}", claim, value)], self.symbols)

    def call(self, call: Call) -> Value:
        if not isinstance(call.op, Op):
            return self.evaluate(call.op)(*map(self.evaluate, call.args))
        match call.op.name, call.args:
            case "call_tir", (GlobalVar(name=name), Tuple() as operands, *tir_vars):
                return self.call_tir(name, operands, tir_vars, call.sinfo_args[0])
            case "call_tir_inplace", (GlobalVar(name=name), Tuple() as operands, *tir_vars):
                places = inplace_indices(call)
                return self.call_tir(name, operands, tir_vars, call.sinfo_args[0], places)
            case "call_dps_packed", (ExternFunc(name=name), Tuple() as operands):
                outputs = self.allocate(call.sinfo_args[0])
                self.packed(name)(*map(self.evaluate, operands.fields), *outputs)
                return result_of(outputs, call.sinfo_args[0])
            case "make_closure", (function, Tuple(fields=captured)):
                return self.with_last_arguments(function, captured)
            case "invoke_closure" | "invoke_pure_closure", (function, Tuple(fields=args)):
                result = self.evaluate(function)(*map(self.evaluate, args))
                claim = f"{self.name}: {self.at}, the result of a closure,"
                check([(claim, info, result) for info in call.sinfo_args[:1]], self.symbols)
                return result
            case "call_packed" | "call_pure_packed", (ExternFunc(name=name), *args):
                result = as_result(self.packed(name)(*map(self.evaluate, args)))
                claim = f"{self.name}: {self.at}, the result of {name!r},"
                check([(claim, info, result) for info in call.sinfo_args[:1]], self.symbols)
                return result
            case "call_inplace_packed", (ExternFunc(name=name), *args):
                return self.call_inplace_packed(name, args, call)
            case "print", (StringImm(value=text), *values):
                print(self.message(text, values))
                return ()
            case "assert_op", (condition, StringImm(value=text), *values):
                text = self.message(text, values)
                if not self.evaluate(condition):
                    raise RunError(f"assertion failed: {text}" if text else "assertion failed")
                return ()
            case "null_value", ():
                return None
            case name, args if name in MEANINGS:
                return MEANINGS[name](*map(self.evaluate, args))
            case _:
                operands = tuple(map(self.operand, call.args))
                try:
                    return apply_op(call.op, operands, call.attrs)
                except RunError as error:
                    raise RunError(f"{self.name}: {self.at}: {error}") from None

    def message(self, text: str, values: Sequence[Expr]) -> str:
        try:
            return message(text, tuple(map(self.evaluate, values)))
        except ValueError as error:
            raise RunError(f"{self.name}: {self.at}: {error}") from None

    def operand(self, expr: Expr) -> Value:
        """An operand of an operator; a number of no dtype of Python is an array of rank 0."""
        value, info = self.evaluate(expr), expr.struct_info
        if not isinstance(info, PrimStructInfo) or info.dtype in ("int64", "float64"):
            return value
        return np.asarray(value, info.dtype)

    def call_inplace_packed(self, name: str, args: Sequence[Expr], call: Call) -> Value:
        places, operands = inplace_indices(call), list(map(self.evaluate, args))
        for place in filter(lambda p: p >= 0, places):
            if isinstance(operands[place], np.ndarray):
                operands[place] = np.require(operands[place], requirements="W")
        returned = as_result(self.packed(name)(*operands))
        if min(places) < 0:
            claim = f"{self.name}: {self.at}, the result of {name!r},"
            check([(claim, claims_besides_operands(call), returned)], self.symbols)
        results = [operands[p] if p >= 0 else returned[i] for i, p in enumerate(places)]
        return result_of(results, call.sinfo_args[0])

    def call_tir(
        self,
        name: str,
        operands: Tuple,
        tir_vars: Sequence[Expr],
        out: StructInfo,
        inplace: Sequence[int] = (),
    ) -> Value:
        run = self.interpreter.prim_func
        if run is None:
            raise RunError(
                f"{self.name}: {self.at} calls the loop function {name}, "
                "but evaluate has no prim_func to run it"
            )
        inputs = [np.asarray(self.evaluate(f), order="C") for f in operands.fields]
        for place in filter(lambda p: p >= 0, inplace):
            inputs[place] = np.require(
                inputs[place], requirements="W"
            )  # copies read-only constants
        infos = infos_of(out)
        places = inplace or [-1] * len(infos)
        new = [i for i, place in zip(infos, places, strict=True) if place < 0]
        outputs = self.allocate(TupleStructInfo(tuple(new)))
        scalars = [s for shape in tir_vars for s in self.evaluate(shape)]
        run(self.interpreter.module[name], [*inputs, *outputs, *scalars])
        allocated = iter(outputs)
        return result_of([inputs[p] if p >= 0 else next(allocated) for p in places], out)

    def allocate(self, out: StructInfo) -> list[Value]:
        arrays: list[Value] = []
        for info in infos_of(out):
            if not isinstance(info, TensorStructInfo) or info.shape is None:
                raise RunError(f"{self.name}: {self.at} cannot allocate an output of {info}")
            arrays.append(unset(self.evaluate(info.shape), info.dtype))
        return arrays

    def packed(self, name: str) -> Callable[..., Value]:
        if name not in self.interpreter.packed:
            if operator := at_run_time(name):
                return operator
            known = ", ".join(sorted(self.interpreter.packed)) or "none"
            raise RunError(
                f"{self.name}: {self.at} calls the packed function {name!r}; known are: {known}"
            )
        return self.interpreter.packed[name]

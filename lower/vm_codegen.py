"""Code generation: lowered Relax functions to bytecode."""

from collections.abc import Mapping, Sequence

import sympy

from relax_egraph.errors import NotLowerable
from relax_egraph.ir import dims
from relax_egraph.ir.expr import (
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
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import ObjectStructInfo, shape_text
from relax_egraph.ir.walk import bindings_of, is_leaf
from relax_egraph.lower.origins import Origins
from relax_egraph.lower.registers import Registers
from relax_egraph.vm.bytecode import VOID, Kind, Operand
from relax_egraph.vm.exec_builder import ExecBuilder
from relax_egraph.vm.executable import Executable

BUILTIN_OPS: Mapping[str, str] = {
    **{"shape_of": "shape_of", "reshape": "reshape", "unique": "unique"},
    **{"print": "print", "assert_op": "assert", "null_value": "null_value"},
    **{"tag_of": "get_tag", "has_tag": "has_tag", "field_of": "get_field"},
    "memory.alloc_storage": "alloc_storage",
    "memory.alloc_tensor": "alloc_tensor",
    "memory.size_of": "size_of",
    **{
        f"vm.{name}": name
        for name in (
            *("alloc_shape_heap", "check_tensor_info", "check_shape_info", "check_tuple_info"),
            *("check_prim_info", "check_func_info"),
            *("match_shape", "match_operand", "match_prim"),
            *("compute_shapes", "make_shape", "load_prim"),
        )
    },
}
"""The operators that the machine runs itself, and the builtin for each."""

_PACKED_OPS = ("call_packed", "call_pure_packed")
_CLOSURE_OPS: Mapping[str, str] = {
    "make_closure": "make_closure",
    "invoke_closure": "invoke_closure",
    "invoke_pure_closure": "invoke_closure",
}


def codegen(module: IRModule) -> Executable:
    """The Relax functions of `module` as bytecode, which calls loop functions by name.

    The passes ``to_non_dataflow``, ``call_tir_rewrite``, ``vm_memory_lower`` and ``vm_shape_lower``
    must have run.  The executable has no kernels yet: the caller compiles the loop functions and
    adds them.  Raises `NotLowerable` for a remaining operator.
    """
    builder = ExecBuilder()
    for name, function in module.relax_functions():
        params = [p.name for p in function.params]
        info = [
            "" if isinstance(p.struct_info, ObjectStructInfo) else str(p.struct_info)
            for p in function.params
        ]
        private = bool(function.attrs.get("private", False))
        with builder.function(name, len(params), params, info, private=private, allow_unused=True):
            _FunctionCodegen(builder, module, name, function).emit()
    return builder.get()


class _FunctionCodegen:
    """Emits one function into the builder, which has opened it."""

    def __init__(
        self, builder: ExecBuilder, module: IRModule, name: str, function: Function
    ) -> None:
        self._builder = builder
        self._module = module
        self._name = name
        self._function = function
        self._registers = Registers(function)
        self._origins = Origins(module)
        self._origin = ""  # of the current instructions

    def emit(self) -> None:
        self._builder.emit_ret(self._seq(self._function.body))

    def _seq(self, seq: SeqExpr) -> Operand:
        """Emit the bindings; returns the operand of the result."""
        for binding in bindings_of(seq):
            if isinstance(binding, MatchCast):
                raise self._refuse("R.match_cast", "vm_shape_lower")
            self._origin = self._origins.of(binding)
            place = self._value(binding.value, needed=self._registers.is_used(binding.var))
            self._registers.define(binding.var, place)
            self._registers.settle()
        self._origin = ""
        return self._operands((seq.body,))[0]

    # --- values -----------------------------------------------------------------------

    def _value(self, expr: Expr, *, needed: bool = True) -> Operand:
        """The operand of `expr`: a new register, ``void`` unless it is `needed`, or a leaf."""
        match expr:
            case Call(op=Op(name="vm.kill_object"), args=[Var() as var]):
                return self._kill(self._registers.read(var))
            case Call():
                name, args = self._callee(expr)
                return self._call(name, args, needed=needed)
            case Tuple(fields=fields):
                return self._call("vm.builtin.make_tuple", self._operands(fields), needed=needed)
            case TupleGetItem(tuple_value=inner, index=index):
                operands = (*self._operands((inner,)), self._builder.imm(index))
                return self._call("vm.builtin.tuple_getitem", operands, needed=needed)
            case If():
                return self._if(expr, needed=needed)
            case SeqExpr():
                return self._seq(expr)
            case Function():
                raise NotLowerable(
                    f"{self._name}: a local function has no code: run lambda_lift first"
                )
            case _:
                return self._leaf(expr)

    def _operands(self, exprs: Sequence[Expr]) -> tuple[Operand, ...]:
        """`exprs` as operands of the next instruction; others than leaves are computed first."""
        origin, self._origin = self._origin, ""
        computed = [
            None if is_leaf(e) and not isinstance(e, Tuple) else self._value(e) for e in exprs
        ]
        self._origin = origin
        return tuple(
            self._leaf(e) if place is None else self._registers.temporary(place)
            for e, place in zip(exprs, computed, strict=True)
        )

    def _leaf(self, expr: Expr) -> Operand:
        match expr:
            case Var():
                return self._registers.read(expr)
            case Constant(data=data):
                return self._builder.convert_constant(data)
            case ShapeExpr(values=values):
                extents = tuple(d for d in values if isinstance(d, int))
                if len(extents) != len(values):
                    raise self._refuse(f"the shape {shape_text(values)}", "vm_shape_lower")
                return self._builder.convert_constant(extents)
            case PrimValue(value=value):
                if isinstance(value, sympy.Expr):
                    raise self._refuse(f"the dimension {dims.text(value)}", "vm_shape_lower")
                return self._builder.convert_constant(value)
            case StringImm(value=value):
                return self._builder.convert_constant(value)
            case GlobalVar(name=name) | ExternFunc(name=name):
                return self._builder.f(name)
            case _:
                raise NotLowerable(f"{self._name}: {type(expr).__name__} inside of another value")

    # --- calls and branches -----------------------------------------------------------

    def _callee(self, call: Call) -> tuple[str, tuple[Operand, ...]]:
        """The name of the callee, and the operands."""
        match call.op:
            case Op(name=name) if name in BUILTIN_OPS and not (name == "unique" and call.attrs):
                args = self._operands(call.args)
                needs_vm = name == "memory.alloc_storage"
                vm = (self._builder.vm_state(),) if needs_vm else ()
                return f"vm.builtin.{BUILTIN_OPS[name]}", (*vm, *args)
            case Op(name=name) if name in _PACKED_OPS and isinstance(call.args[0], ExternFunc):
                return call.args[0].name, self._operands(call.args[1:])
            case Op(name=name) if name in _CLOSURE_OPS and isinstance(call.args[1], Tuple):
                operands = self._operands((call.args[0], *call.args[1].fields))
                return f"vm.builtin.{_CLOSURE_OPS[name]}", operands
            case Op(name="make_tagged") if isinstance(call.args[1], Tuple):
                operands = self._operands((call.args[0], *call.args[1].fields))
                return "vm.builtin.make_tagged", operands
            case Op(name="builtin.alloc_tensor"):
                raise self._refuse("R.builtin.alloc_tensor", "vm_memory_lower")
            case Op(name="call_tir" | "call_tir_inplace" | "call_dps_packed"):
                raise self._refuse(str(call.op), "call_tir_rewrite")
            case Op():
                raise self._refuse(str(call.op), "legalize_ops")
            case GlobalVar(name=name):
                if name not in self._module:
                    raise NotLowerable(f"{self._name}: no function {name!r} in the module")
                return name, self._operands(call.args)
            case ExternFunc(name=name):
                return name, self._operands(call.args)
            case closure:
                return "vm.builtin.invoke_closure", self._operands((closure, *call.args))

    def _call(self, name: str, args: Sequence[Operand], *, needed: bool) -> Operand:
        """Emit a call; its result may reuse the register of an operand that is not read again."""
        self._registers.settle()
        dst = self._registers.new() if needed else VOID
        self._builder.emit_call(name, args, dst, origin=self._origin)
        return dst

    def _kill(self, place: Operand) -> Operand:
        """Clear the register `place`; constants are not released."""
        if place.kind is Kind.REGISTER:
            self._builder.emit_call("vm.builtin.kill", (place,), place)
        return VOID

    def _if(self, branch: If, *, needed: bool) -> Operand:
        origin, self._origin = self._origin, ""
        cond = self._operands((branch.cond,))
        test = self._call("vm.builtin.read_if_cond", cond, needed=True)
        otherwise, end = self._builder.label(), self._builder.label()
        dst = self._registers.new() if needed else VOID
        self._builder.emit_if(test, otherwise, origin=origin)
        self._registers.temporary(test)
        self._registers.settle()
        self._branch(branch.true_branch, dst, origin)
        self._builder.emit_goto(end)
        self._builder.place(otherwise)
        self._branch(branch.false_branch, dst, origin)
        self._builder.place(end)
        return dst

    def _branch(self, seq: SeqExpr, dst: Operand, origin: str) -> None:
        result = self._seq(seq)
        self._builder.emit_call("vm.builtin.copy", (result,), dst, origin=origin)
        self._registers.settle()

    def _refuse(self, what: str, pass_name: str) -> NotLowerable:
        return NotLowerable(f"{self._name}: {what} has no instruction: run {pass_name} first")

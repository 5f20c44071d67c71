"""Names of the source for the values that instructions compute."""

from collections.abc import Iterator

from relax_egraph.ir.expr import Call, ExternFunc, GlobalVar, Var, VarBinding
from relax_egraph.ir.module import IRModule
from relax_egraph.ir.op import Op
from relax_egraph.ir.struct_info import TupleStructInfo
from relax_egraph.tir.stmt import PrimFunc


class Origins:
    """Names for the instructions of one function of `module`, whose bindings are visited in order.

    A value has the name of its variable.  The results of a loop function have the names of the
    variables that it writes, and so have those of a packed function without a result: it writes the
    operands that were allocated and not written before.
    """

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._unwritten: set[Var] = set()

    def of(self, binding: VarBinding) -> str:
        """The name of the value of `binding`, and its place in the source, if that is known.

        ``lv3 (model.py:12:9)``; empty for checks and pure effects.
        """
        var, value = binding.var, binding.value
        name = "" if var.name.rstrip("0123456789") == "_" else var.name
        if isinstance(value, Call):
            if _allocates(value):
                self._unwritten.add(var)
            elif var.struct_info == TupleStructInfo(()):
                name = ", ".join(self._written(value))
            if name and value.span is not None:
                return f"{name} ({value.span})"
        return name

    def _written(self, call: Call) -> Iterator[str]:
        """The names of the variables that `call` writes."""
        if isinstance(call.op, Op) and not call.op.name.startswith("call_"):
            return
        outputs = range(0)
        match call.op:
            case GlobalVar(name=name) if isinstance(kernel := self._module[name], PrimFunc):
                outputs = range(len(kernel.inputs), len(kernel.params))
            case _:
                pass
        for place, arg in enumerate(call.args):
            if isinstance(arg, Var) and (place in outputs or arg in self._unwritten):
                self._unwritten.discard(arg)
                yield arg.name


def _allocates(call: Call) -> bool:
    match call:
        case Call(op=Op(name="memory.alloc_tensor")):
            return True
        case Call(op=Op(name="call_packed"), args=[ExternFunc(name="vm.builtin.writable"), *_]):
            return True
        case _:
            return False

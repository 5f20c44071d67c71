"""Closures whose function is known while bytecode is traced: calls of them are followed."""

from collections.abc import Mapping

from relax_egraph.vm.native.carrying import has_heap
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.tracer import Handler, Operands
from relax_egraph.vm.native.values import Function, Value


def _make_closure(o: Operands) -> Value:
    function, *captured = o.values(len(o.operands))
    if not isinstance(function, Function):
        raise Refused("a closure of what is no function of the program's own")
    if any(map(has_heap, captured)):
        raise Refused("a closure that has a heap")
    return Function(function.name, (*captured, *function.captured))


def _invoke_closure(_: Operands) -> Value:
    raise Refused("a call of nothing")


CLOSURE_BUILTINS: Mapping[str, Handler] = {
    "vm.builtin.make_closure": _make_closure,
    "vm.builtin.invoke_closure": _invoke_closure,
}
"""The builtins that make and call closures; `Tracer.called` follows the calls."""

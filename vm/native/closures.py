"""Closures whose function is known during tracing; the tracer follows their calls."""

from collections.abc import Mapping

from relax_egraph.vm.native.loop_carried import has_heap
from relax_egraph.vm.native.refused import Refused
from relax_egraph.vm.native.tracer import Handler, Operands
from relax_egraph.vm.native.values import Function, Value


def _make_closure(o: Operands) -> Value:
    function, *captured = o.values(len(o.operands))
    if not isinstance(function, Function):
        raise Refused("a closure of a function from outside the program")
    if any(map(has_heap, captured)):
        raise Refused("a closure that has a heap")
    return Function(function.name, (*captured, *function.captured))


def _invoke_closure(_: Operands) -> Value:
    raise Refused("a call of nothing")


CLOSURE_BUILTINS: Mapping[str, Handler] = {
    "vm.builtin.make_closure": _make_closure,
    "vm.builtin.invoke_closure": _invoke_closure,
}
"""The builtins that create and call closures; `Tracer.called` follows the calls."""
